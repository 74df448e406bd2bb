"""A host program talks to --serve over a PTY: requests, answers, and lines and hosts that fail."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import signal
import struct
import termios
import time
import tty
from pathlib import Path

import pytest

from colibri_build.frames import Deframer, Frame
from support.fake_firmware import CONTEXT, fake_answer, golden_answer, text_of
from support.serial_host import (
    CANCEL,
    DONE,
    ERROR,
    GENERATE,
    INFO,
    JSON,
    OK,
    PING,
    PONG,
    SELFTEST,
    SHUTDOWN,
    STATS,
    TRACE,
    BadLine,
    HostOnLine,
    generate_fields,
    message,
)  # fmt: skip
from support.serve_boards import Board, Start

BUILDS = ["sanitized", "aarch64"]


def connected(board: Board) -> HostOnLine:
    board.line.connect()
    return board.line


def assert_answer(
    got: tuple[list[tuple[int, int, bytes]], dict[str, object]], prompt: bytes, **options: object
) -> None:
    """Tokens, text and status are the reference's."""
    tokens, status = got
    expected = fake_answer(prompt, **options)  # type: ignore[arg-type]
    assert status["ids"] == list(expected.ids)
    assert (status["logits_hash"], status["stop"], status["status"]) == (expected.logits_hash, expected.stop, "ok")
    assert [(index, token) for index, token, _ in tokens] == list(enumerate(expected.ids))
    assert b"".join(piece for _, _, piece in tokens) == text_of(expected.ids).decode("utf-8", "replace").encode()


@pytest.mark.parametrize("build", BUILDS)
def test_a_host_gets_the_answers_of_the_command_line(start_fake: Start, build: str) -> None:
    line = connected(start_fake("--threads", "1", build=build, noise=b"[    0.000000] Booting\r\n\x00\xff\x7f"))
    assert line.host.peer["version"] == 1
    assert_answer(line.generate(b"abc"), b"abc")
    assert_answer(line.generate(b"hello", max_tokens=3), b"hello", max_tokens=3)
    sampled = {"temperature": 1.5, "top_p": 0.75, "seed": 2**63 + 7}
    assert_answer(line.generate(b"q", **sampled), b"q", **sampled)
    ids = struct.pack("<3I", 97, 258, 99)
    assert_answer(line.generate(ids, flags=1), [97, 258, 99])  # type: ignore[arg-type]
    tokens, status = line.generate(b"abc", flags=2)
    assert tokens == [] and status["ids"] == list(fake_answer(b"abc").ids)
    assert (status["prompts"], status["failed"], status["exit_code"], status["threads"]) == (1, 0, 0, 1)
    assert line.host.violations == []


@pytest.mark.parametrize("prompt,status,flags", [
    (b"", "empty_prompt", 0), (b"a\xff", "invalid_utf8", 0), (b"x" * 65, "prompt_too_long", 0),
    (struct.pack("<I", 261), "unknown_token", 1), (struct.pack("<I", 2**32 - 1), "unknown_token", 1), (b"", "empty_prompt", 1),
])  # fmt: skip
def test_a_prompt_that_the_model_cannot_take_gets_its_status(
    start_fake: Start, prompt: bytes, status: str, flags: int
) -> None:
    line = connected(start_fake())
    tokens, done = line.generate(prompt, flags=flags)
    assert tokens == [] and (done["status"], done["exit_code"], done["failed"]) == (status, 3, 1)
    assert done["message"]
    assert_answer(line.generate(b"abc"), b"abc")


def test_characters_are_never_cut(start_fake: Start) -> None:
    line = connected(start_fake())
    tokens, status = line.generate(struct.pack("<I", 0xC2), flags=1, max_tokens=4)
    ids = status["ids"]
    text = b"".join(piece for _, _, piece in tokens)
    assert text == bytes(ids).decode("utf-8", "replace").encode()
    for _, _, piece in tokens:
        piece.decode("utf-8")


def test_a_generation_is_cancelled_between_two_tokens(start_fake: Start) -> None:
    line = connected(start_fake(fake="slow"))
    request = line.request(GENERATE, generate_fields(b"!"))
    line.until(lambda: len(line.host.messages) >= 3, "first tokens")
    line.host.messages.clear()
    cancel = line.request(CANCEL, struct.pack("<H", request))
    seen = [line.answer()]
    while seen[-1][0] != DONE:
        seen.append(line.answer())
    assert (OK, cancel, b"") in seen
    status = json.loads(seen[-1][2])
    assert (status["status"], status["stop"], seen[-1][1]) == ("interrupted", "interrupted", request)
    assert status["ids"] == list(fake_answer(b"!").ids)[: len(status["ids"])]
    assert line.ask(CANCEL, struct.pack("<H", request))[1][:1] == b"\x05"


def test_a_long_prompt_is_cancelled_too(start_fake: Start) -> None:
    line = connected(start_fake(fake="slow"))
    request = line.request(GENERATE, generate_fields(b"x" * 60))
    line.request(CANCEL, struct.pack("<H", request))
    started = time.monotonic()
    assert line.answer()[0] == OK
    assert json.loads(line.answer()[2])["ids"] == []
    assert time.monotonic() - started < 0.9  # the prompt takes 1.2 s


def test_what_is_refused_is_told_and_disturbs_nothing(start_fake: Start) -> None:
    line = connected(start_fake(fake="slow"))
    running = line.request(GENERATE, generate_fields(b"V", flags=2))
    cases = [
        (GENERATE, generate_fields(b"x"), 3), (SELFTEST, b"", 3), (0x42, b"", 1), (INFO, b"x", 2), (CANCEL, b"x", 2),
        (CANCEL, b"\x77\x77", 5), (TRACE, b"", 2), (TRACE, b"\x08", 2), (TRACE, b"\x01", 6), (PING, bytes(201), 2),
    ]  # fmt: skip
    for op, fields, code in cases:
        answered, text = line.ask(op, fields)
        assert (answered, text[0]) == (ERROR, code)
        assert text[1:].isascii() and b"\n" not in text
    line.host.send(b"\x10")
    assert line.answer() == (ERROR, 0, b"\x02a message has 3 bytes before its fields")
    line.host.send(message(PING, 0))
    assert line.answer()[:2] == (ERROR, 0)
    _, status = line.done(running)
    assert status["ids"] == list(fake_answer(b"V").ids)
    for fields in (b"short", generate_fields(b"x", flags=4), generate_fields(b"123", flags=1),
                   generate_fields(b"x", temperature=-1), generate_fields(b"x", temperature=float("nan")),
                   generate_fields(b"x", top_p=0), generate_fields(b"x", top_p=1.5)):  # fmt: skip
        answered, text = line.ask(GENERATE, fields)
        assert (answered, text[0]) == (ERROR, 2)
    info = line.ask_json(INFO)
    answered, text = line.ask(GENERATE, generate_fields(b"x" * info["max_message"]))
    assert (answered, text[0]) == (ERROR, 4)
    assert_answer(line.generate(b"abc"), b"abc")


def test_info_stats_ping_and_selftest(start_fake: Start) -> None:
    line = connected(start_fake("--ctx", "20"))
    info = line.ask_json(INFO)
    assert (info["board"], info["protocol"], info["trace"], info["context"]) == ("fake-board", 1, 0, CONTEXT)
    assert line.ask(PING, bytes(range(200))) == (PONG, bytes(range(200)))
    assert line.ask(TRACE, b"\0") == (OK, b"")
    _, status = line.done(line.request(SELFTEST))
    assert (status["status"], status["logits_hash"]) == ("ok", golden_answer().logits_hash)
    line.generate(b"abc")
    stats = line.ask_json(STATS)
    assert (stats["sessions"], stats["requests"], stats["prompts"], stats["bad_frames"]) == (1, 6, 2, 0)
    assert stats["uptime_us"] > 0 and stats["frames_in"] > 5 and stats["max_rss_kib"] > 100
    keys = {"tokens", "frames_out", "repeated_frames", "trace_records", "trace_dropped", "major_faults", "minor_faults"}
    assert keys < stats.keys()


def test_a_selftest_that_fails_says_so(start_fake: Start) -> None:
    line = connected(start_fake(fake="drift"))
    _, status = line.done(line.request(SELFTEST))
    assert (status["status"], status["exit_code"]) == ("selftest", 6)
    assert status["expected_hash"] == golden_answer().logits_hash != status["logits_hash"]


@pytest.mark.parametrize("build,seed", [("sanitized", 1), ("sanitized", 2), ("aarch64", 3)])
def test_answers_are_right_over_a_line_that_loses_flips_and_doubles(start_fake: Start, build: str, seed: int) -> None:
    board = start_fake(build=build)
    line = board.line
    line.timeout_s = 30
    there, back = BadLine(seed, 0.05), BadLine(seed + 50, 0.05)
    line.to_device, line.from_device = there, back
    line.connect()
    rng = random.Random(seed)
    for _ in range(12):
        prompt = bytes(rng.choices(b"abcdefghijklmnop", k=rng.randint(1, 30)))
        assert_answer(line.generate(prompt), prompt)
    assert there.faults > 0 and back.faults > 0 and there.faults + back.faults > 8
    assert line.host.violations == []


def _token_numbers(data: bytes) -> list[int]:
    """Sequence numbers of the data frames in what a board sent."""
    frames = [item.body for item in Deframer().feed(data) if isinstance(item, Frame)]
    return [body[1] for body in frames if body[0] == 3]


@pytest.mark.parametrize("window", [1, 2, 8])
def test_a_host_that_is_slow_to_answer_is_never_overrun(start_fake: Start, window: int) -> None:
    board = start_fake()
    line = HostOnLine(board.master, window=window)
    line.connect()
    request = line.request(GENERATE, generate_fields(b"!"))
    line.step(0)
    unanswered, deadline = b"", time.monotonic() + 20
    while len(_token_numbers(unanswered)) < window and time.monotonic() < deadline:
        if select.select([board.master], [], [], 0.3)[0]:
            unanswered += os.read(board.master, 65536)
    while select.select([board.master], [], [], 0.3)[0]:
        unanswered += os.read(board.master, 65536)
    assert _token_numbers(unanswered) == list(range(window))
    line.host.feed(unanswered, time.monotonic())
    assert_answer(line.done(request), b"!")
    assert line.host.violations == []


def test_line_ends_may_be_translated_on_the_way(start_fake: Start) -> None:
    """As a terminal server or a getty-like setting does it: LF to CR LF one way, CR to LF the other."""
    board = start_fake()
    line = board.line
    line.from_device = lambda data: data.replace(b"\n", b"\r\n")
    line.to_device = lambda data: data.replace(b"\r", b"\n").replace(b"\x11", b"").replace(b"\x13", b"")
    line.connect()
    for prompt in (b"\n\r\x11\x13\x7d", b"abc\n"):
        assert_answer(line.generate(prompt), prompt)
    assert line.ask(PING, bytes(range(200))) == (PONG, bytes(range(200)))


def test_a_second_host_takes_over_from_one_that_vanished(start_fake: Start) -> None:
    board = start_fake(fake="slow")
    first = connected(board)
    first.request(GENERATE, generate_fields(b"!"))
    first.until(lambda: first.host.messages, "first token")
    second = HostOnLine(board.master, seed=2)
    second.n_requests = 100
    peer = second.connect()
    assert peer["boot"] == first.host.peer["boot"]
    assert_answer(second.generate(b"x"), b"x")
    assert second.host.violations == [] and second.ask_json(STATS)["sessions"] == 2


def test_two_starts_have_different_boot_numbers(start_fake: Start) -> None:
    assert connected(start_fake()).host.peer["boot"] != connected(start_fake()).host.peer["boot"]


def test_a_host_without_a_session_is_told_so(start_fake: Start) -> None:
    """As after a reset of the board, which the host did not notice."""
    board = start_fake()
    board.line.host.is_open = True
    board.line.host.credit = 1
    board.line.request(PING)
    board.line.until(lambda: board.line.host.resets, "RESET")
    assert board.line.host.resets == [1]
    connected(board)
    assert board.line.ask(PING, b"x")[0] == PONG


def test_shutdown_ends_the_run_in_order(start_fake: Start) -> None:
    board = start_fake(fake="slow")
    line = connected(board)
    running = line.request(GENERATE, generate_fields(b"V", flags=2))
    assert line.ask(SHUTDOWN) == (OK, b"")
    assert line.done(running)[1]["stop"] == "interrupted"
    run = board.end()
    assert line.host.resets == [4]
    assert (run.exit_code, run.status["status"], run.status["prompts"]) == (0, "ok", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_in_order_also_in_a_session(start_fake: Start, number: int) -> None:
    board = start_fake(fake="slow")
    line = connected(board)
    line.request(GENERATE, generate_fields(b"V", flags=2))
    line.step()
    os.kill(board.process.pid, number)
    run = board.end()
    assert (run.exit_code, run.status["status"], line.host.resets) == (130, "interrupted", [4])


def test_a_console_that_goes_away_ends_the_run_with_a_status(start_fake: Start, tmp_path: Path) -> None:
    errors = tmp_path / "stderr"
    with errors.open("wb") as stream:
        board = start_fake(fake="slow", stderr=stream)
    line = connected(board)
    line.request(GENERATE, generate_fields(b"!"))
    line.until(lambda: line.host.messages, "first token")
    os.close(board.master)
    assert board.process.wait(10) == 4
    assert "the console hung up; with --console PATH" in errors.read_text()


def test_a_named_console_may_go_away_and_come_back(start_fake: Start, tmp_path: Path) -> None:
    """As the gadget port of a board whose USB cable is pulled."""
    link, errors = tmp_path / "ttyGS0", tmp_path / "stderr"
    first, slave = pty.openpty()
    tty.setraw(slave)
    link.symlink_to(os.ttyname(slave))
    with errors.open("wb") as stream:
        board = start_fake("--console", str(link), "--baud", "115200", fake="slow", stdin=-3, stdout=-3, stderr=stream)
    line = HostOnLine(first)
    line.connect()
    os.close(slave)
    line.request(GENERATE, generate_fields(b"!"))
    line.until(lambda: line.host.messages, "first token")
    os.close(first)
    second, slave = pty.openpty()
    tty.setraw(slave)
    link.unlink()
    link.symlink_to(os.ttyname(slave))
    line = HostOnLine(second)
    line.expect_text(b"READY colibri protocol=1 ")
    line.connect()
    assert line.ask(SHUTDOWN) == (OK, b"")
    line.step()
    assert board.process.wait(10) == 0
    os.close(second)
    os.close(slave)


@pytest.mark.parametrize("arguments,exit_code,message", [
    (["--console", "/nowhere/tty"], 4, "cannot open /nowhere/tty: No such file or directory; try another --console"),
    (["--console", "/dev/null"], 4, "/dev/null is no terminal; try the name of a serial line, /dev/ttyS0"),
    (["--baud", "1234"], 2, "--baud 1234 is no speed of serial lines; try --baud 115200"),
    (["--ids"], 2, "--ids does not go with --serve; leave it out"),
])  # fmt: skip
def test_a_console_that_cannot_be_had_is_one_line(
    start_fake: Start, arguments: list[str], exit_code: int, message: str
) -> None:
    run = start_fake(*arguments).end()
    assert (run.exit_code, run.message) == (exit_code, message)


def test_the_terminals_settings_are_put_back(start_fake: Start, tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("wb") as stream:
        board = start_fake(raw=False, stderr=stream)
    slave = os.open(board.slave_name, os.O_RDWR | os.O_NOCTTY)
    line = connected(board)
    assert not termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
    line.ask(SHUTDOWN)
    line.step()
    assert board.process.wait(10) == 0
    assert termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
    assert os.get_blocking(slave) is not False
    os.close(slave)


def test_an_idle_firmware_takes_no_processor_time(start_fake: Start) -> None:
    board = start_fake()
    connected(board)
    until = time.monotonic() + 1.0
    before = cpu_ticks(board.process.pid)
    while time.monotonic() < until:
        board.line.step()
    assert cpu_ticks(board.process.pid) - before <= 3  # hundredths of a second


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_what_came_during_a_long_token_is_read_behind_it(start_fake: Start) -> None:
    """Else a board that computes slowly would fall behind its host, request by request."""
    line = connected(start_fake(fake="slow"))
    running = line.request(GENERATE, generate_fields(b"V", flags=2))
    pings = [line.request(PING, bytes(200)) for _ in range(80)]
    answers = [line.answer() for _ in [running, *pings]]
    assert [(op, number) for op, number, _ in answers] == [*((PONG, number) for number in pings), (DONE, running)]


def test_no_message_harms_the_firmware(start_fake: Start) -> None:
    line = connected(start_fake())
    rng = random.Random(4)
    for _ in range(600):
        op = rng.choice([INFO, GENERATE, GENERATE, GENERATE, CANCEL, SELFTEST, STATS, TRACE, PING, rng.randrange(256)])
        fields = rng.randbytes(rng.choice([0, 1, 2, 3, 20, 21, 22, 25, 60, 300, 3000]))
        if op == GENERATE and rng.random() < 0.7:
            fields = generate_fields(fields, max_tokens=rng.randrange(5), flags=rng.randrange(5))
        if op != SHUTDOWN:
            line.host.send(message(op, rng.randrange(4), fields)[: rng.choice([1, 2, 9999, 9999, 9999])])
        line.step(0)
    line.until(lambda: not line.host.queue, "acknowledgement of everything")
    line.connect()
    line.host.messages.clear()
    assert_answer(line.generate(b"abc"), b"abc")
    assert line.host.violations == []


def test_json_answers_are_longer_than_a_window(start_fake: Start) -> None:
    """INFO and DONE take several frames; with window 1 each waits for the one before."""
    board = start_fake()
    line = HostOnLine(board.master, window=1)
    line.connect()
    answered, text = line.ask(INFO)
    assert answered == JSON and len(text) > 500 and json.loads(text)["golden_prompt"] == "golden"
