"""scripts/setup.sh on machines that lack something: one line that says what to do, and nothing half done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("sh", "cat", "cksum", "dirname", "grep", "env", "rm", "id")


class Machine:
    """A checkout in a folder with a blank in its name, and a PATH with only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self.bin = folder / "a b", folder / "bin"
        (self.checkout / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "setup.sh", self.checkout / "scripts")
        shutil.copy(ROOT / "pyproject.toml", self.checkout)
        self.bin.mkdir()
        for name in PROGRAMS:
            program = shutil.which(name)
            assert program is not None
            (self.bin / name).symlink_to(program)

    def add(self, name: str, body: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def setup(self, goal: str = "demo", python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "PYTHON": python, "HOME": os.environ.get("HOME", "/")}
        script = str(self.checkout / "scripts" / "setup.sh")
        return subprocess.run([script, goal], env=environment, capture_output=True, text=True, cwd="/")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


def test_an_old_python_is_said(machine: Machine) -> None:
    machine.add("python3", "exit 1")
    said = last_line(machine.setup(python="python3"))
    assert said.startswith("setup: no Python 3.11 or newer found; try: install python3.11")


def test_without_apt_the_packages_are_named(machine: Machine) -> None:
    said = last_line(machine.setup())
    assert "apt is not here and 'aarch64-linux-gnu-gcc' is missing" in said
    assert "qemu-user-static" in said


def test_without_root_and_sudo_the_command_is_named(machine: Machine) -> None:
    machine.add("dpkg-query", "exit 1")
    machine.add("apt-get", "exit 0")
    machine.add("id", "echo 1000")
    assert "as root: apt-get install gcc " in last_line(machine.setup())


def test_apt_without_network_is_said(machine: Machine) -> None:
    machine.add("dpkg-query", "exit 1")
    machine.add("apt-get", "exit 100")
    machine.add("id", "echo 0")
    said = last_line(machine.setup())
    assert said.startswith("setup: apt-get could not install gcc ")
    assert "check the network" in said
    assert not (machine.checkout / ".venv").exists()


def test_pip_without_network_is_said_and_tried_again(machine: Machine) -> None:
    machine.add("aarch64-linux-gnu-gcc", "exit 0")
    machine.add("qemu-aarch64-static", "exit 0")
    venv = machine.checkout / ".venv" / "bin"
    venv.mkdir(parents=True)
    for name in ("pip", "python"):
        (venv / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (venv / name).chmod(0o755)
    assert "setup: pip could not install" in last_line(machine.setup())
    (venv / "python").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    assert machine.setup().returncode == 0
    assert machine.setup().stderr == "", "the second time must be quick"
    moved = machine.checkout.rename(machine.checkout.with_name("c d"))
    machine.checkout = moved
    assert "installing the Python package" in machine.setup().stderr


def test_an_unknown_goal_is_refused(machine: Machine) -> None:
    assert "unknown goal 'nonsense'; try: demo, test, oracle or bench" in last_line(machine.setup("nonsense"))
