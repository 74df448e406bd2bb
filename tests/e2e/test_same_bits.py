"""The promise: the same logits from the reference, portable C, AVX2, A53 and A72, any thread count, any compiler.

If one of these fails, what was checked under QEMU is not what runs on the user's board.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from colibri_build import pipeline
from colibri_build.pipeline import Built
from support.builds import build_tiny, portable_board

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
    built = Built(result.out, result.firmware.elf, result.board, result.golden)
    _, report = pipeline.verify(built, threads=(1, 2, 3))
    assert report.ok, report.results
    assert len(report.results) == 9
    assert all(len(row.got_ids) == 12 for row in report.results)
