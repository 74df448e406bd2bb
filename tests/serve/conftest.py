"""Firmwares in --serve on a PTY, as on a serial line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.fake_firmware import build_fake
from support.serve_boards import Board, Start

EMULATOR = {"sanitized": [], "aarch64": ["qemu-aarch64-static", "-cpu", "cortex-a53"]}


@pytest.fixture(scope="session")
def fake_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The command of the fake firmware, by the name of its build."""
    folder = tmp_path_factory.mktemp("serve")
    built: dict[str, Path] = {}

    def get(build: str) -> list[str]:
        if build not in built:
            built[build] = build_fake(folder / build, build)
        return [*EMULATOR[build], str(built[build])]

    return get


@pytest.fixture
def boards() -> Iterator[list[Board]]:
    started: list[Board] = []
    yield started
    for board in started:
        board.close()


@pytest.fixture
def start_fake(fake_for: Callable[[str], list[str]], boards: list[Board]) -> Start:
    """Start a fake firmware: (arguments, build=, fake=, noise=)."""

    def start(*arguments: str, build: str = "sanitized", **how: Any) -> Board:
        boards.append(Board([*fake_for(build), "--serve", *arguments], **how))
        return boards[-1]

    return start
