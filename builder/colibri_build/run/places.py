"""Where a board is that a test talks to: at a serial port, behind a command on a PTY, or a whole machine under QEMU."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from colibri_build.errors import RunError
from colibri_build.run.paced_board import FirmwareProcess, PacedBoard
from colibri_build.run.qemu_system import DirectBoot, Hardware, QemuSystem
from colibri_build.run.serial_port import SerialPort
from colibri_build.target.board import Board

__tracebackhide__ = True  # pytest shows the line of the test that failed instead of ours


class Place(Protocol):
    """A board's place. `boots`: opening it starts the board, which then says READY by itself."""

    @property
    def boots(self) -> bool:
        """Whether `open` starts the firmware."""

    def open(self, arguments: Iterable[str] | None) -> SerialPort:
        """Open the line; `arguments` of the firmware, None: it serves. Raises RunError."""

    def trouble(self) -> str | None:
        """Return why nothing can come any more, if that is known."""

    def close(self) -> None:
        """End what `open` started, but the line."""


def _refuse(arguments: Iterable[str] | None) -> None:
    if arguments is not None:
        raise RunError(
            "a firmware on a serial line has been started already, with options of its own",
            hint="dut.serve(), and options with each prompt: firmware.generate(prompt, max_tokens=...)",
        )


@dataclass
class SerialPlace:
    """A board at a serial port, whose firmware serves. `is_fresh`: it was just flashed and boots once more."""

    url: str
    baud: int
    is_fresh: bool = False

    @property
    def boots(self) -> bool:
        """Only after it was flashed."""
        return self.is_fresh

    def open(self, arguments: Iterable[str] | None) -> SerialPort:
        """Open the port for us alone."""
        _refuse(arguments)
        return SerialPort.open(self.url, self.baud)

    def trouble(self) -> str | None:
        """Nobody knows."""
        return None

    def close(self) -> None:
        """The board goes on."""
        self.is_fresh = False


class CommandPlace:
    """A command whose console is a PTY, paced at a baud rate as a serial line."""

    boots = True

    def __init__(self, command: str, baud: int) -> None:
        self._command, self._baud = command, baud
        self._running = ExitStack()
        self._process: FirmwareProcess | None = None

    def open(self, arguments: Iterable[str] | None) -> SerialPort:
        """Start the command and open its line."""
        _refuse(arguments)
        self.close()
        try:
            self._process = FirmwareProcess(shlex.split(self._command))
        except (OSError, ValueError, IndexError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RunError(f"cannot start '{self._command}': {reason}", hint="--device-serial-pty COMMAND") from error
        board = self._running.enter_context(PacedBoard(self._process, baud=self._baud))
        return SerialPort.open(board.port, self._baud)

    def trouble(self) -> str | None:
        """Whether the command has ended."""
        code = None if self._process is None else self._process.process.poll()
        return None if code is None else f"'{self._command}' has ended with {code}"

    def close(self) -> None:
        """End the command."""
        self._running.close()
        self._process = None


class SystemPlace:
    """A machine under QEMU that boots the firmware of an image. `multiplier` scales its own waits."""

    boots = True

    def __init__(self, board: Board, image: Path, kernel: Path, initrd: Path, multiplier: float = 1.0) -> None:
        self._board, self._image, self._kernel, self._initrd = board, image, kernel, initrd
        self._multiplier = multiplier
        self._running = ExitStack()

    def open(self, arguments: Iterable[str] | None) -> SerialPort:
        """Switch the machine on."""
        self.close()
        options = ("--serve",) if arguments is None else tuple(arguments)
        boot = DirectBoot(self._kernel, self._initrd, arguments=options)
        system = QemuSystem(self._board, self._image, boot, Hardware(), self._multiplier)
        return SerialPort(self._running.enter_context(system).console, f"the console of {self._board.name} under QEMU")

    def trouble(self) -> str | None:
        """The machine's console says it itself."""
        return None

    def close(self) -> None:
        """Switch it off."""
        self._running.close()
