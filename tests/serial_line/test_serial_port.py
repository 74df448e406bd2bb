"""One class for every kind of line: what an engineer names as --port must open, carry bytes, and fail in plain words."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import socket
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest
import serial
import serial.rfc2217

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run import port_faults, serial_port
from colibri_build.run.serial_port import SerialPort


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    """A PTY: (its far end, the device's path)."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    yield master, os.ttyname(slave)
    for descriptor in (master, slave):
        with contextlib.suppress(OSError):
            os.close(descriptor)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        yield server


def url_of(server: socket.socket, scheme: str = "socket") -> str:
    return f"{scheme}://127.0.0.1:{server.getsockname()[1]}"


def fault(action: Callable[[], object]) -> RunError:
    with pytest.raises(RunError) as caught:
        action()
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value


def read_all(port: SerialPort, n: int) -> bytes:
    data, deadline = b"", time.monotonic() + 5
    while len(data) < n and time.monotonic() < deadline:
        data += port.read(0.2)
    return data


def test_a_pty_takes_any_baud_rate_and_has_no_modem_lines(terminal: tuple[int, str]) -> None:
    master, name = terminal
    with SerialPort.open(name, 3_000_000) as port:
        os.write(master, bytes(range(256)))
        assert read_all(port, 256) == bytes(range(256))
        port.write(bytes(range(256)))
        assert os.read(master, 300) == bytes(range(256))
        assert port.received == 256


def test_an_empty_line_is_waited_for_no_longer_than_asked(terminal: tuple[int, str]) -> None:
    with SerialPort.open(terminal[1]) as port:
        started = time.monotonic()
        assert port.read(0.1) == b""
        assert 0.08 < time.monotonic() - started < 0.5


def test_a_socket_is_read_in_pieces_and_not_byte_by_byte(listener: socket.socket) -> None:
    with SerialPort.open(url_of(listener)) as port:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"x" * 5000)
            time.sleep(0.05)
            assert len(port.read(1)) > 1000
            port.write(b"abc")
            assert peer.recv(10) == b"abc"


class Rfc2217Server(threading.Thread):
    """A terminal server, made of pyserial's own half of the protocol, whose line has a loop-back plug on."""

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(daemon=True)
        self._connection, _ = listening.accept()
        self.line = serial.serial_for_url("loop://", timeout=0)
        self._manager = serial.rfc2217.PortManager(self.line, self)

    def run(self) -> None:
        self._connection.settimeout(0.01)
        with contextlib.suppress(OSError):
            while True:
                data = b""
                with contextlib.suppress(TimeoutError):
                    data = self._connection.recv(1024)
                    if not data:
                        return
                self.line.write(b"".join(self._manager.filter(data)))
                self.write(b"".join(self._manager.escape(self.line.read(self.line.in_waiting))))

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pyserial starts its thread in the old way
def test_rfc2217_sets_the_rate_at_the_far_end(listener: socket.socket) -> None:
    opened: list[SerialPort] = []
    opener = threading.Thread(target=lambda: opened.append(SerialPort.open(url_of(listener, "rfc2217"), 57600)))
    opener.start()
    server = Rfc2217Server(listener)
    server.start()
    opener.join(5)
    with opened[0] as port:
        port.write(b"\xff\x00hello")
        assert read_all(port, 7) == b"\xff\x00hello"
        assert port.read(0.06) == b""
        assert server.line.baudrate == 57600


def test_loop() -> None:
    with SerialPort.open("loop://") as port:
        port.write(b"abc")
        assert read_all(port, 3) == b"abc"
        assert port.read(0.05) == b""


def test_a_unix_socket_is_connected_to_or_listened_at(tmp_path: Path) -> None:
    path = tmp_path / "console"
    found: list[SerialPort] = []
    thread = threading.Thread(target=lambda: found.append(SerialPort.open(f"unix:{path},listen")))
    thread.start()
    while not path.exists():
        time.sleep(0.005)
    time.sleep(0.02)
    with SerialPort.open(f"unix:{path}") as port:
        thread.join(5)
        with found[0] as other:
            other.write(b"hello")
            assert port.read(1) == b"hello"
        assert fault(lambda: port.read(1)).what == (
            f"device disconnected: unix:{path} (the other end closed the socket)"
        )
    assert not path.exists()


def test_a_socket_that_somebody_else_connected() -> None:
    ours, theirs = socket.socketpair()
    with SerialPort.from_socket(ours, "qemu") as port:
        theirs.sendall(b"READY")
        assert port.read(1) == b"READY"
        theirs.close()
        assert fault(lambda: port.read(1)).what.startswith("device disconnected: qemu")
        assert fault(lambda: port.write(b"x" * 100)).what.startswith("device disconnected: qemu")


def test_nobody_connects(tmp_path: Path) -> None:
    error = fault(lambda: SerialPort.open(f"unix:{tmp_path}/x,listen", connect_s=0.05))
    assert error.what == f"nobody connected to {tmp_path}/x within 0.05 s"
    assert error.exit_code == 124


def test_an_unplugged_device(terminal: tuple[int, str]) -> None:
    master, name = terminal
    with SerialPort.open(name) as port:
        os.close(master)
        for action in (lambda: port.read(1), lambda: port.write(b"x")):
            error = fault(action)
            assert error.what.startswith(f"device disconnected: {name} (")
            assert error.exit_code == 4


def test_a_server_that_goes_away(listener: socket.socket) -> None:
    with SerialPort.open(url_of(listener)) as port:
        listener.accept()[0].close()
        assert "the other end closed the connection" in fault(lambda: port.read(1)).what


def test_a_line_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial_port, "_WRITE_S", 0.1)
    ours, theirs = socket.socketpair()
    with theirs, SerialPort.from_socket(ours, "stuck") as port:
        error = fault(lambda: port.write(bytes(10_000_000)))
    assert isinstance(error, DeadlineError)
    assert error.what == "stuck has taken no byte for 0.1 s"


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("/dev/ttyNONE9", "there is no port /dev/ttyNONE9"),
        (__file__, f"{__file__} is no serial port"),
        ("/dev/null", "/dev/null is no serial port"),
        ("bluetooth://x", "bluetooth://x: no such kind of port as bluetooth://"),
        ("socket://127.0.0.1:1", "cannot connect to socket://127.0.0.1:1: Connection refused"),
        ("rfc2217://127.0.0.1:1", "cannot connect to rfc2217://127.0.0.1:1: Connection refused"),
        ("socket://lab", "socket://lab names no port number"),
        ("unix:/nowhere", "cannot open unix:/nowhere: No such file or directory"),
        ("unix:", "unix: names no unix socket"),
        ("unix:/x,server", "unix:/x,server names no unix socket"),
    ],
)
def test_a_port_that_is_none(url: str, what: str) -> None:
    error = fault(lambda: SerialPort.open(url))
    assert error.what == what
    assert error.exit_code == 4


def test_a_wrong_port_names_those_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"/dev/ttyUSB{i}" for i in range(6)]
    ports = [type("Port", (), {"device": name, "description": "CP2102", "hwid": "USB"})() for name in names]
    monkeypatch.setattr(port_faults.list_ports, "comports", lambda: ports)
    hint = "one of " + ", ".join(f"{name} (CP2102)" for name in names[:4]) + " and 2 more"
    assert fault(lambda: SerialPort.open("/dev/ttyNONE9")).hint == hint
    monkeypatch.setattr(port_faults.list_ports, "comports", list)
    assert "plug the adapter in" in str(fault(lambda: SerialPort.open("/dev/ttyNONE9")))


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Be somebody whom permissions hold for."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_port_without_permission_names_the_group(terminal: tuple[int, str], unprivileged: None) -> None:
    name = terminal[1]
    with contextlib.suppress(PermissionError):  # where it is our own
        Path(name).chmod(0)
    error = fault(lambda: SerialPort.open(name))
    assert error.what == f"no permission to open {name}"
    assert re.fullmatch(r"sudo usermod -aG (dialout|tty) \$USER, then log in again", error.hint or "")


def test_a_port_that_another_program_holds_names_it(terminal: tuple[int, str]) -> None:
    name = terminal[1]
    script = (
        f"import serial, sys; p = serial.Serial({name!r}, exclusive=True); print('open', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with other:
        assert other.stdout
        assert other.stdout.readline() == b"open\n"
        error = fault(lambda: SerialPort.open(name))
        other.communicate(b"")
    assert re.fullmatch(rf"{name} is held by .*python.* \(pid {other.pid}\).*", error.what), error.what
    assert error.exit_code == 4
    SerialPort.open(name).close()


@pytest.mark.parametrize("program", ["picocom", "tio"])
def test_a_port_that_a_terminal_program_holds_names_it(terminal: tuple[int, str], program: str) -> None:
    name = terminal[1]
    child = pexpect.spawn(program, [name], timeout=10)
    try:
        child.expect("(?i)connected|terminal ready")
        assert fault(lambda: SerialPort.open(name)).what == f"{name} is held by {program} (pid {child.pid})"
    finally:
        child.close(force=True)


def test_a_port_is_ours_alone(terminal: tuple[int, str]) -> None:
    with SerialPort.open(terminal[1]):
        assert f"pid {os.getpid()}" in fault(lambda: SerialPort.open(terminal[1])).what
    SerialPort.open(terminal[1]).close()


def test_a_lock_file_of_a_living_terminal_program_counts(
    terminal: tuple[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_faults, "_LOCK_FOLDERS", (tmp_path,))
    lock = tmp_path / f"LCK..{Path(terminal[1]).name}"
    lock.write_text(f"{os.getppid():10d}\n")
    assert f"(pid {os.getppid()})" in fault(lambda: SerialPort.open(terminal[1])).what
    lock.write_text("99999999\n")
    SerialPort.open(terminal[1]).close()


def test_a_rate_that_no_uart_has(terminal: tuple[int, str]) -> None:
    error = fault(lambda: SerialPort.open(terminal[1], 1 << 40))
    assert f"{terminal[1]} cannot be set to {1 << 40} baud" in error.what
