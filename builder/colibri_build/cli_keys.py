"""What a person types, or a pipe delivers: read without waiting, one key at a time on a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Iterator
from types import FrameType

CTRL_CLOSE_BRACKET = 0x1D  # Ctrl-]
_ERASE, _KILL = b"\x7f\b", b"\x15"


class Keys:
    """Standard input. `is_terminal`: keys come singly and without echo; `ended`: there is no more."""

    def __init__(self) -> None:
        self.ended = False
        try:
            self._fd: int | None = sys.stdin.fileno()
        except (OSError, ValueError, AttributeError):
            self._fd, self.ended = None, True
        self.is_terminal = self._fd is not None and os.isatty(self._fd)

    def read(self) -> bytes:
        """Return what is there; b"" if nothing is."""
        if self._fd is None or self.ended or not select.select([self._fd], [], [], 0)[0]:
            return b""
        try:
            data = os.read(self._fd, 4096)
        except OSError:
            data = b""
        self.ended = not data
        return data

    @contextlib.contextmanager
    def singly(self) -> Iterator[None]:
        """Take keys as they are typed; Ctrl-C and Ctrl-] raise KeyboardInterrupt. Puts the terminal back at the end."""
        if not self.is_terminal or self._fd is None:
            yield
            return
        before = termios.tcgetattr(self._fd)
        attributes = termios.tcgetattr(self._fd)
        attributes[0] &= ~(termios.ICRNL | termios.IXON)
        attributes[3] &= ~(termios.ICANON | termios.ECHO)
        attributes[6][termios.VQUIT] = bytes((CTRL_CLOSE_BRACKET,))
        handler = signal.signal(signal.SIGQUIT, _interrupt)
        try:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, attributes)
            yield
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)
            signal.signal(signal.SIGQUIT, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class LineEditor:
    """Keys in, whole lines out; Backspace and Ctrl-U edit. `text` is the line so far."""

    def __init__(self) -> None:
        self._line = bytearray()

    @property
    def text(self) -> str:
        """The line that is being typed."""
        return self._line.decode("utf-8", "replace")

    def type(self, data: bytes) -> list[str]:
        """Take keys; return the lines that they end, without the empty ones."""
        lines: list[str] = []
        for byte in data:
            if byte in b"\r\n":
                lines += [self.text] if self._line else []
                self._line.clear()
            elif byte in _ERASE:
                self._erase()
            elif byte in _KILL:
                self._line.clear()
            elif byte >= 0x20 or byte == 0x09:
                self._line.append(byte)
        return lines

    def _erase(self) -> None:
        """Take back one character, which may have several bytes."""
        while self._line and self._line.pop() & 0xC0 == 0x80:
            pass
