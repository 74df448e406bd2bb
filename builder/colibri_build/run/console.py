"""A console that an emulator or a test talks through: bytes, a transcript, and waits that end early for bad news."""

from __future__ import annotations

import codecs
import re
import select
import socket
import time
from collections.abc import Callable, Sequence

from colibri_build.errors import DeadlineError, RunError

# Words that no healthy console prints; seeing one ends a wait at once.
BAD_PATTERNS = (
    r"uncaught target signal \d+",
    r"Kernel panic",
    r"Internal error: Oops",
    r"Out of memory: Killed",
    r"input overrun",
    r"FATAL: ",
)
SHOWN_CHARACTERS = 400  # of a console's end, in a message
_OVERLAP = 200  # characters of older text in which a bad pattern may begin
_CHUNK_BYTES = 65536
_HEAR_OUT_S = 0.3
_WRITE_S = 10.0  # a peer that takes no byte for so long is stuck


class Console:
    """A connected stream socket with a board behind it. Also a channel for SerialPort (`read`, `write`, `close`).

    `text` is everything that was read, without carriage returns. `why_gone` says in a few words why the peer may have
    closed the socket. `bad_patterns` are regular expressions.
    """

    def __init__(
        self,
        connected: socket.socket,
        why_gone: Callable[[], str] = lambda: "the other end is gone",
        bad_patterns: Sequence[str] = BAD_PATTERNS,
    ) -> None:
        self.text = ""
        self._socket = connected
        self._why_gone = why_gone
        self._bad = re.compile("|".join(f"(?:{pattern})" for pattern in bad_patterns)) if bad_patterns else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at = 0  # in `text`: behind the last match
        self._checked = 0  # in `text`: up to here nothing bad was found

    def read(self, timeout_s: float) -> bytes:
        """Return what has come, waiting up to `timeout_s` for the first byte; b"" if none came.

        Raises RunError if the peer is gone or has said something bad.
        """
        self._check()  # what came with the last match
        data = self._receive(timeout_s)
        self._check()
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises DeadlineError if the peer does not take it, RunError if it is gone."""
        try:
            self._socket.settimeout(_WRITE_S)
            self._socket.sendall(data)
        except TimeoutError:
            raise DeadlineError(
                f"the console has taken no byte for {_WRITE_S:g} s{self.tail()}", hint="--serve"
            ) from None
        except OSError:
            raise self._gone("before it took its input") from None

    def expect(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Wait for a regular expression in the text behind the last match, and return the match.

        Raises DeadlineError after `timeout_s`; RunError at once if the peer is gone or says something bad before.
        """
        wanted, deadline = re.compile(pattern), time.monotonic() + timeout_s
        while (match := wanted.search(self.text, self._at)) is None:
            self._check()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise DeadlineError(f"no {pattern!r} within {timeout_s:g} s{self.tail()}", hint="a longer timeout")
            self._receive(left_s, f"before {pattern!r} came")
        self._at = self._checked = match.end()
        return match

    def drain(self, timeout_s: float) -> bool:
        """Read until the peer closes the socket; return whether it did within `timeout_s`. Raises RunError as expect."""
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            if self._is_readable(left_s) and not self._append():
                self._check()
                return True
            self._check()
        return False

    def tail(self) -> str:
        """Return the end of the transcript for a message."""
        said = self.text[-SHOWN_CHARACTERS:]
        return f"; the console's end: {said!r}" if said else "; the console is empty"

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for it together with others."""
        return self._socket.fileno()

    def forget(self) -> None:
        """Drop all text but the end that messages show."""
        self.text = self.text[-SHOWN_CHARACTERS:]
        self._at = self._checked = len(self.text)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _receive(self, timeout_s: float, when: str = "while it was waited for") -> bytes:
        if not self._is_readable(timeout_s):
            return b""
        data = self._append()
        if not data:
            self._check()
            raise self._gone(when)
        return data

    def _is_readable(self, timeout_s: float) -> bool:
        return bool(select.select([self._socket], [], [], max(0.0, timeout_s))[0])

    def _append(self) -> bytes:
        """Read once; b"" at the end of the stream."""
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except ConnectionError:
            return b""
        self.text += self._decoder.decode(data, final=not data).replace("\r", "")
        return data

    def _check(self) -> None:
        """Raise RunError if something bad is in the text that came since the last call."""
        found = self._bad.search(self.text, max(self._at, self._checked - _OVERLAP)) if self._bad else None
        self._checked = len(self.text)
        if found:
            self._at = found.end()  # said once
            self._hear_out()
            line = self.text[found.start() :].partition("\n")[0]
            raise RunError(f"the console says '{line}'{self.tail()}", hint="the boot arguments and the build")

    def _hear_out(self) -> None:
        """Read what belongs to the bad news: a line arrives in pieces, a panic has many."""
        deadline = time.monotonic() + _HEAR_OUT_S
        while self._is_readable(deadline - time.monotonic()) and self._append():
            pass

    def _gone(self, when: str) -> RunError:
        return RunError(f"{self._why_gone()} {when}{self.tail()}", hint="its last words say why")
