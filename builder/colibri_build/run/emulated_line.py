"""The console of an emulated machine as a serial line that one program after another may open."""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from colibri_build.errors import RunError
from colibri_build.run.console import Console

_STEP_S = 0.05
_STUCK_S = 2.0  # a program that reads nothing for so long loses what comes, as on a line without flow control
_CHUNK_BYTES = 4096
_MOST_TEXT = 1 << 20  # characters of the console that are kept
_READY = re.compile(r"READY colibri .*\n")


class Outlet(Protocol):
    """Where a console comes out. Nothing of it waits, but `write` for a short time."""

    def watch(self) -> list[int]:
        """Descriptors that become readable when something is to be done."""
        ...

    def read(self) -> bytes:
        """What was typed; b"" for nothing."""
        ...

    def write(self, data: bytes) -> None:
        """Hand out what the machine says; it is lost where nobody listens."""
        ...


def pump(console: Console, outlet: Outlet, on_ready: Callable[[str], None]) -> None:
    """Carry bytes both ways until the machine ends, which is a RunError. `on_ready` gets the first READY line."""
    is_ready = False
    while True:
        ready, _, _ = select.select([console.fileno(), *outlet.watch()], [], [], _STEP_S)
        if console.fileno() in ready:
            outlet.write(console.read(0))
            if not is_ready and (said := _READY.search(console.text)):
                is_ready = True
                on_ready(said.group().rstrip())
            if len(console.text) > _MOST_TEXT:
                console.forget()
        if typed := outlet.read():
            console.write(typed)


class _Descriptor:
    """Writing to something that may be slow, or stuck."""

    def __init__(self) -> None:
        self._is_stuck = False

    def put(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            # select() has no way to say that a peer is gone: write() then does.
            if not select.select([], [descriptor], [], 0 if self._is_stuck else _STUCK_S)[1]:
                self._is_stuck = True
                return
            self._is_stuck = False
            with contextlib.suppress(BlockingIOError):
                rest = rest[os.write(descriptor, rest) :]


class UnixOutlet:
    """A unix socket at `path`; a second program that connects is turned away. A context manager."""

    def __init__(self, path: Path) -> None:
        """Listen. Raises RunError if there is no place, or another machine listens there."""
        self._path = path
        self._peer: socket.socket | None = None
        self._out = _Descriptor()
        self._listening = socket.socket(socket.AF_UNIX)
        try:
            _remove_stale(path)
            self._listening.bind(str(path))
            self._listening.listen(4)
        except OSError as error:
            self._listening.close()
            raise RunError(
                f"cannot listen at {path}: {error.strerror or error}", hint="another path of at most 100 characters"
            ) from error
        self._listening.setblocking(False)

    def watch(self) -> list[int]:
        """See Outlet."""
        return [self._listening.fileno(), *([self._peer.fileno()] if self._peer else [])]

    def read(self) -> bytes:
        """See Outlet."""
        typed = self._take() if self._peer else b""
        with contextlib.suppress(BlockingIOError):
            arrived, _ = self._listening.accept()
            arrived.setblocking(False)
            while self._peer and (more := self._take()):  # the one before may have gone with its last words
                typed += more
            if self._peer:
                arrived.close()
            else:
                self._peer, self._out = arrived, _Descriptor()
        return typed

    def write(self, data: bytes) -> None:
        """See Outlet."""
        if self._peer is None:
            return
        try:
            self._out.put(self._peer.fileno(), data)
        except OSError:
            self._drop()

    def _take(self) -> bytes:
        assert self._peer is not None
        try:
            data = self._peer.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._drop()
        return data

    def _drop(self) -> None:
        if self._peer:
            self._peer.close()
        self._peer = None

    def __enter__(self) -> UnixOutlet:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()
        self._listening.close()
        self._path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    """Remove a socket that a killed program left. Raises RunError if somebody answers there."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise RunError(f"another program listens at {path}", hint="end it, or another path")


class PtyOutlet:
    """A pseudo terminal; `path` is what terminal programs open. A context manager."""

    def __init__(self) -> None:
        self._out = _Descriptor()
        self._master, slave = os.openpty()
        self.path = os.ttyname(slave)
        tty.setraw(slave)
        os.close(slave)  # from here on, its end hangs up while nobody has it open
        os.set_blocking(self._master, False)
        self._poll = select.poll()
        self._poll.register(self._master, select.POLLIN)

    def _is_open(self) -> bool:
        return not any(event & select.POLLHUP for _, event in self._poll.poll(0))

    def watch(self) -> list[int]:
        """See Outlet."""
        return [self._master] if self._is_open() else []

    def read(self) -> bytes:
        """See Outlet."""
        with contextlib.suppress(OSError):  # EAGAIN: nothing; EIO: nobody
            return os.read(self._master, _CHUNK_BYTES)
        return b""

    def write(self, data: bytes) -> None:
        """See Outlet."""
        if self._is_open():
            with contextlib.suppress(OSError):
                self._out.put(self._master, data)

    def __enter__(self) -> PtyOutlet:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._master)
