"""Installed as a wheel, away from any checkout, the builder must find its templates, C files, boards and toolchains."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from support.tiny_checkpoint import write_tiny_checkpoint

ROOT = Path(__file__).parents[2]


def test_a_wheel_builds_and_verifies_a_firmware_from_any_folder(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", wheels, ROOT], check=True, capture_output=True)
    site = tmp_path / "site packages"
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    write_tiny_checkpoint(tmp_path / "tiny")
    environment = {**os.environ, "PYTHONPATH": str(site), "COLIBRI_CACHE": str(tmp_path / "cache")}
    program = (
        f"import colibri_build, sys; assert colibri_build.__file__.startswith({str(site)!r}); "
        "from colibri_build.cli import main; main()"
    )
    arguments = ["-b", "x86-64-v3", "--group-size", "32", "--verify", "tiny"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / "x86-64-v3" / "tiny" / "colibri_inference").is_file()
