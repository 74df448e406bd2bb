"""Runs a compiler's or emulator's own commands: where it is, what version, what machine it is for."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# What a compiler process needs. Everything else stays out: CFLAGS, LDFLAGS, CPATH, LIBRARY_PATH, GCC_EXEC_PREFIX,
# SOURCE_DATE_EPOCH and their like change a build without a trace.
_KEPT = (
    "PATH",
    "HOME",
    "TMPDIR",
    "USER",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "XDG_CACHE_HOME",
    "ZIG_GLOBAL_CACHE_DIR",
    "ZIG_LOCAL_CACHE_DIR",
)


@dataclass(frozen=True)
class Outcome:
    """What a process said. `exit_code` is 127 if it could not be started, 124 if it took too long."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it ended with 0."""
        return self.exit_code == 0

    @property
    def first_line(self) -> str:
        """First line with text, of stdout before stderr."""
        lines = (self.stdout + "\n" + self.stderr).splitlines()
        return next((line.strip() for line in lines if line.strip()), "")


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for compiler, linker and objdump processes: only what they need, in the C locale."""
    source = os.environ if environ is None else environ
    return {**{name: source[name] for name in _KEPT if name in source}, "LC_ALL": "C"}


def run_quietly(
    argv: Sequence[str], environ: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 20
) -> Outcome:
    """Run a command in the cleaned environment without input. Never raises for what the command does."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment(environ),
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        return Outcome(127, "", f"{argv[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Outcome(124, "", f"{argv[0]}: no answer in {timeout:.0f} s")
    return Outcome(done.returncode, done.stdout, done.stderr)


def find_program(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Path of a program on the PATH of `environ` (default: ours); None if it is not there."""
    return shutil.which(name, path=environment(environ).get("PATH", ""))


def find_command(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> bool:
    """Whether a command can be started: its program is there, and so is the module of a `python -m MODULE`."""
    if find_program(argv[0], environ) is None:
        return False
    if argv[0] == sys.executable and argv[1] == "-m":
        return importlib.util.find_spec(argv[2]) is not None
    return True


def shown(argv: Sequence[str]) -> str:
    """Return a compiler's name for messages: its program, or the module of our Python."""
    return f"python -m {argv[2]}" if argv[0] == sys.executable else argv[0]


def disassembles(argv: Sequence[str], arch: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether this objdump (GNU or LLVM) knows the architecture."""
    if not find_command(argv, environ):
        return False
    llvm = "llvm" in Path(argv[0]).name
    listing = run_quietly((argv[0], "--version" if llvm else "--help"), environ).stdout
    return {"aarch64": "aarch64", "x86_64": "x86-64"}[arch] in listing
