"""How a firmware is started: a prefix of a command. Nobody above this module asks which one it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from colibri_build.errors import RunError
from colibri_build.run.host_cpu import HostCpu, missing_features, read_host_cpu
from colibri_build.run.qemu_user import emulator_prefix
from colibri_build.target.board import Board

RunnerKind = Literal["auto", "native", "qemu-user"]


@dataclass(frozen=True)
class Runner:
    """A way to start a board's firmware. `kind` is "native" or "qemu-user"."""

    board: str
    kind: str
    prefix: tuple[str, ...]

    def command(self, elf: str, *arguments: str) -> tuple[str, ...]:
        """Return the whole command line of a run."""
        return (*self.prefix, elf, *arguments)

    def __str__(self) -> str:
        return f"{self.board}, {' '.join(self.prefix) if self.prefix else 'native'}"


def runner_for(board: Board, kind: str = "auto", host: HostCpu | None = None) -> Runner:
    """Choose how to run a board's firmware on this machine.

    "auto" is native where the profile allows it and this CPU has every feature of the board, else QEMU in user mode
    with the profile's exact CPU. Raises RunError if that is impossible here, naming the missing feature or package.
    """
    host = host or read_host_cpu()
    if kind == "auto":
        kind = "native" if board.qemu.native and not missing_features(board, host) else "qemu-user"
    if kind == "native":
        missing = missing_features(board, host)
        if missing:
            raise RunError(
                f"this machine ({host.machine}) cannot run {board.name} natively: it lacks {', '.join(missing)}",
                hint="--device qemu-user",
            )
        return Runner(board.name, kind, ())
    if kind == "qemu-user":
        return Runner(board.name, kind, emulator_prefix(board))
    raise RunError(f"unknown device type '{kind}'", hint="one of: auto, native, qemu-user")
