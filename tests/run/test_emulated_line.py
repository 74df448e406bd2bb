"""The console of an emulated board, offered to other programs: one at a time, one after another, none of them trusted."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from colibri_build.errors import RunError
from colibri_build.run.console import Console
from colibri_build.run.emulated_line import Outlet, PtyOutlet, UnixOutlet, pump
from colibri_build.run.serial_port import SerialPort


@contextlib.contextmanager
def machine(outlet: Outlet, ready: list[str] | None = None) -> Iterator[socket.socket]:
    """A console with the pump behind it; the test is the machine."""
    ours, theirs = socket.socketpair()
    console = Console(ours, bad_patterns=())

    def run() -> None:
        with contextlib.suppress(RunError):
            pump(console, outlet, (ready if ready is not None else []).append)

    thread = threading.Thread(target=run)
    thread.start()
    theirs.settimeout(10)
    try:
        yield theirs
    finally:
        theirs.close()
        thread.join(10)
        assert not thread.is_alive()
        console.close()


def heard(port: SerialPort, wanted: bytes) -> bytes:
    data, deadline = b"", time.monotonic() + 10
    while wanted not in data and time.monotonic() < deadline:
        data += port.read(0.1)
    return data


def talk(port: str, board: socket.socket, word: bytes) -> None:
    """What is typed reaches the machine; what it then says comes back."""
    with SerialPort.open(port) as line:
        line.write(word)
        assert board.recv(100) == word
        board.sendall(word.upper())
        assert heard(line, word.upper()) == word.upper()


def test_one_program_after_another_speaks_over_the_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "board.sock"
    with UnixOutlet(path) as outlet, machine(outlet) as board:
        board.sendall(b"nobody hears this")
        time.sleep(0.2)
        for word in (b"first", b"second"):
            talk(f"unix:{path}", board, word)
    assert not path.exists()


def test_a_second_program_at_the_same_time_is_turned_away(tmp_path: Path) -> None:
    path = tmp_path / "board.sock"
    with UnixOutlet(path) as outlet, machine(outlet) as board, SerialPort.open(f"unix:{path}") as first:
        first.write(b"x")
        assert board.recv(1) == b"x"
        with SerialPort.open(f"unix:{path}") as second, pytest.raises(RunError, match="device disconnected"):
            second.read(10)
        board.sendall(b"still there")
        assert heard(first, b"still there") == b"still there"


def test_one_program_after_another_speaks_over_the_pseudo_terminal() -> None:
    with PtyOutlet() as outlet, machine(outlet) as board:
        board.sendall(b"nobody hears this")
        time.sleep(0.2)
        for word in (b"first", b"second"):
            talk(outlet.path, board, word)


def test_the_first_ready_is_told(tmp_path: Path) -> None:
    ready: list[str] = []
    with UnixOutlet(tmp_path / "s") as outlet, machine(outlet, ready) as board:
        for piece in (b"boot\r\nREADY coli", b"bri protocol=1 model=m digest=0\r\n> READY colibri again\r\n"):
            board.sendall(piece)
            time.sleep(0.1)
        deadline = time.monotonic() + 10
        while not ready and time.monotonic() < deadline:
            time.sleep(0.01)
    assert ready == ["READY colibri protocol=1 model=m digest=0"]


def test_a_socket_left_by_a_killed_program_is_no_obstacle_but_a_living_one_is(tmp_path: Path) -> None:
    path = tmp_path / "board.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with UnixOutlet(path), pytest.raises(RunError, match="another program listens at"):
        UnixOutlet(path)


def test_a_path_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot listen at .*; try: another path"):
        UnixOutlet(tmp_path / "absent" / "board.sock")
    with pytest.raises(RunError, match="cannot listen at .*; try: another path"):
        UnixOutlet(tmp_path / ("x" * 200))
