"""A firmware on a console that a test talks to (the fixture `dut`). Every wait has a deadline."""

from __future__ import annotations

import io
import os
import re
import select
import signal
import termios
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run.board_dut import READY
from colibri_build.run.client import Client
from colibri_build.run.console import BAD_PATTERNS, SHOWN_CHARACTERS
from colibri_build.run.link import Link
from colibri_build.run.process import firmware_environment, require_elf
from colibri_build.run.runner import Runner
from colibri_build.run.serial_port import SerialPort
from colibri_build.run.status_line import check_end

__tracebackhide__ = True  # pytest shows the line of the test that failed instead of ours
_POLL_S = 0.005
_CTRL_C = "\x03"
_SERVE = ("--serve",)
_READ_BYTES = 4096


class Dut:
    """The device under test: one firmware at a time, its output and errors on one console as on a serial line.

    Timeouts are in seconds; `timeout_s` holds where a call names none, and `multiplier` scales all of them (for slow
    machines). `bad_patterns` are regular expressions. `serve_options` are added to --serve.
    """

    def __init__(
        self,
        runner: Runner,
        elf: Path,
        timeout_s: float = 60.0,
        multiplier: float = 1.0,
        bad_patterns: Sequence[str] = BAD_PATTERNS,
        serve_options: Sequence[str] = (),
    ) -> None:
        self.runner = runner
        self.elf = require_elf(elf)
        self.last_status: Mapping[str, Any] = {}
        self.bad_patterns = tuple(bad_patterns)
        self.serve_options = tuple(serve_options)
        self._timeout_s = timeout_s
        self._multiplier = multiplier
        self._console = io.StringIO()
        self._child: pexpect.spawn | None = None
        self._client: Client | None = None

    @property
    def console(self) -> str:
        """Everything that the firmware has said since its start, as far as it was read; without carriage returns."""
        return self._console.getvalue().replace("\r", "")

    def start(self, arguments: Iterable[str] = ()) -> None:
        """Start the firmware with these options; one that still runs is ended first. Raises RunError."""
        self.close()
        self._console = io.StringIO()
        command, *rest = self.runner.command(str(self.elf), *arguments)
        try:
            self._child = pexpect.spawn(
                command, rest, env=firmware_environment(), encoding="utf-8", codec_errors="replace",
                echo=False, preexec_fn=_plain_terminal, maxread=65536,
            )  # fmt: skip
        except (pexpect.ExceptionPexpect, OSError, ValueError) as error:
            raise RunError(f"cannot start {command}: {error}", hint="check that it is made for this machine") from error
        self._child.delaybeforesend = None
        self._child.read_nonblocking = _without_carriage_returns(self._child.read_nonblocking)
        self._child.logfile_read = self._console

    def serve(self, timeout: float | None = None) -> None:
        """Have the firmware listen on its console: after this it waits for a typed line."""
        self.start([*_SERVE, *self.serve_options])
        self.expect(READY, timeout)

    def session(self) -> Client:
        """Return a client of the serial protocol; the firmware is started if it is not. Typing ends its session."""
        if self._child is None:
            self.serve()
        if self._client is None:
            line = SerialPort(_Terminal(self._running()), f"the console of {self.elf.name}")
            self._client = Client(Link(line, on_text=self._take_text))
        return self._client

    def expect(self, pattern: str | Sequence[str], timeout: float | None = None) -> re.Match[str]:
        """Wait for a regular expression, or the first of several, and return the match.

        Only text after the last match is searched. Raises DeadlineError after `timeout`; RunError at once if the
        firmware ends or prints a bad pattern before.
        """
        self._end_session()
        wanted = [pattern] if isinstance(pattern, str) else list(pattern)
        self._wait([*wanted, *self.bad_patterns], timeout, " or ".join(repr(item) for item in wanted))
        match = self._running().match
        assert isinstance(match, re.Match)
        if self._running().match_index >= len(wanted):
            raise RunError(f"the console says '{match.group()}'{self._tail()}", hint="the firmware's options and build")
        return match

    def write(self, text: str) -> None:
        """Send text to the firmware's standard input. A line holds at most 4095 bytes."""
        self._end_session()
        try:
            self._running().send(text)
        except OSError as error:
            raise RunError(f"cannot write to the firmware: {error.strerror}{self._tail()}", hint="--stdin") from error

    def end_input(self) -> None:
        """Tell the firmware that its input has ended."""
        self._running().sendeof()

    def interrupt(self) -> None:
        """Type Ctrl-C: SIGINT to a firmware that has not set the terminal to raw bytes, as --serve does."""
        self.write(_CTRL_C)

    def status(self, timeout: float | None = None) -> Mapping[str, Any]:
        """Wait for the end of the run and return its status object; `exit_code` is in it.

        Raises DeadlineError, or RunError if the run crashed or did not end with exactly one status line.
        """
        deadline = time.monotonic() + self.seconds(timeout)
        self._end_session()
        self._wait([pexpect.EOF], timeout, "the end of the run")
        child = self._running()
        while child.isalive():
            if time.monotonic() > deadline:
                raise DeadlineError(f"{self.elf.name} closed its console but did not end", hint="a longer timeout")
            time.sleep(_POLL_S)
        exit_code = child.exitstatus if child.exitstatus is not None else -int(child.signalstatus)
        self.last_status = check_end(exit_code, self.console, self.runner.board)
        return self.last_status

    def seconds(self, timeout: float | None) -> float:
        """Return a wait's length; None is the default."""
        return (self._timeout_s if timeout is None else timeout) * self._multiplier

    def finish(self, timeout: float) -> None:
        """End a firmware that serves in order, where one does. Raises RunError, DeadlineError."""
        if self._client is not None:
            self._client.shutdown()
            self._client = None
            self.status(timeout)

    def close(self) -> None:
        """End the firmware, whatever it does."""
        if self._child is None:
            return
        child, self._child, self._client = self._child, None, None
        if child.isalive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        child.close()

    def _running(self) -> pexpect.spawn:
        if self._child is None:
            raise RunError("the firmware was not started", hint="dut.start([...]) first")
        return self._child

    def _end_session(self) -> None:
        if self._client is not None:
            self._client.close()

    def _take_text(self, data: bytes) -> None:
        self._console.write(data.decode("utf-8", "replace"))

    def _wait(self, patterns: list[Any], timeout: float | None, what: str) -> None:
        child, seconds = self._running(), self.seconds(timeout)
        try:
            child.expect(patterns, timeout=seconds)
        except pexpect.TIMEOUT:
            raise DeadlineError(f"no {what} within {seconds:g} s{self._tail()}", hint="--timeout-multiplier") from None
        except pexpect.EOF:
            raise RunError(
                f"the firmware ended before {what} came{self._tail()}", hint="dut.status() says why"
            ) from None

    def _tail(self) -> str:
        said = self.console[-SHOWN_CHARACTERS:]
        return f"; the console's end: {said!r}" if said else "; the console is empty"


def _without_carriage_returns(read: Callable[..., str]) -> Callable[..., str]:
    """As a serial console's text is searched, too."""
    return lambda *arguments, **named: read(*arguments, **named).replace("\r", "")


class _Terminal:
    """The console of a child as the bytes of a line (SerialPort's channel). The child owns it."""

    def __init__(self, child: pexpect.spawn) -> None:
        self._child = child

    def read(self, timeout_s: float) -> bytes:
        ready, _, _ = select.select([self._child.child_fd], [], [], timeout_s)
        return os.read(self._child.child_fd, _READ_BYTES) if ready else b""

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._child.child_fd, data) :]

    def close(self) -> None:
        pass


def _plain_terminal() -> None:
    """In the child: no echo, no CR before LF; lines and the end of input stay as terminals have them."""
    attributes = termios.tcgetattr(0)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, attributes)
