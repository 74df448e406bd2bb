"""Firmware around a fake model, and the boards that run it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri_build.run.process import Runner, runner_for
from colibri_build.target.board import load_board
from support.fake_firmware import build_fake


@pytest.fixture(scope="session")
def fake_native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake(tmp_path_factory.mktemp("native") / "fake firmware", "native")


@pytest.fixture(scope="session")
def fake_a53(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake(tmp_path_factory.mktemp("a53") / "fake firmware", "aarch64")


@pytest.fixture
def native() -> Runner:
    return Runner("x86-64-v3", "native", ())


@pytest.fixture
def a53() -> Runner:
    return runner_for(load_board("cortex-a53"))


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """A shell script in the place of a firmware."""

    def write(text: str) -> Path:
        path = tmp_path / "firmware"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[str, str], Path]:
    """A small C program for one machine."""

    def build(compiler: str, source: str) -> Path:
        path = tmp_path / "program.c"
        path.write_text(source)
        subprocess.run([compiler, "-O1", "-static", str(path), "-o", str(tmp_path / "program")], check=True)
        return tmp_path / "program"

    return build
