"""The program with a chat form around a fake model (prefix "A:", no suffix, trimmed): every way in which a prompt arrives."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from colibri_build.run.client import Client, GenerateOptions
from colibri_build.run.link import Link
from colibri_build.run.serial_port import SerialPort
from support.fake_board import FakeBoard, FirmwareProcess
from support.fake_firmware import Program, build_fake, fake_answer, text_of
from support.serve_boards import Board

CHAT = ("MODEL_CHAT=1", "MODEL_CHAT_PREFIX_BYTES=2", "MODEL_CHAT_SUFFIX_BYTES=0", "MODEL_CHAT_TRIM=1")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program([str(build_fake(tmp_path_factory.mktemp("chat") / "sanitized", "sanitized", CHAT))])


def wrapped(text: str) -> bytes:
    return b"A:" + text.strip().encode()


@pytest.mark.parametrize("text", ["abc", "  abc\t\n", "\u3000a b\u00a0", "\u200ba", " \n ", "\x1cq\x1f", "é" * 20])
def test_a_prompt_is_put_into_the_form_and_raw_is_not(program: Program, text: str) -> None:
    status = program("--prompt", text, "--max-tokens", "5").status
    answer = fake_answer(wrapped(text), 5)
    assert (status["ids"], status["prompt_tokens"]) == (list(answer.ids), len(answer.prompt_ids))
    assert status["logits_hash"] == answer.logits_hash
    raw = program("--prompt", text, "--max-tokens", "5", "--raw").status
    assert raw["logits_hash"] == fake_answer(text.encode(), 5).logits_hash


def test_the_form_leaves_out_exactly_the_white_space_that_python_strips(program: Program) -> None:
    """Every blank of Python and its neighbours, and others: one byte too many gives another prompt."""
    blanks = [point for point in range(sys.maxunicode + 1) if chr(point).isspace() and chr(point) not in "\r\n"]
    rng = random.Random(1)
    points = {near for point in blanks for near in (point - 1, point, point + 1)} | {
        rng.randrange(0x20, 0xD800) for _ in range(400)
    }
    chars = [chr(point) for point in sorted(points) if point > 0 and chr(point) not in "\r\n"]
    lines = [f"{char}x {char}y{char}{char}" for char in chars] + [f"{char}{char}" for char in chars]
    run = program("--stdin", "--max-tokens", "1", stdin="\n".join(lines).encode() + b"\n")
    answers = run.lines("COLIBRI_ANSWER ")
    assert len(answers) == len(lines) > 800
    for line, answer in zip(lines, answers, strict=True):
        assert answer["logits_hash"] == fake_answer(wrapped(line), 1).logits_hash, ascii(line)


def test_a_bad_prompt_has_the_message_of_a_plain_one(program: Program) -> None:
    assert program("--prompt", "").status["status"] == "empty_prompt"
    bad = program("--prompt", b"ab \xc3")
    assert bad.exit_code == 3 and bad.message.startswith("the prompt is not UTF-8: byte 4 of 4 is wrong")
    long = program("--prompt", "x" * 63)
    assert long.exit_code == 3 and long.message.startswith("the prompt has more than 64 tokens")
    assert program("--prompt", "x" * 62, "--max-tokens", "1").status["prompt_tokens"] == 64
    assert program("--prompt", "x" * 20, "--ctx", "20").message.startswith(
        "the prompt has 22 tokens and the context 20"
    )
    huge = program("--prompt", "x" * 5121)
    assert huge.exit_code == 3 and huge.message == "the prompt has 5121 bytes; give at most 5120"
    assert program("--prompt", " " * 6000 + "x", "--max-tokens", "1").status["prompt_tokens"] == 3


def test_ids_and_the_embedded_prompt_know_the_form(program: Program) -> None:
    assert program("--tokens", "97,98", "--max-tokens", "1").status["prompt_tokens"] == 2
    usage = program("--tokens", "97,98", "--raw")
    assert usage.exit_code == 2 and "--raw" in usage.message
    assert program("--bench", "1").status["prompt_tokens"] == len(b"A:golden")


def typed(board: Board, line: str) -> tuple[str, str]:
    """What a person who types a line sees: the text between its echo and the status line, and how that goes on."""
    os.write(board.master, line.encode() + b"\r")
    board.line.expect_text(line.encode() + b"\r\n")
    said = board.line.expect_text(b"> ").decode().rpartition("\r\n> ")[0]
    answer, _, status = said.rpartition("\r\n-- ")
    return (answer, status.rpartition(",")[0]) if status.endswith(" ms") else (said, "")


def seen(prompt: bytes) -> tuple[str, str]:
    """What `typed` returns for a prompt of so many bytes, of at most five tokens."""
    answer = fake_answer(prompt, 5)
    n = len(answer.ids)
    return text_of(answer.ids).decode(), f"{answer.stop}, {n} token{'s' * (n != 1)}"


def test_a_host_gets_the_form_or_goes_without(program: Program) -> None:
    board = Board([*program.command, "--serve", "--max-tokens", "5"])
    try:
        line = board.line
        line.connect()
        _, status = line.generate(b" abc ", max_tokens=5)
        assert status["logits_hash"] == fake_answer(b"A:abc", 5).logits_hash
        _, status = line.generate(b" abc ", max_tokens=5, flags=4)
        assert status["logits_hash"] == fake_answer(b" abc ", 5).logits_hash
    finally:
        board.close()


def test_the_client_over_a_serial_port_asks_for_either(program: Program) -> None:
    """`run --port --raw` is the client's `is_raw`; the answer is the firmware's, by its hash."""
    with (
        FakeBoard(FirmwareProcess([*program.command, "--serve"]), baud=1_000_000) as board,
        SerialPort.open(board.port) as line,
        Client(Link(line)) as client,
    ):
        for is_raw, prompt in ((False, b"A:abc"), (True, b" abc "), (False, b"A:abc")):
            status = client.generate(" abc ", GenerateOptions(5, is_raw=is_raw))
            assert status["logits_hash"] == fake_answer(prompt, 5).logits_hash


def test_a_person_gets_the_form(program: Program) -> None:
    """The line of 63 bytes shows the prefix: with it there is one token too many."""
    board = Board([*program.command, "--serve", "--max-tokens", "5"])
    try:
        board.line.expect_text(b"\r\n> ")
        assert typed(board, " abc ") == seen(b"A:abc")
        assert typed(board, "x" * 62) == seen(b"A:" + b"x" * 62)
        assert typed(board, "x" * 63)[0].startswith("the prompt has more than 64 tokens")
    finally:
        board.close()


def test_a_person_goes_without_it_under_raw(program: Program) -> None:
    board = Board([*program.command, "--serve", "--raw", "--max-tokens", "5"])
    try:
        board.line.expect_text(b"\r\n> ")
        assert typed(board, " abc ") == seen(b" abc ")
        assert typed(board, "x" * 63) == seen(b"x" * 63)
    finally:
        board.close()


def test_a_build_without_a_form_has_no_option_and_no_flag_for_it(tmp_path: Path) -> None:
    plain = Program([str(build_fake(tmp_path / "plain", "native"))])
    assert plain("--prompt", "a", "--raw").message.startswith("unknown option '--raw'")
    assert b"--raw" not in plain("--help").stdout
    assert b"chat" not in plain("--info").stdout
    assert b"chat_" not in (tmp_path / "plain").read_bytes()
