"""sampler.c against the NumPy reference, and the reference against textbook formulas.

If they differ, a seeded answer that was checked on a PC is another one on the board.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from colibri_build.reference.sampling import LogitsHash, SplitMix64, pick, pick_greedy
from support.fake_firmware import COMPILERS, FAKE, ROOT, STRICT

NOT_FINITE = -6
RUNTIME = ROOT / "runtime_c"
PREFIXES = {"sanitized": [], "aarch64": ["qemu-aarch64-static", "-cpu", "cortex-a53"]}
SIZES = [1, 7, 256, 1000]
VARIANTS = [*(("sanitized", size) for size in SIZES), ("aarch64", 261)]
BORDER_SEED, BORDER_TOKEN = 12507, 123  # the first number is 123/256: of 256 equal tokens, 123 are passed exactly
MAX = np.finfo(np.float32).max
TINY = np.finfo(np.float32).smallest_subnormal

Sampler = Callable[[NDArray[np.float32], float, float, int], tuple[list[int], str]]


@pytest.fixture(scope="module", params=VARIANTS, ids=str)
def sampler(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Sampler]:
    build, size = request.param
    out = tmp_path_factory.mktemp("sampler") / "sampler"
    sources = [Path(__file__).with_name("sampler_main.c"), RUNTIME / "sample/sampler.c"]
    sources.append(RUNTIME / "kernels/vector_portable.c")
    includes = [f"-I{RUNTIME}", f"-I{RUNTIME / 'include'}", f"-I{FAKE}", f"-DMODEL_VOCAB_SIZE={size}"]
    subprocess.run([*COMPILERS[build], *STRICT, *includes, *map(str, sources), "-o", str(out)], check=True)

    def run(logits: NDArray[np.float32], temperature: float, top_p: float, seed: int) -> tuple[list[int], str]:
        header = struct.pack("<ffQi", temperature, top_p, seed, len(logits))
        command = [*PREFIXES[build], str(out)]
        done = subprocess.run(command, input=header + logits.tobytes(), stdout=-1, check=True, timeout=30)
        picks = struct.unpack_from(f"<{len(logits)}i", done.stdout)
        (value,) = struct.unpack_from("<Q", done.stdout, 4 * len(logits))
        return list(picks), f"{value:016x}"

    return size, run


def expected(logits: NDArray[np.float32], temperature: float, top_p: float, seed: int) -> tuple[list[int], str]:
    rng, digest = SplitMix64(seed), LogitsHash()
    picks = [pick(row, temperature, top_p, rng) for row in logits]
    for row in logits:
        digest.update(row)
    return picks, digest.hexdigest()


def hard_logits(size: int) -> NDArray[np.float32]:
    """Rows that strain the order, the sums and the range."""
    rng = np.random.default_rng(size)
    rows = [
        np.zeros(size),  # everything ties
        np.where(np.arange(size) % 2, 0.0, -0.0),  # zeros of both signs tie
        rng.integers(-2, 3, size),  # many ties
        np.linspace(5, -5, size),
        np.linspace(-5, 5, size),
        np.full(size, MAX),
        np.where(np.arange(size) == size - 1, MAX, -MAX),  # differences overflow to infinity
        np.where(np.arange(size) == size // 2, 200, -200),  # one token has all the weight
        rng.normal(0, 1, size) * TINY * 5,  # subnormals
        np.full(size, -MAX),
    ]
    return np.stack(rows).astype(np.float32)


@pytest.mark.parametrize(
    "temperature,top_p",
    [(0, 1), (1, 1), (0.7, 0.9), (0.01, 0.5), (100, 0.999), (1, 1e-30), (2, 0.99999994), (1.3, 0.1)],
)
def test_picks_and_hash_are_the_reference_s(sampler: tuple[int, Sampler], temperature: float, top_p: float) -> None:
    size, run = sampler
    random = np.random.default_rng(1).normal(0, 4, (40, size)).astype(np.float32)
    logits = np.concatenate([hard_logits(size), random])
    assert run(logits, temperature, top_p, 42) == expected(logits, temperature, top_p, 42)


@pytest.mark.parametrize("top_p", [1.0, 0.99])
def test_a_draw_on_the_border_of_two_tokens_is_the_second_one_s(sampler: tuple[int, Sampler], top_p: float) -> None:
    size, run = sampler
    logits = np.zeros((1, size), np.float32)
    assert SplitMix64(BORDER_SEED).uniform() * 256 == BORDER_TOKEN
    picked = run(logits, 1.0, top_p, BORDER_SEED)[0]
    assert picked == expected(logits, 1.0, top_p, BORDER_SEED)[0]
    assert top_p < 1 or size != 256 or picked == [BORDER_TOKEN]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_give_no_token(sampler: tuple[int, Sampler], bad: float, temperature: float) -> None:
    size, run = sampler
    logits = np.zeros((2, size), np.float32)
    logits[0, size - 1] = bad
    assert run(logits, temperature, 0.9, 0)[0][0] == NOT_FINITE
    with pytest.raises(ValueError, match="1 of"):
        pick(logits[0], temperature, 0.9, SplitMix64(0))


def test_splitmix64_gives_the_published_numbers() -> None:
    rng = SplitMix64(1234567)
    assert [rng.next() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_greedy_takes_the_lowest_of_equal_logits() -> None:
    assert pick_greedy(np.array([0, 3, 3, 1], np.float32)) == 1


@pytest.mark.parametrize("temperature,top_p", [(1.0, 1.0), (0.5, 1.0), (1.0, 0.8), (2.0, 0.6)])
def test_frequencies_follow_the_softmax_of_the_nucleus(temperature: float, top_p: float) -> None:
    logits = np.array([2.0, -1.0, 1.5, 0.0, 1.0, -3.0], np.float32)
    p = np.exp(logits.astype(np.float64) / temperature)
    p /= p.sum()
    order = np.argsort(-p)
    n_kept = int(np.searchsorted(np.cumsum(p[order]), top_p)) + 1
    nucleus = np.where(np.isin(np.arange(p.size), order[:n_kept]), p, 0)
    rng, n = SplitMix64(3), 2000
    counts = np.bincount([pick(logits, temperature, top_p, rng) for _ in range(n)], minlength=p.size)
    assert counts / n == pytest.approx(nucleus / nucleus.sum(), abs=4 * 0.5 / np.sqrt(n))
    assert np.all(counts[nucleus == 0] == 0)


def test_one_number_is_drawn_a_token() -> None:
    rng, other = SplitMix64(9), SplitMix64(9)
    for top_p in (1.0, 0.5):
        pick(np.zeros(4, np.float32), 1.0, top_p, rng)
        other.next()
    pick(np.zeros(4, np.float32), 0.0, 1.0, rng)
    assert rng.next() == other.next()


def test_the_hash_is_the_recurrence_and_sees_every_bit() -> None:
    rows = np.random.default_rng(5).normal(0, 1, (3, 50)).astype(np.float32)
    h = 14695981039346656037
    digest = LogitsHash()
    for row in rows:
        digest.update(row)
        for bits in row.view(np.uint32):
            h = (h * 6364136223846793005 + int(bits)) % 2**64
    assert digest.hexdigest() == f"{h:016x}"
    for i in (0, 49):
        changed = LogitsHash()
        other = rows.copy()
        other.view(np.uint32)[1, i] ^= 1
        for row in other:
            changed.update(row)
        assert changed.hexdigest() != digest.hexdigest()
