"""Builds the real program around a fake model, and says what it must answer (tests/app/fake/fake_model.c)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colibri_build.artifacts import F32, Generation
from colibri_build.reference.sampling import LogitsHash, SplitMix64, pick

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "app" / "fake"
CONTEXT = 64
VOCAB = 261
EOS = (257, 258)
GOLDEN_PROMPT = b"golden"
GOLDEN_TOKENS = 6

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
STRICT = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off", "-fno-math-errno", *WARNINGS]
COMPILERS = {
    "sanitized": ["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "native": ["gcc", "-O1", "-static"],
    "clang": ["clang", "-O1"],
    "aarch64": ["aarch64-linux-gnu-gcc", "-O1", "-static"],
}
_SOURCES = (
    "app/*.c",
    "sample/*.c",
    "port/*.c",
    "link/*.c",
    "serve/*.c",
    "tokenizer/utf8.c",
    "kernels/vector_portable.c",
    "model/status.c",
)


def build_fake(out: Path, build: str, definitions: Iterable[str] = ()) -> Path:
    """Compile the program for one of COMPILERS."""
    runtime = ROOT / "runtime_c"
    sources = [str(path) for pattern in _SOURCES for path in sorted(runtime.glob(pattern))]
    sources += [str(path) for path in sorted(FAKE.glob("*.c"))]
    includes = [f"-I{runtime}", f"-I{runtime / 'include'}", f"-I{FAKE}"]
    golden = f"-DFAKE_GOLDEN_HASH=0x{golden_answer().logits_hash}u"
    flags = [*COMPILERS[build], *STRICT, *includes, golden, *(f"-D{name}" for name in definitions)]
    subprocess.run([*flags, *sources, "-o", str(out)], check=True)
    return out


def fake_logits(token: int, position: int) -> F32:
    """What the fake model computes after it was fed `token` as number `position`, counted from 1."""
    i = np.arange(VOCAB, dtype=np.uint32)
    mixed = (i * np.uint32(7919) + np.uint32(position * 104729 + token * 1299709)) * np.uint32(2654435761)
    logits = ((mixed >> np.uint32(20)).astype(np.int64) - 2048).astype(np.float32) * np.float32(2.0**-10)
    successor = 257 if token == ord("z") or token >= 256 else token + 1
    logits[successor] += np.float32(8)
    return logits


def fake_answer(
    prompt: Sequence[int],
    max_tokens: int = 1000,
    *,
    context: int = CONTEXT,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
) -> Generation:
    """The reference's generation loop over the fake model; the prompt is bytes or ids."""
    rng, digest = SplitMix64(seed), LogitsHash()
    ids: list[int] = []
    stop, token, position = "length", prompt[-1], len(prompt)
    while len(ids) < max_tokens:
        if position > context:
            stop = "context"
            break
        logits = fake_logits(token, position)
        digest.update(logits)
        token = pick(logits, temperature, top_p, rng)
        position += 1
        ids.append(token)
        if token in EOS:
            stop = "eos"
            break
    text = bytes(token for token in prompt if token < 256).decode("utf-8", errors="replace")
    return Generation(text, tuple(prompt), tuple(ids), digest.hexdigest(), stop)


def golden_answer() -> Generation:
    """What is embedded for --selftest and --bench."""
    return fake_answer(GOLDEN_PROMPT, GOLDEN_TOKENS)


def text_of(ids: Iterable[int]) -> bytes:
    """What the fake tokenizer writes for ids that form whole characters."""
    return bytes(token for token in ids if token < 256)


@dataclass(frozen=True)
class Run:
    """What one run left behind."""

    exit_code: int
    stdout: bytes
    stderr: str

    def lines(self, mark: str) -> list[dict[str, Any]]:
        return [json.loads(line.removeprefix(mark)) for line in self.stderr.splitlines() if line.startswith(mark)]

    @property
    def status(self) -> dict[str, Any]:
        (status,) = self.lines("COLIBRI_STATUS ")
        assert self.stderr.endswith("}\n")
        assert self.stderr.splitlines()[-1].startswith("COLIBRI_STATUS ")
        assert status["exit_code"] == self.exit_code
        return status

    @property
    def message(self) -> str:
        """The one line for a person; it is also in the status."""
        (line,) = [line for line in self.stderr.splitlines() if line.startswith("colibri_inference: ")]
        text = line.removeprefix("colibri_inference: ")
        assert self.status["message"] == text
        return text


class Program:
    """The binary and how to start it."""

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def environment(self, fake: str) -> dict[str, str]:
        return {**os.environ, "FAKE": fake, "ASAN_OPTIONS": "detect_leaks=0"}

    def __call__(self, *args: str | bytes, fake: str = "", stdin: bytes = b"", **popen: Any) -> Run:
        popen.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run(
            [*self.command, *args], input=stdin, stderr=subprocess.PIPE, env=self.environment(fake), timeout=20, **popen
        )
        return Run(done.returncode, done.stdout or b"", done.stderr.decode())
