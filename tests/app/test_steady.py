"""Options for steady latency on the program around a fake model: what is asked, what is refused, what is told."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from support.fake_firmware import Program, Run

DECIMAL = "is not a decimal number; try --deadline-ms 20"
RANGE = "is out of range; try 0.001 .. 3600000"
USAGE = [
    (["--pin", "0-1,"], "--pin '0-1,' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", "1-0"], "--pin '1-0' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", "-1"], "--pin '-1' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", "0-"], "--pin '0-' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", ""], "--pin '' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", "all"], "--pin 'all' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", "1024"], "--pin '1024' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", "99999999999999999999"], "--pin '99999999999999999999' is no list of CPUs; try --pin 0,1 or --pin 0-3"),
    (["--pin", "0-2,1", "--threads", "4"], "--pin 0-2,1 names CPU 1 twice; give each thread its own"),
    (["--pin", "0-1023"], "--pin 0-1023: more CPUs than threads; give at most 4"),
    (["--pin", "0-2", "--threads", "2"], "--pin names 3 CPUs for 2 threads; try --threads 3"),
    (["--pin", "0", "--threads", "2"], "--pin names 1 CPUs for 2 threads; try --threads 1"),
    (["--realtime", "0"], "--realtime 0 is out of range; try 1 .. 99"),
    (["--realtime", "100"], "--realtime 100 is out of range; try 1 .. 99"),
    (["--deadline-ms", "soon"], f"--deadline-ms 'soon' {DECIMAL}"),
    (["--deadline-ms", "nan"], f"--deadline-ms 'nan' {DECIMAL}"),
    (["--deadline-ms", "0"], f"--deadline-ms 0 {RANGE}"),
    (["--deadline-ms", "-3"], f"--deadline-ms -3 {RANGE}"),
    (["--deadline-ms", "1e9"], f"--deadline-ms 1e9 {RANGE}"),
]
ANSWER = ["--prompt", "uvw", "--max-tokens", "4"]  # x y z, and an end of sequence


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_a_value_that_means_nothing_is_refused_before_the_run(
    sanitized: Program, arguments: list[str], message: str
) -> None:
    run = sanitized("--prompt", "a", *arguments)
    assert run.message == message
    assert (run.exit_code, run.status["status"], run.stdout) == (2, "usage", b"")


def late_of(run: Run) -> list[dict[str, Any]]:
    """The late tokens that were told, in order."""
    return run.lines("COLIBRI_LATE ")


def test_every_token_over_the_deadline_is_told_with_its_place(program: Program) -> None:
    run = program(*ANSWER, "--deadline-ms", "0.5", fake="slow")  # 20 ms a token
    # The first token belongs to the prompt; y, z and the end of sequence follow positions 3, 4 and 5.
    assert [late["position"] for late in late_of(run)] == [3, 4, 5]
    assert all(late["ms"] >= 20 for late in late_of(run))
    deadline = run.status["deadline"]
    assert (deadline["limit_us"], deadline["late"]) == (500, 3)
    assert deadline["worst_us"] == round(1000 * max(late["ms"] for late in late_of(run)))
    assert (run.exit_code, run.stdout) == (0, b"xyz\n")


def test_a_deadline_that_holds_says_so(program: Program) -> None:
    run = program(*ANSWER, "--deadline-ms", "60000", fake="slow")
    assert run.status["deadline"] == {"limit_us": 60_000_000, "late": 0, "worst_us": 0}
    assert late_of(run) == []


def test_without_a_deadline_nothing_is_timed(program: Program) -> None:
    assert "deadline" not in program(*ANSWER, fake="slow").status


def test_the_lines_of_late_tokens_are_bounded_their_number_is_not(sanitized: Program) -> None:
    run = sanitized("--bench", "20", "--deadline-ms", "1.5", fake="slow")
    assert [late["position"] for late in late_of(run)] == list(range(6, 22))
    assert run.status["deadline"]["late"] == 20
    assert b"over deadline   20\n" in run.stdout
    assert run.status["deadline"]["worst_us"] == run.status["bench"]["max_us"]


def test_each_answer_of_stdin_has_its_own_count(sanitized: Program) -> None:
    run = sanitized("--stdin", "--max-tokens", "3", "--deadline-ms", "0.5", fake="slow", stdin=b"a\nab\n")
    assert [answer["deadline"]["late"] for answer in run.lines("COLIBRI_ANSWER ")] == [2, 2]
    assert run.status["deadline"]["late"] == 4
    assert [late["position"] for late in late_of(run)] == [1, 2, 2, 3]


def test_a_slow_reader_does_not_make_tokens_late(program: Program) -> None:
    """Writing is not computing: a terminal at 9600 baud would make each token miss its deadline."""
    reader, writer = os.pipe()
    capacity = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, bytes(capacity))

    def read_at_last() -> None:
        time.sleep(1.5)
        while os.read(reader, capacity):
            pass

    thread = threading.Thread(target=read_at_last)
    thread.start()
    start = time.monotonic()
    run = program(*ANSWER, "--deadline-ms", "700", stdout=writer)
    assert time.monotonic() - start > 1
    assert run.status["deadline"] == {"limit_us": 700_000, "late": 0, "worst_us": 0}
    os.close(writer)
    thread.join()
    os.close(reader)


@pytest.mark.parametrize("mode", [["--selftest"], ["--bench", "3"], ["--prompt", "uvw"], ["--stdin"]])
def test_the_options_change_no_answer(program: Program, mode: Sequence[str]) -> None:
    options = ["--prefault", "--huge-pages", "--lock-memory", "--realtime", "1", "--pin", "0", "--threads", "1"]
    plain, steady = (program(*mode, *more, stdin=b"uvw\n") for more in (["--threads", "1"], options))
    assert steady.exit_code == plain.exit_code == 0
    assert steady.status["logits_hash"] == plain.status["logits_hash"]
    assert steady.status["prefault"]["bytes"] > 4096


def test_a_cpu_that_is_not_there_is_told_and_the_run_goes_on(program: Program) -> None:
    run = program(*ANSWER, "--pin", "1023", "--threads", "1")
    assert (run.exit_code, run.stdout) == (0, b"xyz\n")
    assert run.status["refused"] == {"pin": "Invalid argument"}
    said = [line for line in run.stderr.splitlines() if line.startswith("colibri_inference: ")]
    assert said == [
        "colibri_inference: --pin was refused: Invalid argument; try CPUs of /sys/devices/system/cpu/online, in a "
        "container those of its cpuset"
    ]


def test_options_without_effect_on_a_small_program_say_why(sanitized: Program) -> None:
    run = sanitized(*ANSWER, "--huge-pages")
    assert list(run.status["refused"]) == ["huge-pages"]
    assert run.status["huge_pages"]["copied_bytes"] == 0


def test_info_names_the_options_that_are_compiled_in(program: Program) -> None:
    names = json.loads(program("--info").stdout)["run_options"]
    assert names == ["deadline-ms", "huge-pages", "lock-memory", "pin", "prefault", "realtime"]
