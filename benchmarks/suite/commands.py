"""Runs programs, and measures them from outside."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from suite.places import BENCHMARKS, WORK, Json

STATUS = re.compile(r"^(?:COLIBRI|PEER)_STATUS (\{.*\})$", re.MULTILINE)
TIME_LIMIT_S = 1800


class CommandFailedError(Exception):
    """A program ended with another exit code than 0; the message holds its last lines."""


def run(command: Sequence[str | Path], *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Raises CommandFailedError."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False, cwd=cwd)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise CommandFailedError(f"{' '.join(words)[:400]}: exit code {done.returncode}\n{tail}")
    return done


def parse_status(text: str) -> Json:
    """The last status line of a firmware or of the peer's driver. Raises ValueError where there is none."""
    found = STATUS.findall(text)
    if not found:
        raise ValueError(f"no status line in: {text[-300:]!r}")
    status: Json = json.loads(found[-1])
    return status


@dataclass(frozen=True)
class Launched:
    """One run, from outside: microseconds from before its start, bytes of its largest resident set."""

    first_us: int
    total_us: int
    peak_bytes: int
    minor_faults: int
    major_faults: int
    status: Json  # {} of a program without a status line


@cache
def tool(name: str, *flags: str) -> Path:
    """A C program of ours in benchmarks/tools, compiled anew in every session: it takes a second."""
    binary = WORK / "tools" / name
    binary.parent.mkdir(parents=True, exist_ok=True)
    source = BENCHMARKS / "tools" / f"{name}.c"
    run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", *flags, source, "-o", binary])
    return binary


def launch(command: Sequence[str | Path], *, has_status: bool = True) -> Launched:
    """Run a program under tools/launch.c. Raises CommandFailedError."""
    done = run([tool("launch"), *command])
    seen = json.loads(done.stdout)
    status = parse_status(done.stderr) if has_status else {}
    return Launched(
        seen["first_us"],
        seen["total_us"],
        seen["peak_kib"] * 1024,
        seen["minor_faults"],
        seen["major_faults"],
        status,
    )
