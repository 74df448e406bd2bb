"""Requests to a firmware in --serve (runtime_c/link/PROTOCOL.md, section 4), one method each."""

from __future__ import annotations

import enum
import json
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run.link import Link, Peer
from colibri_build.run.status_line import checked_status

DEFAULT_TIMEOUT_S = 600.0  # for an answer
_QUICK_S = 30.0  # for requests that compute nothing; the board reads them between two tokens
_PROBE_S = 3.0  # a board that says nothing for so long is asked whether it is there
_CANCEL_S = 2.0
_MAX_MESSAGE_BYTES = 65535
_IS_IDS, _NO_TOKENS, _IS_RAW = 1, 2, 4
_PROBE_REQUEST = 0xFFFF  # our numbers stay below

OnToken = Callable[[int, int, bytes], None]


class Op(enum.IntEnum):
    """First byte of a message."""

    INFO = 0x10
    GENERATE = 0x11
    CANCEL = 0x12
    SELFTEST = 0x13
    STATS = 0x14
    TRACE = 0x15
    PING = 0x16
    SHUTDOWN = 0x17
    OK = 0x81
    JSON = 0x82
    TOKEN = 0x83
    DONE = 0x84
    PONG = 0x85
    ERROR = 0x8F


class TraceMask(enum.IntFlag):
    """What a board may trace, as far as it is compiled in."""

    ROUTING = 1
    MEMORY = 2
    TIMING = 4


class RequestRefusedError(RunError):
    """A request that the board answered with ERROR. `name` is one of REFUSALS, or "error N"."""

    def __init__(self, what: str, name: str, hint: str) -> None:
        super().__init__(what, hint=hint)
        self.name = name


# Name and advice by code.
REFUSALS: Mapping[int, tuple[str, str]] = {
    1: ("unknown op", "build firmware and tool from one version"),
    2: ("out of range", "the options' ranges in docs/firmware.md"),
    3: ("busy", "wait for the other answer, or cancel it"),
    4: ("too long", "a shorter prompt"),
    5: ("no such request", "it may have ended already"),
    6: ("not compiled in", "build with --debug routing,memory,timing"),
}


@dataclass(frozen=True)
class GenerateOptions:
    """How to answer a prompt; the defaults are those of the firmware's command line. `max_tokens` 0: no limit."""

    max_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    is_raw: bool = False  # a text without the chat form, of a firmware that has one


class Client:
    """A firmware at the other end of a link. Every call waits at most its timeout (seconds).

    Raises RequestRefusedError for a request that the board refuses, DeadlineError, and RunError for a line or session that is
    lost. A prompt that the model cannot take is no error: the status says so.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._last_request = 0
        self._asked = 0.0  # when the last request was sent

    def connect(self) -> Peer:
        """Open a session unless one is open; after a pause of more than 10 s the board has closed it. Raises RunError."""
        self.link.pump(0)
        if self.link.peer is not None and self.link.is_usable:
            return self.link.peer
        return self.link.open()

    def info(self) -> Mapping[str, Any]:
        """What the firmware holds: the object of --info, `protocol`, `max_message`, `trace`."""
        return self._json(Op.INFO)

    def stats(self) -> Mapping[str, Any]:
        """The firmware's counters."""
        return self._json(Op.STATS)

    def generate(
        self,
        prompt: str | Sequence[int],
        options: GenerateOptions = GenerateOptions(),
        on_token: OnToken | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> Mapping[str, Any]:
        """Answer a prompt (text, or token ids) and return the object of the status line.

        `on_token` gets (index, id, bytes of the answer that are complete with it). At the deadline and on Ctrl-C the board
        is told to cancel.
        """
        is_text = isinstance(prompt, str)
        flags = (0 if is_text else _IS_IDS) | (0 if on_token else _NO_TOKENS) | (_IS_RAW if options.is_raw else 0)
        head = struct.pack(
            "<IffQB", options.max_tokens, options.temperature, options.top_p, options.seed, flags
        )  # fmt: skip
        body = (
            prompt.encode("utf-8", "surrogateescape")
            if isinstance(prompt, str)
            else struct.pack(f"<{len(prompt)}I", *prompt)
        )
        if len(head) + len(body) + 3 > _MAX_MESSAGE_BYTES:
            raise RunError(f"a prompt of {len(body)} bytes is too long for one message", hint="a shorter prompt")
        return self._long(Op.GENERATE, head + body, on_token, timeout_s)

    def selftest(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> Mapping[str, Any]:
        """Let the firmware compare itself with the golden answer that it holds; returns its status."""
        return self._long(Op.SELFTEST, b"", None, timeout_s)

    def cancel(self, request: int) -> None:
        """Stop a generation, by its number."""
        self._expect(Op.CANCEL, struct.pack("<H", request), Op.OK)

    def trace(self, mask: TraceMask) -> None:
        """Turn tracing on, or off with 0. Refused ("not compiled in") by a build without --debug."""
        self._expect(Op.TRACE, bytes((mask,)), Op.OK)

    def ping(self, data: bytes = b"") -> float:
        """Send up to 200 bytes there and back; returns the seconds it took. Raises RunError if others come back."""
        started = time.monotonic()
        if self._expect(Op.PING, data, Op.PONG) != data:
            raise RunError("PONG does not return what PING sent", hint="report it with the build's build.json")
        return time.monotonic() - started

    def shutdown(self) -> None:
        """End the firmware; as process 1 it powers the board off."""
        self._expect(Op.SHUTDOWN, b"", Op.OK)

    def close(self) -> None:
        """End the session. The port stays open."""
        with suppress(RunError):
            self.link.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _json(self, op: Op) -> Mapping[str, Any]:
        return _object(self._expect(op, b"", Op.JSON), op)

    def _expect(self, op: Op, fields: bytes, wanted: Op) -> bytes:
        self.connect()
        request = self._send(op, fields)
        deadline = time.monotonic() + _QUICK_S
        while True:
            answer, data = self._next(request, op, deadline)
            if answer == wanted:
                return data

    def _long(self, op: Op, fields: bytes, on_token: OnToken | None, timeout_s: float) -> Mapping[str, Any]:
        self.connect()
        request = self._send(op, fields)
        try:
            return self._until_done(request, op, on_token, time.monotonic() + timeout_s)
        except DeadlineError:
            if self.link.is_usable:
                self._try_to_cancel(request)
            raise
        except (KeyboardInterrupt, SystemExit):
            self._try_to_cancel(request)
            raise

    def _until_done(self, request: int, op: Op, on_token: OnToken | None, deadline: float) -> Mapping[str, Any]:
        while True:
            answer, data = self._next(request, op, deadline)
            if answer == Op.DONE:
                return checked_status(data.decode("utf-8", "replace"))
            if answer == Op.TOKEN and len(data) >= 8 and on_token is not None:
                index, token = struct.unpack_from("<II", data)
                on_token(index, token, data[8:])

    def _next(self, request: int, op: Op, deadline: float) -> tuple[int, bytes]:
        """Return (op, fields) of the next answer to a request; the late ones of others are dropped."""
        probed = False
        while True:
            message = self.link.receive(min(deadline, time.monotonic() + _PROBE_S))
            if message is None:
                if time.monotonic() >= deadline:
                    waited = f"{time.monotonic() - self._asked:.1f} s"
                    raise DeadlineError(
                        f"no end of {op.name} within {waited}", hint="a longer timeout, or fewer tokens"
                    )
                if not probed and self.link.silent_s() > _PROBE_S:  # the link counts the time until it is acknowledged
                    self.link.send(struct.pack("<BH", Op.PING, _PROBE_REQUEST))
                    probed = True
                continue
            if len(message) < 3:
                continue
            answer, number = struct.unpack_from("<BH", message)
            if number == _PROBE_REQUEST:
                probed = False
            if number != request:
                continue
            if answer == Op.ERROR:
                raise _refused(op, message[3:])
            return answer, message[3:]

    def _send(self, op: Op, fields: bytes) -> int:
        self._last_request = self._last_request % (_PROBE_REQUEST - 1) + 1
        self._asked = time.monotonic()
        self.link.send(struct.pack("<BH", op, self._last_request) + fields)
        return self._last_request

    def _try_to_cancel(self, request: int) -> None:
        """Tell the board to stop, and wait a little for its word, so that it is free when we are gone."""
        with suppress(RunError):
            self._send(Op.CANCEL, struct.pack("<H", request))
            deadline = time.monotonic() + _CANCEL_S
            while self._next(request, Op.CANCEL, deadline)[0] != Op.DONE:
                pass


def _object(data: bytes, op: Op) -> Mapping[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise RunError(
            f"the answer to {op.name} is no JSON object: {data[:80]!r}", hint="build firmware and tool from one version"
        )
    return value


def _refused(op: Op, fields: bytes) -> RequestRefusedError:
    code = fields[0] if fields else 0
    name, hint = REFUSALS.get(code, (f"error {code}", "build firmware and tool from one version"))
    text = " ".join(fields[1:].decode("utf-8", "replace").split())
    return RequestRefusedError(f"the board refuses {op.name} ({name}){': ' + text if text else ''}", name, hint)
