"""The promise: the same logits from the reference, portable C, AVX2, A53 and A72, any thread count, any compiler.

If one of these fails, what was checked under QEMU is not what runs on the user's board.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from colibri_build import pipeline
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.checkpoint.tokenizer_encode import encode_text
from colibri_build.pack.reader import load_quantized
from colibri_build.pipeline import Built
from colibri_build.reference.model import ReferenceModel
from colibri_build.reference.sampling import SplitMix64, pick
from support.builds import PROMPTS, build_tiny, portable_board, run

TARGETS = [
    ("portable", "debian-gcc"),
    ("x86-64-v3", "debian-gcc"),
    ("x86-64-v3", "clang"),
    ("x86-64-v3", "zig"),
    ("cortex-a53", "debian-gcc"),
    ("cortex-a53", "clang"),
    ("cortex-a53", "zig"),
    ("tda4vm", "debian-gcc"),
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize(("board", "toolchain"), TARGETS)
def test_every_build_gives_the_bits_of_the_reference(tmp_path: Path, board: str, toolchain: str, bits: int) -> None:
    name = portable_board(tmp_path) if board == "portable" else board
    result = build_tiny(tmp_path, name, toolchain=toolchain, activation_bits=bits)
    assert result.report.ok, [check for check in result.report.checks if not check.ok]
    built = Built(result.out, result.firmware.elf, result.board, toolchain, result.plan.options, result.golden)
    _, report = pipeline.verify(built, threads=(1, 2, 3))
    assert report.ok, report.results
    assert len(report.results) == 9
    assert all(len(row.got_ids) == 12 for row in report.results)


def test_contraction_would_be_seen(tmp_path: Path) -> None:
    """The negative: a fused multiply-add must change the hash, or the equalities above prove nothing."""
    result = build_tiny(tmp_path, portable_board(tmp_path), toolchain="debian-gcc")
    makefile = result.out / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    assert "-ffp-contract=off" in text
    makefile.write_text(text.replace("-ffp-contract=off", "-ffp-contract=fast"), encoding="utf-8")
    subprocess.run(
        ["make", "-C", result.out, "-s", "-j2", "clean", "colibri_inference"], check=True, capture_output=True
    )
    built = Built(result.out, result.firmware.elf, result.board, "auto", result.plan.options, result.golden)
    _, report = pipeline.verify(built, threads=(1,))
    assert not any(row.hash_equal for row in report.results)


SAMPLING = ["--temperature", "0.9", "--top-p", "0.8", "--seed", "42", "--max-tokens", "16"]


def test_sampled_answers_are_the_references_on_every_isa(tmp_path: Path) -> None:
    """The same seed gives the same answer on the desk and on the board."""
    results = [build_tiny(tmp_path, board, out=tmp_path / board) for board in ("x86-64-v3", "cortex-a53")]
    model = load_quantized(results[0].folder, read_tokenizer_bytes)
    ids = encode_text(model.tokenizer, PROMPTS[0])
    reference, rng, expected = ReferenceModel(model), SplitMix64(42), []
    for token in ids:
        logits = reference.step(token).logits
    while len(expected) < 16:
        assert logits is not None
        expected.append(pick(logits, 0.9, 0.8, rng))
        logits = reference.step(expected[-1]).logits
    for result in results:
        status = run(result, "--prompt", PROMPTS[0], *SAMPLING).status
        assert status["ids"] == expected
        assert run(result, "--prompt", PROMPTS[0], *SAMPLING, "--threads", "3").status["ids"] == expected
