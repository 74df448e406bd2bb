"""Tokens that are computed together have the bits of tokens that are computed one by one: no answer may depend on how a
prompt was cut. The judge is the NumPy reference, which knows no batches."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from colibri_build.artifacts import F32, BuildOptions, Format, Kind, ModelConfig, ModelFolder
from colibri_build.pack.reader import read_model_folder
from colibri_build.pack.writer import write_model_folder
from colibri_build.reference.model import ReferenceModel
from support.decoder_builds import BOARDS, build_decoder, copy_decoder, model_of
from support.features import FEATURES, like_trained
from support.tiny_quantized import AWKWARD_CONFIG, DEFAULT_FORMATS, MORE_FORMATS, random_quantized

BATCH, CONTEXT, THREADS = 32, 40, 3
OPTIONS = BuildOptions(CONTEXT, THREADS, prefill_batch=BATCH)
PROMPT = tuple((7 + 37 * i * i) % 300 for i in range(CONTEXT))
MODELS: dict[str, ModelConfig] = {
    "plain": AWKWARD_CONFIG,
    "windows-sinks-biases": replace(AWKWARD_CONFIG, **FEATURES["gpt-oss"]),
    "latent-queries": replace(AWKWARD_CONFIG, **FEATURES["latent-queries"]),
    "dense-and-shared": replace(AWKWARD_CONFIG, **FEATURES["dense-first-layer"]),
    "every-expert": replace(AWKWARD_CONFIG, n_experts=4, top_k=4),
    "64-experts": replace(AWKWARD_CONFIG, n_experts=64, top_k=6, hidden_dim=16),
}
# Other boards than AVX2; test_features.py has every feature on three of them, with a short prompt.
MORE_BOARDS = {"windows-sinks-biases": ("portable", "cortex-a53", "cortex-a72"), "64-experts": ("cortex-a72",)}
HALF_HEAD = {**DEFAULT_FORMATS, **MORE_FORMATS, Kind.LM_HEAD: Format.F16}
# How the prompt is cut: sizes of the batches, the last one shorter.
CUTS = ((1,), (2,), (3,), (5,), (8,), (32,), (1, 7, 3, 13, 2, 11, 3), (31, 1, 8))


@dataclass(frozen=True)
class Fed:
    """What the program says after a batch."""

    status: str
    position: int
    layer: int  # of a fault
    hash: str


def cut(sizes: Sequence[int], ids: Sequence[int] = PROMPT) -> Iterator[tuple[int, ...]]:
    """The prompt in batches whose sizes repeat."""
    at = turn = 0
    while at < len(ids):
        size = sizes[turn % len(sizes)]
        yield tuple(ids[at : at + size])
        at, turn = at + size, turn + 1


def hash_of(logits: F32) -> str:
    """The hash of batch_program.c."""
    total = 14695981039346656037
    for bits in logits.view(np.uint32).tolist():
        total = (total * 6364136223846793005 + bits) % 2**64
    return f"{total:016x}"


def pack(config: ModelConfig, path: Path, seed: int = 1) -> ModelFolder:
    """A random model; the one with a plain head has it in fp16, whose product is of another kind."""
    formats = HALF_HEAD if config.shared_hidden_dim else {**DEFAULT_FORMATS, **MORE_FORMATS}
    write_model_folder(random_quantized(config, seed=seed, formats=formats, edit=like_trained), path)
    return read_model_folder(path)


def reference_hashes(folder: ModelFolder) -> list[str]:
    """Hash of the logits after each token of the prompt."""
    reference = ReferenceModel(model_of(folder), context=CONTEXT)
    hashes = []
    for token in PROMPT:
        logits = reference.step(token).logits
        assert logits is not None
        hashes.append(hash_of(logits))
    return hashes


def feed(program: Path, board: str, threads: int, sequences: Sequence[Sequence[Sequence[int]]]) -> list[list[Fed]]:
    """Feeds each sequence, one batch after the other."""
    words = [word for batches in sequences for word in ("-", *(",".join(map(str, ids)) for ids in batches))]
    command = [*BOARDS[board][2], str(program), str(threads), *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    lines = iter(Fed(a, int(b), int(c), d) for a, b, c, d in (line.split() for line in said))
    return [[next(lines) for _ in batches] for batches in sequences]


def differences(program: Path, board: str, threads: int, expected: Sequence[str]) -> list[str]:
    """Every batch after which the logits are not those of the token at its end."""
    answers = feed(program, board, threads, [list(cut(sizes)) for sizes in CUTS])
    assert all(fed.status == "ok" for answer in answers for fed in answer)
    assert all(answer[-1].position == len(PROMPT) for answer in answers)
    return [
        f"{board}, {threads} threads, batches of {sizes}: position {fed.position - 1}"
        for sizes, answer in zip(CUTS, answers, strict=True)
        for fed in answer
        if fed.hash != expected[fed.position - 1]
    ]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_decoder(tmp_path_factory.mktemp("decoder"), Path(__file__).parent / "batch_program.c")


@pytest.mark.parametrize("name", MODELS)
def test_however_a_prompt_is_cut_its_logits_are_the_references(name: str, decoder: Path, tmp_path: Path) -> None:
    folder = pack(MODELS[name], tmp_path / "model")
    expected = reference_hashes(folder)
    for board in ("avx2", *MORE_BOARDS.get(name, ())):
        program = build_decoder(folder, board, decoder, tmp_path / board, OPTIONS)
        for threads in (1, THREADS):
            assert differences(program, board, threads, expected) == []


# file of runtime_c, what is there, what a mistake makes of it, and a model that it shows in
MISTAKES = {
    "ranks in reverse": (
        "experts.c",
        "token->down[rank] + row, token->routing.weights[rank]",
        "token->down[MODEL_TOP_K - 1 - rank] + row, token->routing.weights[MODEL_TOP_K - 1 - rank]",
        "64-experts",
    ),
    "the last token's window": (
        "attention.c",
        "first_visible(job->layer, token->position)",
        "first_visible(job->layer, arena.tokens[job->n - 1].position)",
        "windows-sinks-biases",
    ),
    "later tokens seen": (
        "attention.c",
        "int n = token->position - first + 1",
        "int n = arena.tokens[job->n - 1].position - first + 1",
        "plain",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_comparison_sees_a_mistake(name: str, decoder: Path, tmp_path: Path) -> None:
    """Else the test above would be blind: it has to fail where tokens are mixed up, and does so on one board."""
    file, right, wrong, model = MISTAKES[name]
    broken = decoder.parent / f"broken-{file}-{len(right)}"
    copy_decoder(broken, Path(__file__).parent / "batch_program.c")
    source = broken / "model" / file
    assert source.read_text().count(right) == 1
    source.write_text(source.read_text().replace(right, wrong))
    folder = pack(MODELS[model], tmp_path / "model")
    program = build_decoder(folder, "avx2", broken, tmp_path / "build", OPTIONS)
    assert differences(program, "avx2", 1, reference_hashes(folder))


def test_a_fault_in_a_batch_is_reported_at_its_own_token(decoder: Path, tmp_path: Path) -> None:
    """Else a report would name a token, a position or a layer that has nothing to do with it."""
    folder = pack(MODELS["plain"], tmp_path / "model")
    program = build_decoder(folder, "avx2", decoder, tmp_path / "avx2", OPTIONS)
    good, unknown = PROMPT[:20], (*PROMPT[:6], 301, *PROMPT[7:9])
    long = [PROMPT[:30], PROMPT[:30]]
    answers = feed(program, "avx2", THREADS, [[unknown, PROMPT[6:20]], long, [(*PROMPT[:33],), good], [good]])
    assert answers[0][0].status == "unknown_token"
    assert answers[0][0].position == 6
    assert answers[0][1] == answers[3][0], "what came before the fault is fed, and the sequence goes on from there"
    assert (answers[1][1].status, answers[1][1].position) == ("context_full", CONTEXT)
    assert (answers[2][0].status, answers[2][0].position) == ("usage", 0)
    assert answers[2][1] == answers[3][0]
