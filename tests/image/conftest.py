from __future__ import annotations

from pathlib import Path

import pytest
from image_disks import Made, blank_disk, compile_program, copied, flashed, image_of

from support.command_line import Run, runner


def _made(folder: Path, number: int, board: str = "cortex-a53") -> Made:
    elf = compile_program(folder / "colibri_inference", number)
    out = folder / "image"
    return Made(elf, out, image_of(elf, out, board))


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The image that a device is delivered with."""
    return _made(tmp_path_factory.mktemp("first"), 1)


@pytest.fixture(scope="session")
def update(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A later firmware for the same board."""
    return _made(tmp_path_factory.mktemp("update"), 2)


@pytest.fixture(scope="session")
def other_board(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return _made(tmp_path_factory.mktemp("other"), 3, "tda4vm")


@pytest.fixture(scope="session")
def delivered(first: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A disk with the first image; not to be changed."""
    disk = blank_disk(tmp_path_factory.mktemp("delivered") / "disk.img")
    flashed(first.folder, disk)
    return disk


@pytest.fixture
def disk(delivered: Path, tmp_path: Path) -> Path:
    """A copy of the delivered disk."""
    return copied(delivered, tmp_path / "disk.img")


@pytest.fixture
def copy(first: Made, tmp_path: Path) -> Path:
    """A copy of the first image folder, to be damaged."""
    return copied(first.folder, tmp_path / "copy")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)
