"""Builds that the plugin's tests run on: a real model, compiled once for this machine and once for a Cortex-A53."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri_build import pipeline
from colibri_build.image.make import ImageOptions
from colibri_build.pipeline import BuildResult
from colibri_build.run.runner import runner_for
from support.builds import build_tiny, quick_board
from support.fake_firmware import build_fake
from support.plugin_session import PluginSession

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plugin")


@pytest.fixture(scope="session")
def native_build(folder: Path) -> BuildResult:
    return build_tiny(folder, quick_board(folder), out=folder / "native")


@pytest.fixture(scope="session")
def a53_build(folder: Path) -> BuildResult:
    """For the board of the project, but compiled in half the time."""
    profile = folder / "quick-a53.toml"
    flags = '["-march=armv8-a+crc", "-mtune=cortex-a53", "-mfix-cortex-a53-835769", "-O1"]'
    profile.write_text(f'extends = "cortex-a53"\n[flags.gcc]\ncompile = {flags}\n', encoding="utf-8")
    return build_tiny(folder, str(profile), out=folder / "a53")


@pytest.fixture(scope="session")
def a53_command(a53_build: BuildResult) -> str:
    """A command that stands for an A53 board."""
    runner = runner_for(a53_build.board, "qemu-user")
    return " ".join(runner.command(str(a53_build.firmware.elf), "--serve"))


@pytest.fixture(scope="session")
def native_image(folder: Path, native_build: BuildResult) -> Path:
    image, _ = pipeline.image(native_build.out, folder / "image", ImageOptions())
    return Path(image)


@pytest.fixture(scope="session")
def fake_native(folder: Path) -> Path:
    """The program around a fake model: there in a second, where the model does not matter."""
    return build_fake(folder / "fake", "native")


@pytest.fixture(scope="session")
def instruction_plugin(folder: Path) -> Path:
    library = folder / "instructions.so"
    source = ROOT / "benchmarks" / "instruction_plugin.c"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., PluginSession]:
    """Run pytest as a user does: session("options", files or source)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    def run(*arguments: object, source: str = "", timeout_s: float = 240.0) -> PluginSession:
        return PluginSession.run(tmp_path, [str(item) for item in arguments], source, environment, timeout_s)

    return run
