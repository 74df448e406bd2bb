"""Proves that a toolchain can make what we need: a static executable for the board's machine."""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path

from colibri_build.errors import CompileError, ToolchainError
from colibri_build.target.commands import environment, run_quietly, shown
from colibri_build.target.toolchain_profile import Toolchain

# e_machine of the ELF header, a 16-bit number at byte 18.
ELF_MACHINES = {"aarch64": 183, "x86_64": 62}
_LEAST_FREE_BYTES = 4 * 1024 * 1024  # a static program, its object and the linker's working files
_LINK_SECONDS = 600  # zig compiles musl at first use

_PROGRAM = """\
#include <math.h>
#include <pthread.h>
#include <stdio.h>

static void *work(void *argument) {
    return argument;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, argv) != 0 || pthread_join(thread, NULL) != 0) {
        return 1;
    }
    return printf("hello %.1f\\n", (double)sqrtf((float)argc)) < 0;
}
"""

_passed: set[tuple[Toolchain, str]] = set()


def check_toolchain(toolchain: Toolchain, environ: Mapping[str, str] | None = None) -> None:
    """Compile and link a small threaded program with the toolchain's own flags. A success is remembered.

    Raises ToolchainError with the compiler's first error line, or if the result is for another machine; CompileError
    if there is no room to try.
    """
    key = (toolchain, environment(environ).get("PATH", ""))
    if key in _passed:
        return
    try:
        with tempfile.TemporaryDirectory(prefix="colibri-check-") as folder:
            machine = elf_machine(link_program(toolchain, Path(folder), environ))
    except OSError as error:
        raise _no_room(toolchain, error.strerror) from error
    if machine != ELF_MACHINES[toolchain.arch]:
        raise ToolchainError(
            f"toolchain {toolchain.name}: {shown(toolchain.cc)} made a binary for machine {machine}, "
            f"{toolchain.arch} is {ELF_MACHINES[toolchain.arch]}",
            hint=toolchain.install,
        )
    _passed.add(key)


def link_program(toolchain: Toolchain, folder: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Build the program in `folder` and return its path. Raises ToolchainError."""
    (folder / "check.c").write_text(_PROGRAM, encoding="ascii")
    compiling = (*toolchain.cc, *toolchain.cflags, "-c", "check.c", "-o", "check.o")
    linking = (*toolchain.cc, "check.o", *toolchain.ldflags, "-o", "check")
    for what, command in (("compile C", compiling), ("link a static program", linking)):
        answer = run_quietly(command, environ, cwd=folder, timeout=_LINK_SECONDS)
        if not answer.ok:
            if shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
                raise _no_room(toolchain, "the disk is full")
            raise ToolchainError(
                f"toolchain {toolchain.name}: {shown(toolchain.cc)} cannot {what}: {_error_line(answer.stderr)}",
                hint="a newer compiler" if "unrecognized" in answer.stderr else toolchain.install,
            )
    return folder / "check"


def _no_room(toolchain: Toolchain, reason: str | None) -> CompileError:
    """No ToolchainError: another toolchain would fail as well, and installing one would not help."""
    return CompileError(
        f"toolchain {toolchain.name} could not be tried in {tempfile.gettempdir()}: {reason}",
        hint="make room there, or set TMPDIR to another folder",
    )


def elf_machine(path: Path) -> int:
    """e_machine of a file; 0 if it is no little-endian ELF."""
    with path.open("rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[:4] != b"\x7fELF" or header[5] != 1:
        return 0
    return int(struct.unpack_from("<H", header, 18)[0])


def _error_line(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next(
        (line for line in lines if "error" in line or "cannot find" in line), lines[0] if lines else "no message"
    )
