"""One serial line, whatever carries it: a device, a PTY, a socket, a URL of pyserial. Nothing else knows pyserial."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import serial

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run import port_faults

DEFAULT_BAUD = 115200
CONNECT_S = 10.0  # for a unix socket that listens: until somebody connects
_WRITE_S = 5.0  # a line that takes no byte for so long is stuck
_POLL_S = 0.05  # where no descriptor can be waited for
_CHUNK_BYTES = 4096


class _Channel(Protocol):
    """What carries the bytes. Errors are OSError or EOFError; SerialException is an OSError."""

    def read(self, timeout_s: float) -> bytes: ...

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class SerialPort:
    """A serial line that is open. Every wait has a deadline; a line that vanishes is a RunError.

    `name` is the URL as the user gave it, `baud` the rate that was asked for (PTYs and sockets ignore it), `received`
    the number of bytes that came. `tap`, where set, gets every byte that comes.
    """

    def __init__(self, channel: _Channel, name: str, baud: int = DEFAULT_BAUD) -> None:
        self.name, self.baud = name, baud
        self.received = 0
        self.tap: Callable[[bytes], object] | None = None
        self._channel = channel

    @classmethod
    def open(cls, url: str, baud: int = DEFAULT_BAUD, connect_s: float = CONNECT_S) -> SerialPort:
        """Open a line for us alone.

        `url`: a device path, any URL of pyserial (socket://HOST:PORT, rfc2217://HOST:PORT, loop://), unix:PATH (connects)
        or unix:PATH,listen (waits up to `connect_s` for a peer). Raises RunError, DeadlineError.
        """
        if url.startswith("unix:"):
            return cls(_SocketChannel(_unix_socket(url, connect_s)), url, baud)
        port_faults.check(url)
        try:
            line = serial.serial_for_url(url, baudrate=baud, timeout=_POLL_S, **_options(url))
        except (OSError, ValueError, KeyError, OverflowError, termios.error) as error:  # KeyError: an option of a URL
            raise port_faults.cannot_open(url, error, baud) from error
        return cls(_PyserialChannel(line), url, baud)

    @classmethod
    def from_socket(cls, connected: socket.socket, name: str) -> SerialPort:
        """Take over a connected stream socket (an emulator's console); `close` closes it."""
        return cls(_SocketChannel(connected), name)

    def read(self, timeout_s: float) -> bytes:
        """Return what has come, waiting for the first byte; b"" after `timeout_s`. Raises RunError if the line is gone."""
        try:
            data = self._channel.read(max(0.0, timeout_s))
        except (OSError, EOFError, termios.error, TypeError) as error:  # TypeError: pyserial, closed under a read
            raise port_faults.disconnected(self.name, error) from error
        self.received += len(data)
        if data and self.tap is not None:
            self.tap(data)
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises DeadlineError if the line takes nothing for 5 s, RunError if it is gone."""
        try:
            self._channel.write(data)
        except (serial.SerialTimeoutException, TimeoutError) as error:
            raise DeadlineError(
                f"{self.name} has taken no byte for {_WRITE_S:g} s", hint="check flow control (RTS/CTS) and wiring"
            ) from error
        except (OSError, EOFError, termios.error, TypeError) as error:
            raise port_faults.disconnected(self.name, error) from error

    def close(self) -> None:
        """Let the line go; a second call does nothing."""
        with contextlib.suppress(OSError, termios.error):
            self._channel.close()

    def __enter__(self) -> SerialPort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _PyserialChannel:
    """A port of pyserial. One that has a descriptor is waited for by it, another by its own short timeout."""

    def __init__(self, line: serial.SerialBase) -> None:
        self._line = line
        self._fd: int | None = None
        with contextlib.suppress(AttributeError, OSError):
            self._fd = line.fileno()
            line.timeout = 0  # not so without a descriptor: rfc2217:// negotiates everything anew
        if isinstance(line, serial.Serial):
            with contextlib.suppress(OSError):
                fcntl.ioctl(line.fd, termios.TIOCEXCL)  # flock keeps out only those who ask

    def read(self, timeout_s: float) -> bytes:
        if self._fd is not None:
            # One read with a large size: socket:// knows only whether a byte is there, not how many.
            ready, _, _ = select.select([self._fd], [], [], timeout_s)
            return bytes(self._line.read(_CHUNK_BYTES)) if ready else b""
        deadline = time.monotonic() + timeout_s
        while not (waiting := self._line.in_waiting):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            if first := self._line.read(1):  # waits for _POLL_S
                return bytes(first + self._line.read(self._line.in_waiting))
        return bytes(self._line.read(min(waiting, _CHUNK_BYTES))) if waiting else b""

    def write(self, data: bytes) -> None:
        self._line.write(data)

    def close(self) -> None:
        if isinstance(self._line, serial.Serial) and self._line.is_open:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._line.fd, termios.TIOCNXCL)
        self._line.close()


class _SocketChannel:
    """A connected stream socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def read(self, timeout_s: float) -> bytes:
        ready, _, _ = select.select([self._socket], [], [], timeout_s)
        if not ready:
            return b""
        data = self._socket.recv(_CHUNK_BYTES)
        if not data:
            raise EOFError("the other end closed the socket")
        return data

    def write(self, data: bytes) -> None:
        self._socket.settimeout(_WRITE_S)
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()


def _options(url: str) -> dict[str, float | bool]:
    """What pyserial takes for this kind of port only; rfc2217:// has a timeout of its own for writing."""
    if url.startswith("rfc2217://"):
        return {}
    return {"write_timeout": _WRITE_S} if "://" in url else {"write_timeout": _WRITE_S, "exclusive": True}


def _unix_socket(url: str, connect_s: float) -> socket.socket:
    """Connect to unix:PATH, or listen at unix:PATH,listen for one peer."""
    path, _, mode = url.removeprefix("unix:").partition(",")
    if mode not in ("", "listen") or not path:
        raise RunError(f"{url} names no unix socket", hint="unix:PATH, or unix:PATH,listen")
    with contextlib.ExitStack() as on_error:
        plain = on_error.enter_context(socket.socket(socket.AF_UNIX))
        plain.settimeout(connect_s)
        try:
            if mode != "listen":
                plain.connect(path)
                on_error.pop_all()
                return plain
            return _accept_one(plain, path)
        except TimeoutError:
            raise DeadlineError(f"nobody connected to {path} within {connect_s:g} s", hint="start the peer") from None
        except OSError as error:
            raise port_faults.cannot_open(url, error, DEFAULT_BAUD) from error


def _accept_one(listening: socket.socket, path: str) -> socket.socket:
    listening.bind(path)
    try:
        listening.listen(1)
        return listening.accept()[0]
    finally:
        Path(path).unlink(missing_ok=True)
