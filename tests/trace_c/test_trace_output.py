"""Where the records go: a reader who is slow, gone or broken costs records, and says how many; never an answer."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import socket
import subprocess
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from debug_firmware import DebugFirmware, Workshop
from trace_decoder import TOKEN, frames_of, records_of

LONG = ("--tokens", ",".join(str(1 + i % 200) for i in range(60)), "--max-tokens", "4")
F_SETPIPE_SZ = 1031


@pytest.fixture
def firmware(x86: Workshop) -> DebugFirmware:
    return x86.firmware()


def run_with(firmware: DebugFirmware, fd: int, encoding: str = "binary") -> tuple[dict[str, Any], float]:
    start = time.monotonic()
    done = firmware.start([*LONG, "--trace", encoding, "--trace-fd", "3"], fd)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 0, lines
    return json.loads(lines[-1].removeprefix("COLIBRI_STATUS ")), time.monotonic() - start


def drain(fd: int) -> bytes:
    os.set_blocking(fd, False)
    data = b""
    try:
        while chunk := os.read(fd, 1 << 16):
            data += chunk
    except BlockingIOError:
        pass
    return data


def test_a_pipe_that_nobody_reads_costs_records_and_not_the_answer(firmware: DebugFirmware) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    status, seconds = run_with(firmware, writer)
    assert os.get_blocking(writer), "the flags belong to everyone who shares the pipe"
    os.close(writer)
    frames = frames_of(drain(reader))
    os.close(reader)
    arrived = [record for frame in frames for record in frame.records]
    assert status["status"] == "ok" and status["tokens"] == 4
    assert status["trace"]["dropped"] > 0
    assert status["trace"]["records"] == len(arrived) + status["trace"]["dropped"]
    assert seconds < 15


def test_what_arrives_of_text_is_whole_lines(firmware: DebugFirmware) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    status, _ = run_with(firmware, writer, "text")
    os.close(writer)
    text = drain(reader).decode()
    os.close(reader)
    assert text.endswith("\n")
    assert all(line.startswith("[") for line in text.splitlines())
    assert status["trace"]["records"] == text.count("\n") + status["trace"]["dropped"]


def test_a_late_reader_learns_which_tokens_are_incomplete(firmware: DebugFirmware) -> None:
    """Ends of tokens have their own room in the ring, and count what is missing before them."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    command = [str(firmware.elf), *LONG, "--trace", "binary", "--trace-fd", str(writer)]
    process = subprocess.Popen(
        command, pass_fds=(writer,), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0
    )
    os.close(writer)
    time.sleep(0.4)  # in which it computes all and waits at its end, a second at most
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    assert process.stderr is not None
    process.stderr.read()
    assert process.wait(timeout=10) == 0
    frames = frames_of(data)
    lost = [int.from_bytes(r[2:4], "little") for frame in frames for r in frame.records if r[0] == TOKEN]
    assert lost[0] == 0
    assert 0 < sum(lost) <= frames[-1].dropped
    assert len(lost) > 32


def test_dropped_says_how_many_before_the_token_that_lacks_them(firmware: DebugFirmware) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    command = [str(firmware.elf), *LONG, "--trace", "text", "--trace-fd", str(writer)]
    process = subprocess.Popen(command, pass_fds=(writer,), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.close(writer)
    time.sleep(0.4)
    with os.fdopen(reader) as stream:
        lines = stream.read().splitlines()
    assert process.stderr is not None
    process.stderr.read()
    assert process.wait(timeout=10) == 0
    counts = [int(line.split()[1]) for line in lines if line.startswith("[DROPPED] ")]
    assert counts and counts == sorted(set(counts))
    at = next(i for i, line in enumerate(lines) if line.startswith("[DROPPED] "))
    assert lines[at + 1].startswith("[TOKEN] ")


def test_an_unread_standard_error_does_not_hold_up_the_answer(firmware: DebugFirmware) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    process = subprocess.Popen([str(firmware.elf), *LONG], stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    assert process.stdout is not None
    assert process.stdout.readline().endswith(b"\n")
    with os.fdopen(reader) as stream:
        *traces, status = stream.read().splitlines()
    assert process.wait(timeout=10) == 0
    assert status.startswith('COLIBRI_STATUS {"status":"ok"')
    assert all(line.startswith("[") for line in traces)


def test_a_terminal_that_was_stopped_does_not_stop_the_firmware(firmware: DebugFirmware) -> None:
    """Ctrl-S on a console, or a serial line without a reader."""
    controller, terminal = pty.openpty()
    termios.tcflow(terminal, termios.TCOOFF)
    status, seconds = run_with(firmware, terminal, "text")
    os.close(terminal)
    os.close(controller)
    assert status["status"] == "ok"
    assert status["trace"]["dropped"] == status["trace"]["records"]
    assert seconds < 15


def test_a_socket_that_nobody_reads(firmware: DebugFirmware) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
        status, seconds = run_with(firmware, theirs.fileno())
        assert status["trace"]["dropped"] > 0
        assert seconds < 15


@pytest.mark.parametrize("encoding", ["text", "binary"])
def test_a_full_disk_is_named_and_the_answer_goes_on(firmware: DebugFirmware, encoding: str) -> None:
    with Path("/dev/full").open("wb") as full:
        status, _ = run_with(firmware, full.fileno(), encoding)
    assert status["status"] == "ok" and status["tokens"] == 4
    assert status["trace"]["error"] == "No space left on device"
    assert status["trace"]["dropped"] == status["trace"]["records"]


def test_a_reader_who_went_away_is_named(firmware: DebugFirmware) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    status, _ = run_with(firmware, writer)
    os.close(writer)
    assert status["trace"]["error"] == "Broken pipe"


def test_a_file_is_appended_to(firmware: DebugFirmware, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"before")
    with path.open("ab") as stream:
        status, _ = run_with(firmware, stream.fileno())
    data = path.read_bytes()
    assert data.startswith(b"before\0")
    assert len(records_of(data[6:])) == status["trace"]["records"]
    assert status["trace"]["dropped"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trace-fd", "9"], "--trace-fd 9 is not open for writing; in a shell: 9>trace.bin"),
        (["--trace-fd", "3"], "--trace-fd 3 is not open for writing; in a shell: 3>trace.bin"),
        (["--trace-fd", "x"], "--trace-fd 'x' is not a whole number"),
        (["--trace-fd", "-1"], "--trace-fd -1 is out of range"),
        (["--trace", "loud"], "--trace 'loud' is unknown; try text, binary or off"),
        (["--trace-events", "routing,sound"], "--trace-events: 'sound' is unknown"),
        (["--trace-events", ""], "--trace-events: '' is unknown"),
    ],
)
def test_bad_options_are_refused(firmware: DebugFirmware, arguments: list[str], message: str) -> None:
    with Path("/dev/null").open("rb") as read_only:
        done = firmware.start([*LONG, *arguments], read_only.fileno())
    assert done.returncode == 2
    assert message in done.stderr.decode()


def test_what_is_not_compiled_in_is_refused_with_the_way_to_have_it(x86: Workshop) -> None:
    done = x86.firmware(("routing",))(*LONG, "--trace-events", "routing,timing", check=False)
    assert done.exit_code == 2
    assert b"timing is not compiled in; build with --debug timing, too" in done.stderr
    plain = x86.firmware(())(*LONG, "--trace", "off", check=False)
    assert b"unknown option '--trace'" in plain.stderr


def test_the_bench_says_what_recording_costs(x86: Workshop) -> None:
    run = x86.firmware()("--bench", "21", "--trace", "binary", "--trace-fd", "3")
    bench = run.status["bench"]
    assert (bench["tokens"], bench["traced_tokens"]) == (11, 10)
    assert bench["traced_median_us"] > 0
    assert b"recorded median" in run.stdout
    records = records_of(run.trace)
    n_prompt = run.status["prompt_tokens"]
    positions = [int.from_bytes(record[4:8], "little") for record in records if record[0] == TOKEN]
    assert positions == [*range(n_prompt), *range(n_prompt + 1, n_prompt + 21, 2)]
    off = x86.firmware()("--bench", "21", "--trace", "off").status
    assert off["bench"]["tokens"] == 21
    assert "traced_tokens" not in off["bench"] and "trace" not in off
