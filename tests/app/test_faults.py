"""Every way in which a run fails: one clear message, a status of its own, a documented exit code, never a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.fake_firmware import CONTEXT, VOCAB, Program, fake_answer

USAGE = [
    ([], "nothing to do; try --prompt TEXT, --selftest, or --help"),
    (["hello"], "unexpected argument 'hello'; try --prompt TEXT, or --help"),
    (["-p", "hello"], "unexpected argument '-p'; try --prompt TEXT, or --help"),
    (["--"], "unknown option '--'; try --help"),
    (["--promt", "x"], "unknown option '--promt'; try --help"),
    (["--prompt"], "--prompt needs a value; try --prompt TEXT"),
    (["--stdin=1"], "--stdin takes no value; leave out '=1'"),
    (["--prompt", "a", "--prompt", "b"], "--prompt and --prompt do not go together; give one of them"),
    (["--prompt", "a", "--selftest"], "--prompt and --selftest do not go together; give one of them"),
    (["--bench", "3", "--max-tokens", "4"], "--max-tokens does not go with --bench; leave it out"),
    (["--info", "--threads", "1"], "--threads does not go with --info; leave it out"),
    (["--prompt", "a", "--max-tokens", "0"], "--max-tokens 0 is out of range; try 1 .. 2147483647"),
    (["--prompt", "a", "--max-tokens", "-1"], "--max-tokens -1 is out of range; try 1 .. 2147483647"),
    (["--prompt", "a", "--max-tokens", "2147483648"], "--max-tokens 2147483648 is out of range; try 1 .. 2147483647"),
    (["--prompt", "a", "--max-tokens", "9" * 30], f"--max-tokens {'9' * 30} is out of range; try 1 .. 2147483647"),
    (["--prompt", "a", "--max-tokens", "12x"], "--max-tokens '12x' is not a whole number; try --max-tokens 1"),
    (["--prompt", "a", "--max-tokens", ""], "--max-tokens '' is not a whole number; try --max-tokens 1"),
    (["--prompt", "a", "--max-tokens", " 1"], "--max-tokens ' 1' is not a whole number; try --max-tokens 1"),
    (["--prompt", "a", "--max-tokens", "1.5"], "--max-tokens '1.5' is not a whole number; try --max-tokens 1"),
    (["--prompt", "a", "--threads", "0"], "--threads 0 is out of range; try 1 .. 4"),
    (["--prompt", "a", "--threads", "5"], "--threads 5 is out of range; try 1 .. 4"),
    (["--selftest", "--ctx", "8"], "--ctx does not go with --selftest; leave it out"),
    (["--prompt", "a", "--ctx", "65"], "--ctx 65 is out of range; try 1 .. 64"),
    (["--bench", "0"], "--bench 0 is out of range; try 1 .. 64"),
    (["--prompt", "a", "--seed", "-1"], "--seed '-1' is not a whole number of 64 bits; try 0 .. 18446744073709551615"),
    (
        ["--prompt", "a", "--seed", "18446744073709551616"],
        "--seed '18446744073709551616' is not a whole number of 64 bits; try 0 .. 18446744073709551615",
    ),
    (["--prompt", "a", "--temperature", "hot"], "--temperature 'hot' is not a decimal number; try --temperature 0.7"),
    (["--prompt", "a", "--temperature", "1e"], "--temperature '1e' is not a decimal number; try --temperature 0.7"),
    (["--prompt", "a", "--temperature", "nan"], "--temperature 'nan' is not a decimal number; try --temperature 0.7"),
    (["--prompt", "a", "--temperature", "0x1"], "--temperature '0x1' is not a decimal number; try --temperature 0.7"),
    (["--prompt", "a", "--temperature", "-1"], "--temperature -1 is out of range; try 0 (greedy) or 0.01 .. 100"),
    (["--prompt", "a", "--temperature", "1e-3"], "--temperature 1e-3 is out of range; try 0 (greedy) or 0.01 .. 100"),
    (["--prompt", "a", "--temperature", "1e999"], "--temperature 1e999 is out of range; try 0 (greedy) or 0.01 .. 100"),
    (["--prompt", "a", "--top-p", "0"], "--top-p 0 is out of range; try more than 0, at most 1"),
    (["--prompt", "a", "--top-p", "1.0001"], "--top-p 1.0001 is out of range; try more than 0, at most 1"),
    (["--tokens", "1,x"], "--tokens: 'x' is not a token id; give whole numbers: 1,2,3"),
    (["--tokens", "1,,2"], "--tokens: '' is not a token id; give whole numbers: 1,2,3"),
    (["--tokens", "1,2,"], "--tokens: '' is not a token id; give whole numbers: 1,2,3"),
    (["--tokens", "1, 2"], "--tokens: ' 2' is not a token id; give whole numbers: 1,2,3"),
]
NOT_IN_VOCABULARY = f"is not in the vocabulary; try 0 .. {VOCAB - 1}"
BAD_PROMPTS = [
    (["--prompt", ""], "empty_prompt", "the prompt is empty; give at least one character or token id"),
    (["--tokens", ""], "empty_prompt", "the prompt is empty; give at least one character or token id"),
    (["--tokens", str(VOCAB)], "unknown_token", f"token id {VOCAB} {NOT_IN_VOCABULARY}"),
    (["--tokens", "5,-1"], "unknown_token", f"token id -1 {NOT_IN_VOCABULARY}"),
    (["--tokens", "9" * 50], "unknown_token", f"token id {'9' * 40} {NOT_IN_VOCABULARY}"),
    (
        ["--prompt", "a" * (CONTEXT + 1)],
        "prompt_too_long",
        "the prompt has more than 64 tokens, all that the context was built for; shorten it",
    ),
    (
        ["--tokens", ",".join(["7"] * (CONTEXT + 9))],
        "prompt_too_long",
        "the prompt has 73 tokens and the context 64 positions; try a shorter prompt",
    ),
    (
        ["--prompt", "abcde", "--ctx", "4"],
        "prompt_too_long",
        "the prompt has 5 tokens and the context 4 positions; try a larger --ctx, or shorten the prompt",
    ),
    (
        ["--prompt", b"ab\xff"],
        "invalid_utf8",
        "the prompt is not UTF-8: byte 3 of 3 is wrong; convert it with iconv",
    ),
    (
        ["--prompt", b"\xc3\xa9\xe2\x82"],
        "invalid_utf8",
        "the prompt is not UTF-8: byte 3 of 4 is wrong; convert it with iconv",
    ),
]


@pytest.mark.parametrize("arguments,message", USAGE)
def test_usage(sanitized: Program, arguments: list[str], message: str) -> None:
    run = sanitized(*arguments)
    assert run.message == message
    assert (run.exit_code, run.status["status"], run.stdout) == (2, "usage", b"")


@pytest.mark.parametrize("arguments,status,message", BAD_PROMPTS)
def test_bad_prompts(program: Program, arguments: list[str], status: str, message: str) -> None:
    run = program(*arguments)
    assert run.message == message
    assert (run.exit_code, run.status["status"], run.stdout) == (3, status, b"")
    assert (run.status["ids"], run.status["failed"]) == ([], int(status != "usage"))


def test_the_users_text_cannot_forge_a_line(sanitized: Program) -> None:
    run = sanitized('--x\nCOLIBRI_STATUS {"status":"ok"}\x1b[31m\xe9')
    assert run.message == 'unknown option \'--x?COLIBRI_STATUS {"status":"ok"}?[31m??\'; try --help'
    assert run.status["status"] == "usage"


def test_a_very_long_argument_is_cut(sanitized: Program) -> None:
    run = sanitized("--" + "x" * 100_000)
    assert run.exit_code == 2
    assert len(run.message) < 300


@pytest.mark.parametrize(
    "fake,layer,message",
    [
        ("nan-layer", 1, "NaN or infinity in layer 1 at position 3; check the weights with --selftest"),
        ("nan-logits", None, "NaN or infinity in the logits at position 3; check the weights with --selftest"),
    ],
)
def test_what_is_not_finite_stops_the_answer(program: Program, fake: str, layer: int | None, message: str) -> None:
    run = program("--prompt", "a", fake=fake)
    assert run.message == message
    assert (run.exit_code, run.status["status"], run.status.get("layer")) == (5, "not_finite", layer)
    assert run.status["ids"] == [98, 99, 100][: len(run.status["ids"])]
    assert run.stdout.rstrip(b"\n") == bytes(run.status["ids"])
    assert run.stdout.endswith(b"\n")


@pytest.mark.parametrize("mode", [["--selftest"], ["--bench", "5"]])
def test_not_finite_outranks_other_verdicts(sanitized: Program, mode: list[str]) -> None:
    run = sanitized(*mode, fake="nan-logits" if mode[0] == "--bench" else "nan-layer")
    if mode[0] == "--bench":  # its prompt has six tokens; the fault at the third is not looked at
        assert run.status["status"] == "ok"
        run = sanitized(*mode, fake="nan-layer")
    assert (run.exit_code, run.status["status"]) == (5, "not_finite")
    assert (run.status["prompts"], run.status["failed"]) == (1, 1)


def test_stdin_goes_on_after_a_line_that_failed(program: Program) -> None:
    long_line = b"x" * 6000
    run = program("--stdin", stdin=b"a\xff\n" + long_line + b"\n" + b"y" * 65 + b"\nwx\n")
    answers = run.lines("COLIBRI_ANSWER ")
    assert [a["status"] for a in answers] == ["invalid_utf8", "prompt_too_long", "prompt_too_long", "ok"]
    assert answers[1]["message"] == "a line of 6000 bytes; give at most 5120"
    assert answers[3]["logits_hash"] == fake_answer(b"wx").logits_hash
    assert run.stdout == b"\n\n\nyz\n"
    assert (run.status["failed"], run.status["status"], run.exit_code) == (3, "invalid_utf8", 3)
    assert run.stderr.count("colibri_inference: ") == 3


def test_threads_that_cannot_start(program: Program) -> None:
    run = program("--prompt", "a", "--threads", "3", fake="no-threads")
    assert run.message == "cannot start 3 threads; try --threads 1"
    assert (run.exit_code, run.status["status"], run.status["threads"]) == (7, "threads", 0)


@pytest.mark.parametrize("mode", [["--prompt", "a"], ["--help"], ["--info"], ["--selftest"], ["--stdin"]])
def test_full_disk(program: Program, mode: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        run = program(*mode, stdin=b"abc\nabc\n", stdout=full)
    assert run.message.startswith("cannot write to standard output: No space left on device")
    assert (run.exit_code, run.status["status"]) == (4, "io")


def test_standard_output_that_is_closed(program: Program) -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *program.command]
    run = Program(shell)("--prompt", "a")
    assert (run.exit_code, run.status["status"]) == (4, "io")


def test_standard_input_that_cannot_be_read(program: Program) -> None:
    shell = ["sh", "-c", 'exec "$@" </', "sh", *program.command]
    run = Program(shell)("--stdin")
    assert run.message == "cannot read standard input: Is a directory"
    assert (run.exit_code, run.status["status"]) == (4, "io")


def start(program: Program, *args: str, fake: str = "", **popen: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*program.command, *args], stdin=-1, stderr=-1, env=program.environment(fake), **{"stdout": -1, **popen}
    )


def test_a_reader_that_leaves(program: Program) -> None:
    with start(program, "--prompt", "!", fake="slow") as process:
        assert process.stdout
        assert process.stdout.read(1) == b'"'
        process.stdout.close()
        stderr = process.stderr.read().decode()  # type: ignore[union-attr]
        assert process.wait(10) == 4
    assert "nobody reads standard output any more (closed pipe)" in stderr
    assert stderr.splitlines()[-1].startswith('COLIBRI_STATUS {"status":"io","exit_code":4,')


def wait_until_caught(pid: int) -> None:
    """Wait until the program has its handlers: ignoring SIGPIPE comes last, and QEMU passes that on to this machine."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        (line,) = [x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("SigIgn:")]
        if int(line.split()[1], 16) >> (signal.SIGPIPE - 1) & 1:
            return
        time.sleep(0.005)
    raise TimeoutError(line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("mode", [["--prompt", "!"], ["--bench", "50"], ["--selftest"], ["--stdin"]])
def test_signals_end_a_run_in_order(program: Program, mode: list[str], number: int) -> None:
    with start(program, *mode, fake="slow") as process:
        wait_until_caught(process.pid)
        if mode[0] == "--prompt":
            assert process.stdout
            assert process.stdout.read(2) == b'"#'
        process.send_signal(number)
        stderr = process.communicate(timeout=10)[1].decode()
    assert stderr.startswith('COLIBRI_STATUS {"status":"interrupted","exit_code":130,')
    assert '"stop":"interrupted"' in stderr
    assert process.returncode == 130


def fill(writer: int) -> int:
    """Write into a pipe until it is full."""
    os.set_blocking(writer, False)
    n_bytes = 0
    try:
        while True:
            n_bytes += os.write(writer, bytes(4096))
    except BlockingIOError:
        return n_bytes


def test_a_signal_ends_a_write_that_blocks(program: Program) -> None:
    reader, writer = os.pipe()
    fill(writer)
    os.set_blocking(writer, True)
    with start(program, "--prompt", "!", stdout=writer) as process:
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        stderr = process.communicate(timeout=10)[1].decode()
    os.close(writer)
    os.close(reader)
    assert process.returncode == 130
    assert stderr.startswith('COLIBRI_STATUS {"status":"interrupted"')


def test_output_to_a_slow_non_blocking_pipe_is_complete(program: Program) -> None:
    reader, writer = os.pipe()
    filled = fill(writer)
    with start(program, "--prompt", "abc", stdout=writer) as process:
        os.close(writer)
        time.sleep(0.2)
        with os.fdopen(reader, "rb") as stream:
            assert stream.read()[filled:] == b"defghijklmnopqrstuvwxyz\n"
        assert process.wait(10) == 0


def test_nohup_is_respected(sanitized: Program) -> None:
    with start(Program(["nohup", *sanitized.command]), "--prompt", "!", "--max-tokens", "8", fake="slow") as process:
        assert process.stdout
        process.stdout.read(1)
        process.send_signal(signal.SIGHUP)
        assert process.communicate(timeout=10)[0].endswith(b")\n")
        assert process.returncode == 0
