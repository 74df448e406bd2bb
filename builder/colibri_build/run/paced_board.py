"""A board on a PTY: paced like a serial line, with any fault that a bench has. Behind it a real firmware, or a model of one."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import random
import select
import signal
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from colibri_build.run.process import firmware_environment

BOOT_TEXT = b"U-Boot 2024.01\r\nBooting Linux on physical CPU 0x0\r\nLinux version 6.1.0\r\n"
_CHUNK_BYTES = 16
_STEP_S = 0.02
_BUSY_STEP_S = 0.002
_NO_HOST_STEP_S = 0.003
_HOST_OPENS_S = 0.02
_BITS_A_BYTE = 10  # with start and stop bit
Change = Callable[[bytes], bytes]


class Backend(Protocol):
    """What is behind the line. `feed` gets what the host sent, `take` returns what the board says; both never wait."""

    @property
    def is_busy(self) -> bool:
        """Whether it will say something soon that no descriptor announces."""

    def feed(self, data: bytes) -> None:
        """Hear bytes."""

    def take(self) -> bytes:
        """Say what is due."""

    def tick(self, now: float) -> None:
        """Do what is due at this time.monotonic()."""

    def reset(self) -> None:
        """Start anew, as after a watchdog."""

    def fileno(self) -> int | None:
        """Return a descriptor that becomes readable when the board has something to say, if there is one."""

    def close(self) -> None:
        """End it."""


class FirmwareProcess:
    """A real firmware on a terminal of its own, as getty or init would start it. `reset` kills it and starts it anew.

    `overruns` counts bytes that came while the terminal's 4 KiB were full. Raises OSError if it cannot be started.
    """

    is_busy = False

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self.overruns = 0
        self._boot_text = b""
        self._start()

    def _start(self) -> None:
        self._has_ended = False
        self._master, console = pty.openpty()
        os.set_blocking(self._master, False)
        try:
            self.process = subprocess.Popen(
                self._command, stdin=console, stdout=console, stderr=console, start_new_session=True,
                env=firmware_environment(),
            )  # fmt: skip
        except OSError:
            os.close(self._master)
            raise
        finally:
            os.close(console)

    def fileno(self) -> int | None:
        """The terminal's other end; None once nobody is there, as it would be readable for ever."""
        return None if self._has_ended else self._master

    def feed(self, data: bytes) -> None:
        """Type."""
        try:
            written = os.write(self._master, data)
        except OSError:
            written = 0
        self.overruns += len(data) - written

    def take(self) -> bytes:
        """Read what the firmware has said."""
        said, self._boot_text = self._boot_text, b""
        try:
            return said + os.read(self._master, 4096)
        except BlockingIOError:
            return said
        except OSError:
            self._has_ended = True
            return said

    def tick(self, now: float) -> None:
        """The firmware works by itself."""

    def reset(self) -> None:
        """Start it anew, behind some boot messages."""
        self.close()
        self._boot_text = BOOT_TEXT
        self._start()

    def close(self) -> None:
        """End the firmware, and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)


@dataclass
class Faults:
    """What goes wrong. `reset_at`, `silent_at` and `unplug_at` count bytes that went to the host; None: never."""

    to_host: Change = bytes  # what the line makes of what the board says; bytes: nothing
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


class PacedBoard:
    """A board at a serial line, while its `with` lasts; `port` is the device that a host opens.

    Both directions are paced at `baud`. The board starts to speak when the first host has opened the port. A fault of the
    line itself is raised at the end. `n_to_host`: bytes that the host was sent.
    """

    def __init__(self, backend: Backend, faults: Faults | None = None, baud: int = 115200) -> None:
        self.backend = backend
        self.faults = faults if faults is not None else Faults()
        self._bytes_per_s = baud / _BITS_A_BYTE
        self._master, console = pty.openpty()
        tty.setraw(console)
        os.set_blocking(self._master, False)
        self.port = os.ttyname(console)
        os.close(console)
        self._has_host = False
        self._starts_at: float | None = None  # a host that opens the port throws away what it finds: after that
        self.n_to_host = 0
        self._to_host, self._to_board = _Lane(), _Lane()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)
        self.unplug()
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
            time.sleep(_NO_HOST_STEP_S)
            return
        due = min(self._to_host.due(self._bytes_per_s), self._to_board.due(self._bytes_per_s))
        said = self.backend.fileno()
        watched = [self._master] if said is None else [self._master, said]
        longest_s = _BUSY_STEP_S if self.backend.is_busy else _STEP_S
        select.select(watched, [], [], min(longest_s, max(0.001, due - time.monotonic())))

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
            self._starts_at = now + _HOST_OPENS_S
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
        return self._t0 + (self._n_sent + min(_CHUNK_BYTES, len(self._queue))) / bytes_per_s

    def pop(self, now: float, bytes_per_s: float) -> bytes:
        out = bytearray()
        while self._queue and self.due(bytes_per_s) <= now:
            out += self._queue[:_CHUNK_BYTES]
            self._n_sent += min(_CHUNK_BYTES, len(self._queue))
            del self._queue[:_CHUNK_BYTES]
        return bytes(out)

    def clear(self) -> None:
        self._queue.clear()
