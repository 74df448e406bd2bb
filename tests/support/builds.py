"""Whole builds of tiny models for the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

from colibri_build import pipeline
from colibri_build.artifacts import Transcript
from colibri_build.pipeline import BuildRequest, BuildResult, QuantizeChoices
from colibri_build.run.process import run_firmware, runner_for
from support.tiny_checkpoint import write_tiny_checkpoint

PROMPTS = ("turn the window on", "é ü € 100  10", "a")
QUANTIZE = QuantizeChoices(method="rtn", group_size=32)


def portable_board(folder: Path, base: str = "x86-64-v3") -> str:
    """A board of the user's own that uses the portable kernels."""
    path = folder / f"portable-{base}.toml"
    path.write_text(f'extends = "{base}"\nkernels = "portable"\n', encoding="utf-8")
    return str(path)


def quick_board(folder: Path) -> str:
    """A board of the user's own for which gcc compiles in half the time, where a test is not about the optimizer."""
    path = folder / "quick.toml"
    path.write_text('extends = "x86-64-v3"\n[flags.gcc]\ncompile = ["-march=x86-64-v3", "-O1"]\n', encoding="utf-8")
    return str(path)


def build_tiny(tmp: Path, board: str, **changes: object) -> BuildResult:
    """Build the tiny checkpoint for a board; `changes` are fields of BuildRequest."""
    checkpoint = tmp / "tiny"
    if not checkpoint.exists():
        write_tiny_checkpoint(checkpoint)
    values: dict[str, object] = {
        "model": checkpoint,
        "board": board,
        "out": tmp / "out",
        "quantize": QUANTIZE,
        "prompts": PROMPTS,
        "golden_tokens": 12,
        "max_threads": 4,
        **changes,
    }
    return pipeline.build(BuildRequest(**values))  # type: ignore[arg-type]


def run(result: BuildResult, *arguments: str, device: str = "auto", stdin: bytes | None = None) -> Transcript:
    """Run a built firmware."""
    return run_firmware(runner_for(result.board, device), result.firmware.elf, arguments, stdin=stdin, timeout_s=60)
