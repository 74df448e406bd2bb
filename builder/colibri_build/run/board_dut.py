"""A board on a serial line as a test sees it: the device under test where nobody can simply start a process."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run.client import Client
from colibri_build.run.console import BAD_PATTERNS
from colibri_build.run.line_console import LineConsole
from colibri_build.run.link import Link, Peer
from colibri_build.run.places import Place
from colibri_build.run.status_line import checked_status
from colibri_build.run.verify_serial import require_same_model

READY = r"READY colibri [^\n]*digest=([0-9a-f]{16})\n"
__tracebackhide__ = True  # pytest shows the line of the test that failed instead of ours
_GONE_S = 0.5  # after the end of what speaks, for its last words
_END_OF_INPUT, _INTERRUPT = "\x04", "\x03"
_STATUS = r"(?m)^COLIBRI_STATUS (.*)\n"


class BoardDut:
    """The device under test at the end of a serial line. The calls are those of `Dut`, as far as a board has them.

    `model`: digest of the model that must be on the board; "": any. Timeouts are in seconds; `timeout_s` holds where a call
    names none, `multiplier` scales all of them. Everything raises RunError for a line or a board that is lost,
    DeadlineError for one that does not answer in time.
    """

    def __init__(self, place: Place, model: str = "", timeout_s: float = 60.0, multiplier: float = 1.0) -> None:
        self.bad_patterns: tuple[str, ...] = BAD_PATTERNS
        self.last_status: Mapping[str, Any] = {}
        self._place, self._model = place, model
        self._timeout_s, self._multiplier = timeout_s, multiplier
        self._console = LineConsole()
        self._client: Client | None = None
        self._serves = False

    @property
    def console(self) -> str:
        """What the board has said outside of sessions since the test began."""
        return self._console.text

    def begin_test(self) -> None:
        """Forget what an earlier test has read or set; a board that serves and is there goes on serving."""
        self.bad_patterns, self.last_status = BAD_PATTERNS, {}
        if not self._serves or not self._is_there():
            self.close()
        self._console.clear()

    def start(self, arguments: Iterable[str] = ()) -> None:
        """Boot the machine with these options of the firmware. A board on a real line cannot be told: RunError."""
        self.close()
        self._open(arguments)

    def serve(self, timeout: float | None = None) -> None:
        """Have the firmware listen on its console: after this it waits for a typed line.

        A board that serves already is only asked to say READY once more, by a session that is opened and closed. Raises
        VerifyError if it holds another model than the build.
        """
        says_ready = self._client is None and self._place.boots
        if self._client is None:
            self._open(None)
        if not says_ready:
            self._running().link.open()
            self._console.skip()
            self._end_session()
        digest = self.expect(READY, timeout).group(1)
        self._require_model(Peer(0, digest, 0))
        self._serves = True

    def session(self) -> Client:
        """Return a client of the serial protocol; the firmware is started if it is not. Typing ends its session."""
        if self._client is None and self._place.boots:
            self.serve()
        elif self._client is None:  # without a look at the READY line, which a bad line may damage
            self._open(None)
            self._require_model(self._running().connect())
        self._serves = True
        return self._running()

    def expect(self, pattern: str | Sequence[str], timeout: float | None = None) -> re.Match[str]:
        """Wait for a regular expression, or the first of several, and return the match, as Dut.expect does."""
        wanted = [pattern] if isinstance(pattern, str) else list(pattern)
        what, seconds = " or ".join(repr(item) for item in wanted), self.seconds(timeout)
        self._end_session()
        link, deadline = self._running().link, time.monotonic() + seconds
        gone_at: float | None = None
        while (match := self._console.find(wanted, self.bad_patterns)) is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise DeadlineError(
                    f"no {what} within {seconds:g} s{self._console.tail()}", hint="--timeout-multiplier"
                )
            link.pump(left_s)
            if trouble := self._place.trouble():
                gone_at = gone_at or time.monotonic()
                if time.monotonic() - gone_at > _GONE_S and link.quiet_s() > _GONE_S:
                    raise RunError(f"{trouble} before {what} came{self._console.tail()}", hint="--serve keeps it there")
        return match

    def write(self, text: str) -> None:
        """Type text on the console. A carriage return or a line feed ends a line."""
        self._end_session()
        self._running().link.port.write(text.encode())

    def end_input(self) -> None:
        """Type Ctrl-D, which ends the input of --stdin on a machine of its own."""
        self.write(_END_OF_INPUT)

    def interrupt(self) -> None:
        """Type Ctrl-C."""
        self.write(_INTERRUPT)

    def status(self, timeout: float | None = None) -> Mapping[str, Any]:
        """Wait for the end of the run and return its status object."""
        found = self.expect(_STATUS, timeout)
        self._serves = False
        self.last_status = checked_status(found.group(1))
        return self.last_status

    def seconds(self, timeout: float | None) -> float:
        """Return a wait's length; None is the default."""
        return (self._timeout_s if timeout is None else timeout) * self._multiplier

    def close(self) -> None:
        """Let the line go, and end what was started for it."""
        client, self._client, self._serves = self._client, None, False
        if client is not None:
            client.close()
            client.link.port.close()
        self._place.close()

    def _require_model(self, peer: Peer) -> None:
        if self._model:
            require_same_model(peer, self._model)

    def _open(self, arguments: Iterable[str] | None) -> None:
        port = self._place.open(arguments)
        self._client = Client(Link(port, on_text=self._console.take))

    def _running(self) -> Client:
        if self._client is None:
            raise RunError("the firmware was not started", hint="dut.serve() first")
        return self._client

    def _is_there(self) -> bool:
        try:
            self._running().link.pump(0)
        except RunError:
            return False
        return self._place.trouble() is None

    def _end_session(self) -> None:
        client = self._running()
        if client.link.is_open:
            client.link.pump(0)
            client.close()
