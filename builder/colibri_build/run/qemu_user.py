"""QEMU in user mode: one process, the board's exact CPU, no kernel and no disk."""

from __future__ import annotations

import shutil

from colibri_build.errors import RunError
from colibri_build.target.board import Board


def emulator_prefix(board: Board) -> tuple[str, ...]:
    """Return the command prefix of the board's emulator. Raises RunError, naming the package, if none is installed."""
    for command in board.qemu.commands:
        found = shutil.which(command)
        if found is not None:
            return (found, *board.qemu.args)
    raise RunError(
        f"no emulator for {board.arch} is installed (looked for {', '.join(board.qemu.commands)} in PATH)",
        hint="apt-get install qemu-user-static",
    )
