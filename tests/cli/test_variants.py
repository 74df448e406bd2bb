"""Every board that is listed can be planned for: a profile that loads is not yet one that a user can build with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colibri_build.resources import data_dir
from colibri_build.target.board import board_names
from support.command_line import Run

MODEL = Path(__file__).parents[2] / "examples" / "cabin_voice" / "model"


@pytest.mark.parametrize("board", board_names(data_dir("boards")))
def test_the_example_fits_every_board(run: Run, board: str) -> None:
    code, out, err = run("plan", "-b", board, MODEL, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["board"] == board


@pytest.mark.parametrize("board", [name for name in board_names(data_dir("boards")) if "/" in name])
def test_every_variant_has_a_guide_with_its_devices(board: str) -> None:
    """A reader with the board in hand finds its console, and the name to build for."""
    guides = [path.read_text(encoding="utf-8") for path in (MODEL.parents[2] / "docs" / "boards").glob("*.md")]
    (profile,) = (
        path for path in (MODEL.parents[2] / "boards").rglob("*.toml") if path.as_posix().endswith(f"/{board}.toml")
    )
    devices = [line.split('"')[1] for line in profile.read_text(encoding="utf-8").splitlines() if '= "/dev/' in line]
    assert devices
    assert any(f"-b {board} MODEL" in text and all(device in text for device in devices) for text in guides)
