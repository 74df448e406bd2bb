"""The program around a fake model: sanitized on this machine, and for A53 under QEMU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.fake_firmware import Program, build_fake

PREFIXES = {"sanitized": [], "aarch64": ["qemu-aarch64-static", "-cpu", "cortex-a53"]}


@pytest.fixture(scope="session")
def program_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Program]:
    folder = tmp_path_factory.mktemp("fake")
    built: dict[str, Path] = {}

    def get(build: str) -> Program:
        if build not in built:
            built[build] = build_fake(folder / build, build)
        return Program([*PREFIXES[build], str(built[build])])

    return get


@pytest.fixture(params=["sanitized", "aarch64"])
def program(request: pytest.FixtureRequest, program_for: Callable[[str], Program]) -> Program:
    return program_for(request.param)


@pytest.fixture
def sanitized(program_for: Callable[[str], Program]) -> Program:
    return program_for("sanitized")
