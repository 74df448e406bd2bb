"""A host program written from PROTOCOL.md alone, as a state machine: bytes and the time go in, bytes and messages come out.

It notes where the device breaks a promise: `violations`.
"""

from __future__ import annotations

import json
import os
import random
import select
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from colibri_build.frames import Deframer, Frame, encode

PROBE = bytes.fromhex("000A0D11137D7FFF200803041A")
WINDOW = 8
INFO, GENERATE, CANCEL, SELFTEST, STATS, TRACE, PING, SHUTDOWN = range(0x10, 0x18)
OK, JSON, TOKEN, DONE, PONG, ERROR = 0x81, 0x82, 0x83, 0x84, 0x85, 0x8F


def sync(nonce: int, version: int = 1, window: int = WINDOW) -> bytes:
    return encode(struct.pack("<BIBB", 1, nonce, version, window) + PROBE)


def ack(following: int, window: int = WINDOW) -> bytes:
    return encode(struct.pack("<BHB", 4, following, window))


def data(seq: int, payload: bytes, last: bool = True) -> bytes:
    return encode(struct.pack("<BHB", 3, seq & 0xFFFF, last) + payload)


def message(op: int, request: int, fields: bytes = b"") -> bytes:
    return struct.pack("<BH", op, request) + fields


def generate_fields(
    prompt: bytes, max_tokens: int = 0, temperature: float = 0.0, top_p: float = 1.0, seed: int = 0, flags: int = 0
) -> bytes:
    return struct.pack("<IffQB", max_tokens, temperature, top_p, seed, flags) + prompt


class Host:
    """One session after another. Times are seconds; `now` never goes back."""

    def __init__(self, seed: int = 1, window: int = WINDOW) -> None:
        self.rng = random.Random(seed)
        self.window = window
        self.deframer = Deframer()
        self.out: deque[bytes] = deque()
        self.messages: deque[bytes] = deque()
        self.text = bytearray()
        self.traces: list[bytes] = []
        self.resets: list[int] = []
        self.peer: dict[str, Any] = {}
        self.violations: list[str] = []
        self.repeated = 0
        self.open_session(0.0, False)

    def open_session(self, now: float, send: bool = True) -> None:
        self.nonce = self.rng.getrandbits(32) if send else 0  # 0: none is wanted
        self.is_open = False
        self.queue: list[bytes] = []  # DATA frames that are not acknowledged, from seq `base` on
        self.base = self.sent = 0
        self.credit = 0
        self.expected, self.parts = 0, b""
        self.allowed = self.window  # first seq that the device has no credit for
        self.acked_at = self.went_back_at = self.spoke_at = self.synced_at = now
        self.peer = {}
        if send:
            self.put(sync(self.nonce, window=self.window), now)

    def put(self, frame: bytes, now: float) -> None:
        self.out.append(frame)
        self.spoke_at = now

    def send(self, whole: bytes) -> None:
        for start in range(0, len(whole), 244):
            seq = self.base + len(self.queue)
            self.queue.append(data(seq, whole[start : start + 244], start + 244 >= len(whole)))

    def feed(self, received: bytes, now: float) -> None:
        bad = self.deframer.n_bad
        for item in self.deframer.feed(received):
            if isinstance(item, Frame):
                self.take(item.body, now)
            else:
                self.text += item.data
        if self.deframer.n_bad > bad and self.is_open:
            self.acknowledge(now)
        self.fill(now)

    def take(self, body: bytes, now: float) -> None:
        kind = body[0]
        if kind == 2:
            self.take_sync_ack(body)
        elif kind == 0x54:
            self.traces.append(body)
        elif kind == 5:
            self.resets.append(body[1])
            self.is_open = False
        elif not self.is_open:
            return
        elif kind == 3:
            self.take_data(body, now)
        elif kind == 4:
            self.take_ack(*struct.unpack("<HB", body[1:]), now)
        else:
            self.violations.append(f"a frame of kind {kind}")

    def take_sync_ack(self, body: bytes) -> None:
        _, nonce, version, window, boot, digest, probe = struct.unpack("<BIBBI8s13s", body)
        if nonce != self.nonce or self.is_open:
            return
        self.peer = {"version": version, "window": window, "boot": boot, "digest": digest.hex()}
        if probe != PROBE:
            self.violations.append("another probe")
        self.is_open, self.credit = version == 1, window

    def take_data(self, body: bytes, now: float) -> None:
        seq, flags = struct.unpack("<HB", body[1:4])
        ahead = (seq - self.expected) & 0xFFFF
        if self.allowed - self.expected <= ahead < 0x8000:
            self.violations.append(f"seq {seq} without credit: waiting for {self.expected}, up to {self.allowed}")
        if seq == self.expected & 0xFFFF:
            self.expected += 1
            self.parts += body[4:]
            if flags & 1:
                self.messages.append(self.parts)
                self.parts = b""
        else:
            self.repeated += 1
        self.acknowledge(now)

    def acknowledge(self, now: float) -> None:
        self.allowed = max(self.allowed, self.expected + self.window)
        self.put(ack(self.expected & 0xFFFF, self.window), now)

    def take_ack(self, following: int, window: int, now: float) -> None:
        n = (following - self.base) & 0xFFFF
        if n > self.sent:
            return
        self.credit = window
        if n == 0 and self.sent and now - self.went_back_at > 0.2:
            self.sent, self.went_back_at = 0, now
        del self.queue[:n]
        self.base += n
        self.sent = max(0, self.sent - n)
        self.acked_at = now

    def fill(self, now: float) -> None:
        while self.is_open and self.sent < min(len(self.queue), self.credit):
            if self.sent == 0:
                self.acked_at = now
            self.put(self.queue[self.sent], now)
            self.sent += 1

    def tick(self, now: float) -> None:
        if not self.is_open:
            if self.nonce and not self.peer and now - self.synced_at > 0.5:
                self.synced_at = now
                self.put(sync(self.nonce, window=self.window), now)
            return
        if self.sent and now - self.acked_at > 1.0:
            self.sent, self.acked_at = 0, now
        if now - self.spoke_at > 2.0:
            self.acknowledge(now)
        self.fill(now)


class BadLine:
    """Damages what passes: flips bits, loses and doubles bytes and whole pieces. Each is given as chance for a piece."""

    def __init__(self, seed: int, chance: float) -> None:
        self.rng, self.chance, self.faults = random.Random(seed), chance, 0

    def __call__(self, piece: bytes) -> bytes:
        if not piece or self.rng.random() > self.chance:
            return piece
        self.faults += 1
        at = self.rng.randrange(len(piece))
        kind = self.rng.randrange(5)
        if kind == 0:
            return piece[:at] + bytes((piece[at] ^ 1 << self.rng.randrange(8),)) + piece[at + 1 :]
        if kind == 1:
            return piece[:at] + piece[at + self.rng.randint(1, 20) :]
        if kind == 2:
            return piece + piece
        if kind == 3:
            return b""
        return piece[:at] + self.rng.randbytes(self.rng.randint(1, 30)) + piece[at:]


class HostOnLine:
    """A host on a file descriptor (the master of a PTY, a socket). Every wait has a deadline."""

    def __init__(self, fd: int, seed: int = 1, window: int = WINDOW, timeout_s: float = 10.0) -> None:
        self.fd, self.timeout_s = fd, timeout_s
        self.host = Host(seed, window)
        self.to_device: Callable[[bytes], bytes] = bytes
        self.from_device: Callable[[bytes], bytes] = bytes
        self.n_requests = 0
        self.has_ended = False

    def step(self, seconds: float = 0.05) -> None:
        now = time.monotonic()
        self.host.tick(now)
        while self.host.out:
            wire = self.to_device(self.host.out.popleft())
            while wire:
                select.select([], [self.fd], [], 1)
                wire = wire[os.write(self.fd, wire) :]
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                received = os.read(self.fd, 4096)
            except OSError:  # a PTY whose device has closed it
                received = b""
            self.has_ended = not received
            self.host.feed(self.from_device(received), time.monotonic())

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + self.timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"no {what}; text: {bytes(self.host.text)!r}"
            self.step()

    def connect(self) -> dict[str, Any]:
        self.host.open_session(time.monotonic())
        self.until(lambda: self.host.peer, "SYNC_ACK")
        return self.host.peer

    def expect_text(self, text: bytes) -> bytes:
        """Wait for text outside of frames; returns what came up to its end, and forgets it."""
        self.until(lambda: text in self.host.text, f"text {text!r}")
        end = self.host.text.index(text) + len(text)
        said = bytes(self.host.text[:end])
        del self.host.text[:end]
        return said

    def request(self, op: int, fields: bytes = b"") -> int:
        self.n_requests += 1
        self.host.send(message(op, self.n_requests, fields))
        return self.n_requests

    def answer(self) -> tuple[int, int, bytes]:
        """The next message: op, request, fields."""
        self.until(lambda: self.host.messages, "answer")
        whole = self.host.messages.popleft()
        op, request = struct.unpack("<BH", whole[:3])
        return op, request, whole[3:]

    def ask(self, op: int, fields: bytes = b"") -> tuple[int, bytes]:
        request = self.request(op, fields)
        answered, number, rest = self.answer()
        assert number == request
        return answered, rest

    def ask_json(self, op: int) -> dict[str, Any]:
        answered, rest = self.ask(op)
        assert answered == JSON
        return dict(json.loads(rest))

    def done(self, request: int) -> tuple[list[tuple[int, int, bytes]], dict[str, Any]]:
        """The tokens (index, id, bytes) and the status of a generation; other answers must not come between."""
        tokens: list[tuple[int, int, bytes]] = []
        while True:
            op, number, fields = self.answer()
            assert number == request
            if op == DONE:
                return tokens, dict(json.loads(fields))
            assert op == TOKEN
            index, token = struct.unpack("<II", fields[:8])
            tokens.append((index, token, fields[8:]))

    def generate(self, prompt: bytes, **options: Any) -> tuple[list[tuple[int, int, bytes]], dict[str, Any]]:
        return self.done(self.request(GENERATE, generate_fields(prompt, **options)))
