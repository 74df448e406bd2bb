"""The models that are measured, and their checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from suite import mixtral, smollm
from suite.cache import digest_of, digest_of_files, made
from suite.places import BENCHMARKS, ROOT, WORK, Json
from suite.tensors import Checkpoint, read_folder, write_folder

EXAMPLE = ROOT / "examples" / "cabin_voice" / "model"
MAKERS = ("mixtral.py", "models.py", "tensors.py")  # decide about a checkpoint's bytes; for c smollm.py does, too


@dataclass(frozen=True)
class Model:
    """One model of the benchmark.

    `letter` names it on the command line and in the results. `board_a53` is a board of that core whose memory holds it.
    `prompt` is the golden prompt of its builds. `bench_tokens`, `long_prompt`: length of a decoding run and of a prompt that
    prefill is measured with; together with the golden prompt they fit into `context`. `speed`: whether it is measured against
    the clock; the other one is there for its text.
    """

    letter: str
    title: str
    checkpoint: Callable[[], Checkpoint]
    board_a53: str
    prompt: str
    context: int
    bench_tokens: int
    long_prompt: int
    vocab: int
    speed: bool = True

    def ids(self, n: int, seed: int = 0) -> list[int]:
        """`n` seeded token ids, none of the first three, which are special in every vocabulary here."""
        found: list[int] = np.random.default_rng([self.vocab, seed]).integers(3, self.vocab, n).tolist()
        return found

    def folder(self) -> Path:
        """Where its files are made."""
        return WORK / "models" / self.letter


def _mid() -> Checkpoint:
    from real_vocabularies import VOCABULARIES  # of tests/tokenizer, which run.py puts on the path

    shape = mixtral.Shape(1024, 3584, 8, 2, 8, 16, 4, 32000, 4096)
    return mixtral.random_checkpoint(shape, 1234, VOCABULARIES["mistral"]())


def _small() -> Checkpoint:
    shape = mixtral.Shape(256, 512, 8, 2, 4, 8, 2, 2048, 4096)
    return mixtral.random_checkpoint(shape, 1235, (EXAMPLE / "tokenizer.json").read_text())


def _smol(noise: float) -> Checkpoint:
    return smollm.SmolLm(smollm.package_file()).mixture(noise)


SMOL_PROMPT = "The capital of France is"
EXAMPLE_PROMPT = "make it two degrees warmer in the back"
MODELS = {
    model.letter: model
    for model in (
        Model("a", "Mixtral, dim 1024", _mid, "cortex-a53/imx8mm", "The first rule of", 1024, 64, 256, 32000),
        Model("b", "Mixtral, dim 256", _small, "cortex-a53", EXAMPLE_PROMPT, 1024, 256, 512, 2048),
        Model(
            "c",
            "SmolLM2-135M, 4 equal experts",
            lambda: _smol(0.0),
            "cortex-a53/imx8mm",
            SMOL_PROMPT,
            1024,
            64,
            256,
            49152,
        ),
        Model(
            "cn",
            "SmolLM2-135M, 4 experts with noise",
            lambda: _smol(smollm.NOISE),
            "cortex-a53/imx8mm",
            SMOL_PROMPT,
            1024,
            64,
            256,
            49152,
            speed=False,
        ),
        Model("d", "cabin_voice", lambda: read_folder(EXAMPLE), "cortex-a53", EXAMPLE_PROMPT, 256, 128, 128, 768),
    )
}


def dense_model() -> Model:
    """SmolLM2-135M as it was published, a llama: for its text alone."""

    def checkpoint() -> Checkpoint:
        return smollm.SmolLm(smollm.package_file()).dense()

    return replace(MODELS["c"], letter="c-dense", title="SmolLM2-135M, dense", checkpoint=checkpoint, speed=False)


def checkpoint_key(model: Model) -> str:
    """Changes with whatever changes the checkpoint's bytes, but for published packages."""
    if model.letter == "d":
        return digest_of(digest_of_files(path for path in EXAMPLE.iterdir() if path.is_file()))
    makers = (*MAKERS, "smollm.py") if model.letter.startswith("c") else MAKERS
    return digest_of(model.letter, digest_of_files(BENCHMARKS / "suite" / name for name in makers))


def checkpoint_folder(model: Model) -> Path:
    """The folder that transformers would have saved, made when it is not there."""
    if model.letter == "d":
        return EXAMPLE
    folder = model.folder() / "checkpoint"

    def make(target: Path) -> Json:
        write_folder(model.checkpoint(), target)
        return {}

    made(folder, checkpoint_key(model), make)
    return folder


def drop_checkpoint(model: Model) -> None:
    """Free its space when everything is made of it: it can be made again."""
    shutil.rmtree(model.folder() / "checkpoint", ignore_errors=True)
