"""A person at a terminal program: typing, editing, cancelling, reading. Needs no frame."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable

import pexpect
import pytest

from colibri_build.frames import encode
from support.fake_firmware import fake_answer, text_of
from support.serial_host import OK, SHUTDOWN
from support.serve_boards import Start

READY = re.escape('READY colibri protocol=1 model=fake_"modél"_\\ digest=0000000000000000\r\n> ')
STATUS = r"-- (\w+), (\d+) tokens?, (\d+) ms\r\n> "


@pytest.fixture
def terminal(fake_for: Callable[[str], list[str]]) -> Callable[..., pexpect.spawn]:
    """A terminal as a person has it in front: cooked until the firmware sets it."""

    def start(*arguments: str, fake: str = "") -> pexpect.spawn:
        command, *rest = [*fake_for("sanitized"), "--serve", *arguments]
        environment = {**os.environ, "FAKE": fake, "ASAN_OPTIONS": "detect_leaks=0"}
        child = pexpect.spawn(command, rest, env=environment, encoding="utf-8", timeout=15)
        child.delaybeforesend = None
        child.expect(READY)
        return child

    return start


def answered(child: pexpect.spawn, line: str, answer: str, stop: str = "eos") -> None:
    """Wait for the echo of a line, its answer, and the status line."""
    child.expect(STATUS)
    assert child.before == f"{line}\r\n{answer}" + "\r\n" * (answer != "")
    assert child.match[1] == stop


def shown(prompt: bytes) -> str:
    return text_of(fake_answer(prompt).ids).decode("utf-8", "replace").replace("\n", "\r\n")


@pytest.mark.parametrize("line_end", ["\r", "\n", "\r\n"])
def test_a_line_gets_its_answer_and_then_a_prompt(terminal: Callable[..., pexpect.spawn], line_end: str) -> None:
    child = terminal()
    for line in ("vwx", "xyz"):
        child.send(line + line_end)
        answered(child, line, shown(line.encode()))
    child.send(line_end)
    child.expect_exact("\r\n> ")
    assert child.before == ""


def test_the_options_of_the_command_line_hold(terminal: Callable[..., pexpect.spawn]) -> None:
    child = terminal("--max-tokens", "2", "--temperature", "1.5", "--seed", "5")
    child.send("abc\r")
    child.expect(STATUS)
    ids = fake_answer(b"abc", 2, temperature=1.5, seed=5).ids
    assert child.match.groups()[:2] == ("length", str(len(ids)))


@pytest.mark.parametrize("keys,line", [
    ("vwy\x7fx", "vwx"), ("vwx\x08\x08wx", "vwx"), ("é€😀x\x7f\x7f\x7f\x7f" + "vwx", "vwx"), ("abc\x15vwx", "vwx"),
    ("\x7f\x7f\x15vwx", "vwx"), ("v\x1b[A\x1b[1;5C\x1bOPwx", "vwx"), ("v\x01w\x02x", "vwx"), ("v\x00wx", "vwx"),
    ("ä漢\x7fz", "äz"),
])  # fmt: skip
def test_a_line_can_be_edited(terminal: Callable[..., pexpect.spawn], keys: str, line: str) -> None:
    """What is computed is what is left on the screen: characters go as a whole, and with the columns that they took."""
    child = terminal("--max-tokens", "9")
    child.send(keys + "\r")
    child.expect(STATUS)
    echo, answer = child.before.split("\r\n", 1)
    assert screen(echo) == line
    expected = fake_answer(line.encode(), 9)
    assert int(child.match[2]) == len(expected.ids)
    assert answer.removesuffix("\r\n") == text_of(expected.ids).decode("utf-8", "replace")


def screen(echo: str) -> str:
    """What a terminal shows of an echo without line ends."""
    cells: list[str] = []
    at = 0
    for character in echo:
        if character == "\b":
            at -= 1
            continue
        for part in (character, "") if character in "漢😀" else (character,):
            cells[at : at + 1] = [part]
            at += 1
    return "".join(cells).rstrip()


def test_ctrl_c_drops_the_line_or_cancels_the_answer(terminal: Callable[..., pexpect.spawn]) -> None:
    child = terminal(fake="slow")
    child.send("never\x03vwx\r")
    child.expect_exact("^C\r\n> ")
    child.expect(STATUS)
    child.send("!\r")
    child.expect_exact("$%")
    started = time.monotonic()
    child.send("\x03")
    child.expect(STATUS)
    assert child.match[1] == "interrupted" and time.monotonic() - started < 0.8
    child.send("xyz\r")
    child.expect(STATUS)
    assert child.match[1] == "eos"


def test_what_is_typed_during_an_answer_waits_for_its_turn(terminal: Callable[..., pexpect.spawn]) -> None:
    child = terminal(fake="slow")
    child.send("r\rxyz\r")
    answered(child, "r", shown(b"r"))
    answered(child, "xyz", "")


def test_a_prompt_that_fails_says_why(terminal: Callable[..., pexpect.spawn]) -> None:
    child = terminal()
    child.send("x" * 65 + "\r")
    child.expect(STATUS)
    assert child.match.groups()[:2] == ("prompt_too_long", "0")
    assert child.before.endswith(
        "\r\nthe prompt has more than 64 tokens, all that the context was built for; shorten it\r\n"
    )
    child.send("xyz\r")
    answered(child, "xyz", "")


def test_an_answer_cannot_disturb_terminal_or_protocol(terminal: Callable[..., pexpect.spawn]) -> None:
    """The bytes 00 and escape of an answer come as '?', line feeds as CR LF, tabs as they are."""
    child = terminal("--max-tokens", "11")
    child.send("\x09\r")  # the fake model counts on from there: LF, VT, FF, CR ...
    child.expect(STATUS)
    assert child.before == " \r\n\r\n" + "?" * 10 + "\r\n"


def test_ready_comes_again_after_a_session(start_fake: Start) -> None:
    board = start_fake()
    line = board.line
    line.expect_text(b"> ")
    line.connect()
    line.host.text.clear()
    os.write(board.master, b"typed in the middle of a session\r")
    line.host.put(b"\0\x02\x06\x05\0", time.monotonic())  # a bad frame
    line.step()
    os.write(board.master, encode(b"\x06"))
    line.host.is_open, line.host.nonce = False, 0
    assert line.expect_text(b"> ").startswith(b"\r\nREADY colibri protocol=1 ")
    os.write(board.master, b"w")
    assert line.expect_text(b"w") == b"w"  # an echo at once, although a 00 came before
    os.write(board.master, b"xy\r")
    line.expect_text(b"-- eos, ")


def test_lines_from_a_pipe_are_answered_and_its_end_ends_the_run(fake_for: Callable[[str], list[str]]) -> None:
    lines = b"".join(b"%d xyz\n" % i for i in range(400))
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [*fake_for("sanitized"), "--serve"]
    done = subprocess.run(command, input=lines, capture_output=True, env=environment, timeout=20)
    assert done.stdout.count(b"-- eos, 1 token, ") == 400
    assert done.returncode == 0 and b'"prompts":400,"failed":0' in done.stderr
    empty = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=20)
    assert empty.returncode == 0 and empty.stdout.startswith(b"READY ")


def test_a_pipe_that_nobody_reads_ends_the_run(fake_for: Callable[[str], list[str]]) -> None:
    command = [*fake_for("sanitized"), "--serve"]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdout.close()
    process.stdin.write(b"xyz\n")
    process.stdin.flush()
    assert process.wait(10) == 4
    assert b'"status":"io"' in process.stderr.read()


def test_a_terminal_that_nobody_reads_does_not_stop_the_firmware(start_fake: Start) -> None:
    """Its buffer is full after some answers: the rest is lost, and a host that comes later is served."""
    board = start_fake()
    os.write(board.master, b"A\r" * 120)  # 10 KiB of answers
    time.sleep(2.5)
    while select.select([board.master], [], [], 0.5)[0]:
        os.read(board.master, 65536)
    board.line.connect()
    assert board.line.ask(SHUTDOWN) == (OK, b"")
    board.line.step()
    assert board.process.wait(10) == 0


def test_a_signal_ends_an_idle_firmware(start_fake: Start) -> None:
    board = start_fake()
    board.line.expect_text(b"> ")
    os.kill(board.process.pid, signal.SIGTERM)
    run = board.end()
    assert (run.exit_code, run.status["status"]) == (130, "interrupted")
