"""A board on a PTY: paced like a serial line, with any fault that a bench has. Behind it a model or a real firmware."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import random
import select
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from support.device_model import BOOT_TEXT, DeviceModel

CHUNK_BYTES = 16
STEP_S = 0.02
NO_HOST_STEP_S = 0.003
HOST_OPENS_S = 0.02
Change = Callable[[bytes], bytes]


class Backend(Protocol):
    """What is behind the line."""

    def feed(self, data: bytes) -> None: ...
    def take(self) -> bytes: ...
    def tick(self, now: float) -> None: ...
    def reset(self) -> None: ...


class FirmwareProcess:
    """A real firmware on a terminal of its own, as getty or init would start it. `reset` kills it and starts it anew."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self.overruns = 0  # bytes that came while the terminal's 4 KiB were full
        self._boot_text = b""
        self._start()

    def _start(self) -> None:
        self._master, console = pty.openpty()
        os.set_blocking(self._master, False)
        self.process = subprocess.Popen(
            self._command, stdin=console, stdout=console, stderr=console, start_new_session=True
        )
        os.close(console)

    def fileno(self) -> int:
        return self._master

    def feed(self, data: bytes) -> None:
        try:
            written = os.write(self._master, data)
        except OSError:
            written = 0
        self.overruns += len(data) - written

    def take(self) -> bytes:
        said, self._boot_text = self._boot_text, b""
        with contextlib.suppress(OSError):
            return said + os.read(self._master, 4096)
        return said

    def tick(self, now: float) -> None:
        """The firmware works by itself."""

    def reset(self) -> None:
        self.close()
        self._boot_text = BOOT_TEXT
        self._start()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@dataclass
class Faults:
    """What goes wrong. The counts are bytes that went to the host; None: never."""

    to_host: Change = bytes
    to_board: Change = bytes
    reset_at: int | None = None
    silent_at: int | None = None
    unplug_at: int | None = None


def noise(seed: int, rate: float, kinds: str = "drop flip double") -> Change:
    """Damage this share of all bytes; the same seed damages the same ones."""
    rng, choices = random.Random(seed), kinds.split()

    def change(data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            kind = rng.choice(choices) if rng.random() < rate else ""
            if kind == "drop":
                continue
            out.append(byte ^ (1 << rng.randrange(8)) if kind == "flip" else byte)
            if kind == "double":
                out.append(byte)
        return bytes(out)

    return change


def wrong_baud(seed: int = 1) -> Change:
    """What a receiver at another rate makes of it: other bytes, most with the high bit."""
    rng = random.Random(seed)
    return lambda data: bytes(rng.choice((0x80, 0xC0, 0xE0, 0xF8, 0xFE, 0x00, 0x1C, 0x66)) for _ in data)


def newline_to_crlf(data: bytes) -> bytes:
    """A terminal with ONLCR."""
    return data.replace(b"\n", b"\r\n")


def cr_to_newline(data: bytes) -> bytes:
    """A terminal with ICRNL."""
    return data.replace(b"\r", b"\n")


class FakeBoard:
    """Open with `with`; `port` is the device that a host opens. Both directions are paced at `baud`, 10 bits a byte."""

    def __init__(self, backend: Backend | None = None, faults: Faults | None = None, baud: int = 115200) -> None:
        self.backend = backend if backend is not None else DeviceModel()
        self.faults = faults if faults is not None else Faults()
        self._bytes_per_s = baud / 10
        self._master, console = pty.openpty()
        tty.setraw(console)
        os.set_blocking(self._master, False)
        self.port = os.ttyname(console)
        os.close(console)
        self._has_host = False
        self._starts_at: float | None = (
            None  # a host opens the port and throws away what it finds: then the board starts
        )
        self.n_to_host = 0
        self._to_host, self._to_board = _Lane(), _Lane()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None

    def __enter__(self) -> FakeBoard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)
        self.unplug()
        if isinstance(self.backend, FirmwareProcess):
            self.backend.close()
        if self.error is not None:
            raise self.error

    def reset(self) -> None:
        """Reset the board now."""
        with self._lock:
            self._to_host.clear()
            self.backend.reset()

    def unplug(self) -> None:
        """Pull the cable: the device is gone."""
        self._stop.set()
        with contextlib.suppress(OSError):
            os.close(self._master)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._wait()
                with self._lock:
                    self._step(time.monotonic())
        except BaseException as error:
            if not self._stop.is_set():
                self.error = error

    def _wait(self) -> None:
        if not self._has_host:  # select would return at once
            time.sleep(NO_HOST_STEP_S)
            return
        due = min(self._to_host.due(self._bytes_per_s), self._to_board.due(self._bytes_per_s))
        watched = [self._master]
        if isinstance(self.backend, FirmwareProcess):
            watched.append(self.backend.fileno())
        wait_s = min(STEP_S, max(0.001, due - time.monotonic()))
        if isinstance(self.backend, DeviceModel) and self.backend.is_busy:
            wait_s = min(wait_s, 0.002)
        select.select(watched, [], [], wait_s)

    def _step(self, now: float) -> None:
        received = self._receive(now)
        if self._starts_at is None or now < self._starts_at:
            return
        self._to_board.push(self.faults.to_board(received), now)
        self.backend.feed(self._to_board.pop(now, self._bytes_per_s))
        self.backend.tick(now)
        self._to_host.push(self.faults.to_host(self.backend.take()), now)
        data = self._to_host.pop(now, self._bytes_per_s)
        if data and self._has_host:
            self._deliver(data)

    def _receive(self, now: float) -> bytes:
        """What the host has sent. EIO: no host has the port open."""
        data = b""
        try:
            data = os.read(self._master, 4096)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._has_host = False
            return b""
        self._has_host = True
        if self._starts_at is None:
            self._starts_at = now + HOST_OPENS_S
        return data

    def _deliver(self, data: bytes) -> None:
        before, self.n_to_host = self.n_to_host, self.n_to_host + len(data)
        faults = self.faults
        if faults.silent_at is not None and self.n_to_host > faults.silent_at:
            data = data[: max(0, faults.silent_at - before)]
        while data:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                time.sleep(0.001)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return
        if faults.reset_at is not None and self.n_to_host > faults.reset_at:
            faults.reset_at = None
            self._to_host.clear()
            self.backend.reset()
        if faults.unplug_at is not None and self.n_to_host > faults.unplug_at:
            self.unplug()


class _Lane:
    """One direction: bytes leave in chunks on an absolute schedule, so that rounding does not add up."""

    def __init__(self) -> None:
        self._queue = bytearray()
        self._t0 = 0.0
        self._n_sent = 0

    def push(self, data: bytes, now: float) -> None:
        if data and not self._queue:
            self._t0, self._n_sent = now, 0
        self._queue += data

    def due(self, bytes_per_s: float) -> float:
        if not self._queue:
            return float("inf")
        return self._t0 + (self._n_sent + min(CHUNK_BYTES, len(self._queue))) / bytes_per_s

    def pop(self, now: float, bytes_per_s: float) -> bytes:
        out = bytearray()
        while self._queue and self.due(bytes_per_s) <= now:
            out += self._queue[:CHUNK_BYTES]
            self._n_sent += min(CHUNK_BYTES, len(self._queue))
            del self._queue[:CHUNK_BYTES]
        return bytes(out)

    def clear(self) -> None:
        self._queue.clear()
