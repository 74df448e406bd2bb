"""A board that does not answer: each cause has its own line, its own advice and its exit code."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from colibri_build.errors import RunError
from colibri_build.run.client import Client
from colibri_build.run.link import Link
from colibri_build.run.serial_port import SerialPort
from serial_line.conftest import Connect, Serve
from support.command_line import Run, error_line
from support.device_model import DIGEST, READY, DeviceModel
from support.fake_board import wrong_baud

pytestmark = pytest.mark.usefixtures("hasty")


def nothing(_: bytes) -> bytes:
    return b""


def fault(client: Client) -> RunError:
    with pytest.raises(RunError) as caught:
        client.connect()
    return caught.value


CASES = {
    "silent": (
        {"to_host": nothing},
        {},
        124,
        "the board is silent: no byte from PORT in 0.3 s at 115200 baud; try: check power and wiring (TX to RX, ground), the "
        "console= of its kernel, and --baud",
    ),
    "one-way": (
        {"to_board": nothing},
        {},
        4,
        "the firmware is ready, but does not hear us on PORT; try: connect our TX to the board's RX",
    ),
    "shell": (
        {},
        {"serves": False},
        4,
        "the board talks on PORT, but not in frames, its last words: 'login:'; try: start the firmware with --serve on this "
        "console",
    ),
    "version": (
        {},
        {"version": 2},
        4,
        "the board speaks version 2 of the serial protocol, this program version 1; try: build firmware and tool from one "
        "version",
    ),
    "model": (
        {},
        {"digest": b"ANOTHER!"},
        1,
        f"the board holds model {b'ANOTHER!'.hex()}, the build is {DIGEST.hex()}; try: flash this build, or name the build "
        "that is on the board",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("verb", ["verify", "run"])
def test_every_command_says_it_in_one_line(run: Run, serve: Serve, built: Path, verb: str, case: str) -> None:
    faults, traits, code, line = CASES[case]
    board = serve(DeviceModel(**traits), **faults)  # type: ignore[arg-type]
    arguments = ["verify", built, "--no-qemu"] if verb == "verify" else ["run", built, "--prompt", "abc"]
    got, out, err = run(*arguments, "--port", board.port)
    assert error_line(err) == "error: " + line.replace("PORT", board.port)
    assert (got, out) == (code, "")


@pytest.mark.parametrize("seed", range(3))
def test_garbage_is_taken_for_another_baud_rate(connect: Connect, seed: int) -> None:
    error = fault(connect(to_host=wrong_baud(seed)))
    assert "what comes looks like another baud rate than 1000000 (" in error.what
    assert "bytes are no text)" in error.what
    assert (error.hint or "").startswith("--baud 115200, 921600")
    assert error.exit_code == 4


def test_a_loop_back_plug(hasty: None) -> None:
    with SerialPort.open("loop://") as line, pytest.raises(RunError) as caught:
        Link(line).open()
    assert caught.value.what == "loop:// sends back what we send: no board is behind it"


@pytest.mark.parametrize("nonce", [b"\1\2\3\4", b"\1\2\3\0", b"\0\2\3\4"])
def test_a_getty_that_echoes(connect: Connect, monkeypatch: pytest.MonkeyPatch, nonce: bytes) -> None:
    """A terminal in its usual state echoes control bytes as ^X; a nonce may hold a zero byte."""
    monkeypatch.setattr(secrets, "token_bytes", lambda n: nonce)

    class Getty(DeviceModel):
        def feed(self, data: bytes) -> None:
            self._say(b"".join(bytes([94, b + 64]) if b < 32 else bytes([b]) for b in data))

    error = fault(connect(Getty(serves=False)))
    assert "echoes what we send, but no firmware reads it" in error.what


def test_a_program_that_reads_along_is_named(connect: Connect, serve: Serve) -> None:
    client = connect(to_host=nothing)
    name = client.link.port.name
    script = f"import os, sys; os.open({name!r}, os.O_RDWR | os.O_NOCTTY); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        if other.stdout.readline():  # only root may: the port is ours alone
            assert f"(pid {other.pid})" in (fault(client).hint or "")
        other.communicate(b"")


def test_a_board_that_starts_while_we_call(connect: Connect) -> None:
    """A host may be there before the firmware."""
    model = DeviceModel(serves=False)
    client = connect(model)
    client.board.backend.serves = False  # type: ignore[attr-defined]
    ticks = iter(range(10**9))
    client.link._on_idle = lambda: setattr(model, "serves", next(ticks) > 3)
    assert client.connect().boot == 1000


def test_what_is_left_of_another_session_is_no_answer(connect: Connect) -> None:
    client = connect(DeviceModel(token_s=0.01))
    with pytest.raises(ZeroDivisionError):
        client.generate("a", on_token=lambda *_: 1 // 0)
    client.link.open()
    assert client.generate("z")["stop"] == "eos"


def test_the_ports_usual_faults_have_exit_code_4(run: Run, built: Path) -> None:
    code, _, err = run("verify", built, "--port", "/dev/ttyNONE9")
    assert code == 4
    assert error_line(err).startswith("error: there is no port /dev/ttyNONE9; try: ")


def test_a_boot_loader_is_not_stopped_by_our_bytes(run: Run, serve: Serve, built: Path) -> None:
    class Booting(DeviceModel):
        n_typed = 0

        def feed(self, data: bytes) -> None:
            if not self.serves:
                self.n_typed += len(data)
            super().feed(data)

        def tick(self, now: float) -> None:
            self.started = getattr(self, "started", now)
            if not self.serves and now - self.started > 0.6:
                self.serves = True
                self._say(READY)
            super().tick(now)

    board = Booting(serves=False)
    assert run("run", built, "--wait-ready", "20", "--port", serve(board).port, "--prompt", "abc")[0] == 0
    assert board.n_typed == 0
    impatient = serve(Booting(serves=False)).port
    assert run("run", built, "--port", impatient, "--prompt", "abc")[0] == 4
