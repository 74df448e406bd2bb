"""A board in --serve, written from PROTOCOL.md and TRACE.md alone: no code of the host program is in it.

It answers as the fake model of tests/app does. Bytes come in with `feed`, go out by `take`; `tick` lets it work.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from support.device_frames import frame, unframe
from support.fake_firmware import CONTEXT, fake_answer

PROBE = bytes([0x00, 0x0A, 0x0D, 0x11, 0x13, 0x7D, 0x7F, 0xFF, 0x20, 0x08, 0x03, 0x04, 0x1A])
DIGEST = bytes.fromhex("2f6c0a5de1b94c77")
READY = b"READY colibri protocol=1 model=fake digest=2f6c0a5de1b94c77\r\n"
BOOT_TEXT = b"U-Boot 2024.01\r\nBooting Linux on physical CPU 0x0\r\nLinux version 6.1.0\r\n"
CLOCK_HZ = 62_500_000
N_LAYERS, N_EXPERTS = 3, 8
MAX_MESSAGE = 1024


@dataclass
class Session:
    """What both sides forget at a SYNC."""

    expected: int = 0
    parts: bytearray = field(default_factory=bytearray)
    outbox: deque[bytes] = field(default_factory=deque)
    base: int = 0
    n_sent: int = 0
    credit: int = 8
    sent_at: float = 0.0
    hold_until: float = 0.0  # no repetition before


@dataclass
class Job:
    """A generation under way."""

    request: int
    ids: tuple[int, ...]
    silent: bool
    done: dict[str, Any]
    index: int = 0
    due: float = 0.0


class DeviceModel:
    """A board. `token_s`: time for a token; `serves`: else it is a shell that knows no frames."""

    def __init__(
        self,
        *,
        token_s: float = 0.0,
        window: int = 4,
        version: int = 1,
        serves: bool = True,
        digest: bytes = DIGEST,
        trace_compiled: int = 7,
        wrong_token: int | None = None,
        refuses: tuple[int, str] | None = None,
        silence_s: float = 10.0,
    ) -> None:
        self.token_s, self.window, self.version, self.serves = token_s, window, version, serves
        self.digest, self.trace_compiled, self.wrong_token, self.refuses = digest, trace_compiled, wrong_token, refuses
        self.silence_s = silence_s
        self.boot = 1000
        self.n_repeated = self.n_bad = 0
        self.requests: list[int] = []
        self.ended = False
        self._start()

    def _start(self) -> None:
        self.session: Session | None = None
        self._out = bytearray()
        self._pending: bytearray | None = None
        self._line = bytearray()
        self._job: Job | None = None
        self._last_heard = self.now = 0.0
        self._mask = self._trace_seq = 0
        self._say(READY if self.serves else b"login: ")

    @property
    def is_busy(self) -> bool:
        """Whether a token is due soon."""
        return self._job is not None

    def fileno(self) -> None:
        """It has no descriptor to wait for."""

    def close(self) -> None:
        """Nothing is left behind."""

    def reset(self) -> None:
        """What a watchdog does."""
        self.boot += 1
        self._start()
        self._out[:0] = BOOT_TEXT

    def take(self) -> bytes:
        """What goes out on the line now."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def feed(self, data: bytes) -> None:
        for byte in data:
            if byte == 0:
                if self._pending:
                    self._take_frame(bytes(self._pending))
                self._pending = bytearray()
            elif self._pending is None or (self._pending == b"" and byte in b"\r\n"):
                self._pending = None
                self._type(byte)
            else:
                self._pending.append(byte)
                if byte in b"\r\n" or len(self._pending) > 520:
                    self._pending = None

    def tick(self, now: float) -> None:
        """Do what is due."""
        self.now = now
        session = self.session
        if session is not None:
            if now - self._last_heard > self.silence_s:
                self._end_session(2)
            elif session.n_sent and now - session.sent_at > 1:
                self._resend(session)
            self._fill(session)
        job = self._job
        if job is not None and now >= job.due and (session is None or len(session.outbox) < 64):
            self._step(job)

    def _say(self, text: bytes) -> None:
        self._out += text

    def _type(self, byte: int) -> None:
        """The human mode; a shell only echoes."""
        if self.session is not None:
            return
        if byte not in b"\r\n":
            self._line.append(byte)
            self._say(bytes([byte]))
            return
        line, self._line = bytes(self._line), bytearray()
        self._say(b"\r\n")
        if line and self.serves:
            answer = fake_answer(line)
            self._say(
                bytes(i for i in answer.ids if i < 256)
                + b"\r\n-- %s, %d tokens, 1 ms\r\n" % (answer.stop.encode(), len(answer.ids))
            )
        self._say(b"> ")

    def _take_frame(self, packed: bytes) -> None:
        if not self.serves:
            return
        body = unframe(packed)
        if body is None:
            self.n_bad += 1
            if self.session:
                self._ack()
            return
        self._last_heard = self.now
        kind = body[0]
        if kind == 1 and len(body) == 20 and body[7:] == PROBE:
            self.session, self._job = Session(), None
            self._out += frame(
                b"\2"
                + body[1:5]
                + bytes([self.version, self.window])
                + struct.pack("<I", self.boot)
                + self.digest
                + PROBE
            )
        elif kind in (3, 4) and self.session is None:
            self._out += frame(b"\5\1")
        elif kind == 3 and self.session:
            self._take_data(self.session, body)
        elif kind == 4 and self.session:
            self._take_ack(self.session, *struct.unpack("<HB", body[1:]))
        elif kind == 6 and self.session:
            self.session, self._job = None, None
            self._say(READY)

    def _end_session(self, reason: int) -> None:
        self.session, self._job = None, None
        self._out += frame(bytes([5, reason]))
        self._say(READY)

    def _ack(self) -> None:
        assert self.session
        self._out += frame(struct.pack("<BHB", 4, self.session.expected, self.window))

    def _take_data(self, session: Session, body: bytes) -> None:
        seq, flags = struct.unpack_from("<HB", body, 1)
        if seq != session.expected:
            self.n_repeated += 1
            self._ack()
            return
        session.expected = (seq + 1) & 0xFFFF
        session.parts += body[4:]
        self._ack()
        if flags & 1:
            message = bytes(session.parts)
            session.parts.clear()
            self._take_message(message)

    def _take_ack(self, session: Session, following: int, window: int) -> None:
        n = (following - session.base) & 0xFFFF
        if n > session.n_sent:
            return
        session.credit = window
        for _ in range(n):
            session.outbox.popleft()
        session.base, session.n_sent = following, session.n_sent - n
        if n:
            session.sent_at, session.hold_until = self.now, 0.0
        elif session.n_sent and self.now > session.hold_until:
            session.hold_until = self.now + 0.1
            self._resend(session)
        self._fill(session)

    def _resend(self, session: Session) -> None:
        session.sent_at, session.n_sent = self.now, 0
        self._fill(session)

    def _fill(self, session: Session) -> None:
        while session.n_sent < min(len(session.outbox), session.credit):
            if session.n_sent == 0:
                session.sent_at = self.now
            self._out += frame(session.outbox[session.n_sent])
            session.n_sent += 1

    def _answer(self, op: int, request: int, fields: bytes = b"") -> None:
        session = self.session
        if session is None:
            return
        message = struct.pack("<BH", op, request) + fields
        for at in range(0, len(message), 244):
            seq = (session.base + len(session.outbox)) & 0xFFFF
            last = at + 244 >= len(message)
            session.outbox.append(struct.pack("<BHB", 3, seq, last) + message[at : at + 244])
        self._fill(session)

    def _error(self, request: int, code: int, text: str) -> None:
        self._answer(0x8F, request, bytes([code]) + text.encode())

    def _take_message(self, message: bytes) -> None:
        op, request = struct.unpack_from("<BH", message)
        fields = message[3:]
        self.requests.append(op)
        if self.refuses is not None and op != 0x16:
            self._error(request, *self.refuses)
        elif op == 0x10:
            info = {"model": "fake", "digest": self.digest.hex(), "protocol": 1, "max_message": MAX_MESSAGE, "trace": 7}
            self._answer(0x82, request, json.dumps(info).encode())
        elif op in (0x11, 0x13):
            self._begin(op, request, fields)
        elif op == 0x12:
            self._cancel(request, *struct.unpack("<H", fields))
        elif op == 0x14:
            self._answer(0x82, request, json.dumps({"uptime_us": 5, "bad_frames": self.n_bad}).encode())
        elif op == 0x15:
            self._set_trace(request, fields[0])
        elif op == 0x16:
            self._answer(0x85, request, fields)
        elif op == 0x17:
            self._answer(0x81, request)
            self.ended = True
        else:
            self._error(request, 1, f"unknown op {op}")

    def _begin(self, op: int, request: int, fields: bytes) -> None:
        if self._job is not None:
            self._error(request, 3, "another generation runs")
            return
        max_tokens, temperature, top_p, seed, flags = struct.unpack_from("<IffQB", fields + bytes(21))
        if not 0 <= temperature <= 100:
            self._error(request, 2, f"temperature {temperature:g} is out of range; try 0 .. 100")
            return
        data = fields[21:]
        prompt = list(struct.unpack(f"<{len(data) // 4}I", data)) if flags & 1 else list(data)
        if op == 0x13:
            prompt, max_tokens, flags = list(b"golden"), 6, 2
        if not prompt:
            self._answer(0x84, request, json.dumps(self._status("empty_prompt", 3)).encode())
            return
        if len(prompt) > CONTEXT:
            done = self._status("prompt_too_long", 3, prompt_tokens=len(prompt))
            self._answer(0x84, request, json.dumps(done).encode())
            return
        answer = fake_answer(prompt, max_tokens or 1000, temperature=temperature, top_p=top_p, seed=seed)
        ids = tuple(99 if i == self.wrong_token else token for i, token in enumerate(answer.ids))
        done = self._status("ok", 0, prompts=1, prompt_tokens=len(prompt), tokens=len(ids), ids=list(ids))
        done |= {"logits_hash": answer.logits_hash, "stop": answer.stop, "threads": 1, "context": CONTEXT}
        self._job = Job(request, ids, bool(flags & 2), done, due=self.now + self.token_s)

    def _status(self, status: str, code: int, **more: Any) -> dict[str, Any]:
        base = {
            "status": status,
            "exit_code": code,
            "prompts": 1,
            "failed": int(code != 0),
            "prompt_tokens": 0,
            "tokens": 0,
        }
        base |= {"ids": [], "logits_hash": "0" * 16, "stop": "none", "threads": 1, "context": CONTEXT}
        return base | ({"message": status.replace("_", " ")} if code else {}) | more

    def _step(self, job: Job) -> None:
        token = job.ids[job.index]
        if not job.silent:
            text = bytes([token]) if token < 256 else b""
            self._answer(0x83, job.request, struct.pack("<II", job.index, token) + text)
        self._trace(job, token)
        job.index += 1
        job.due = max(self.now, job.due) + self.token_s
        if job.index == len(job.ids):
            self._finish(job)

    def _finish(self, job: Job) -> None:
        self._job = None
        self._answer(0x84, job.request, json.dumps(job.done, separators=(",", ":")).encode())

    def _cancel(self, request: int, wanted: int) -> None:
        job = self._job
        if job is None or job.request != wanted:
            self._error(request, 5, f"no request {wanted} runs")
            return
        self._answer(0x81, request)
        ids = list(job.ids[: job.index])
        job.done |= {"status": "interrupted", "exit_code": 130, "stop": "interrupted", "ids": ids, "tokens": len(ids)}
        self._finish(job)

    def _set_trace(self, request: int, mask: int) -> None:
        if mask & ~self.trace_compiled:
            self._error(request, 6, "trace is not compiled in")
            return
        self._mask = mask
        self._answer(0x81, request)
        if mask:
            self._send_records([struct.pack("<BBBBI", 1, 1, N_LAYERS, N_EXPERTS - 1, CLOCK_HZ) + self.digest])

    def _trace(self, job: Job, token: int) -> None:
        if self._mask:
            self._send_records(list(self._records(job, token)))

    def _records(self, job: Job, token: int) -> Iterator[bytes]:
        for layer in range(N_LAYERS):
            if self._mask & 1:
                chosen = ((token + layer) % N_EXPERTS, (token + layer + 3) % N_EXPERTS)
                weights = (round(0.75 * 65535), round(0.25 * 65535))
                yield struct.pack("<BBBB4B4H", 3, layer, 0, 2, *chosen, 0, 0, *weights, 0, 0)
            if self._mask & 4:
                yield struct.pack("<BBBBIII", 5, layer, 0, 6, 1000, 2450, 0)
        yield struct.pack("<BBHIII", 2, 1, 0, job.index, token, 20000 if self._mask & 4 else 0xFFFFFFFF)

    def _send_records(self, records: list[bytes]) -> None:
        for at in range(0, len(records), 14):
            self._out += frame(struct.pack("<BHBI", 0x54, self._trace_seq, 0, 0) + b"".join(records[at : at + 14]))
            self._trace_seq = (self._trace_seq + 1) & 0xFFFF
