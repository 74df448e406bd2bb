"""What went wrong, from what a compiler or linker printed."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Sequence

from colibri_build.errors import CompileError

_DISK_FULL = re.compile(r"No space left on device", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"out of memory|cannot allocate memory|memory exhausted|Killed signal terminated|bad_alloc", re.IGNORECASE
)
_OUT_OF_REACH = re.compile(r"relocation truncated to fit|relocation \S+ out of range", re.IGNORECASE)
_ERROR = re.compile(r"\berror\b|undefined reference|relocation truncated|multiple definition", re.IGNORECASE)


def failure(what: str, command: Sequence[str], exit_code: int, output: str) -> CompileError:
    """Make the error for a process that failed. `what` names the work; a negative exit code is a signal."""
    if _DISK_FULL.search(output):
        return CompileError(f"{what}: the disk is full", hint="free some space, or set TMPDIR and -o to another disk")
    if _NO_MEMORY.search(output) or exit_code == -signal.SIGKILL:
        return CompileError(
            f"{what}: the compiler was killed, probably for lack of memory",
            hint="close other programs, or use --embed incbin",
        )
    if _OUT_OF_REACH.search(output):
        return CompileError(
            f"{what}: weights, KV cache and buffers together are more than the code reaches, 2 GiB on x86-64",
            hint="a smaller --ctx",
        )
    if exit_code < 0:
        return CompileError(f"{what}: {command[0]} was ended by {_signal_name(-exit_code)}", hint="build again")
    return CompileError(f"{what}: {first_error(output, exit_code)}", hint=f"in the build folder: {shlex.join(command)}")


def first_error(output: str, exit_code: int) -> str:
    """First line that reports an error, else the first line, else the exit code."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if _ERROR.search(line):
            return line
    return lines[0] if lines else f"exit code {exit_code} without a message"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
