"""Real firmwares in --serve on a serial line: the tokens, logits and text of --prompt, on a good line and on a bad one."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import pytest

from colibri_build.pipeline import BuildResult
from colibri_build.run.runner import runner_for
from support.builds import PROMPTS, build_tiny, quick_board, run
from support.serial_host import ERROR, GENERATE, INFO, OK, SELFTEST, SHUTDOWN, TRACE, BadLine, generate_fields
from support.serve_boards import Board

Built = Callable[[str], BuildResult]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """native: with traces compiled in; cortex-a53: without."""
    folder = tmp_path_factory.mktemp("served")
    results: dict[str, BuildResult] = {}

    def get(name: str) -> BuildResult:
        if name not in results:
            native = name == "native"
            board = quick_board(folder) if native else name
            debug = ("memory", "routing", "timing") if native else ()
            results[name] = build_tiny(folder, board, out=folder / name, debug=debug)
        return results[name]

    return get


@pytest.fixture
def start(built: Built, boards: list[Board]) -> Callable[..., tuple[Board, BuildResult]]:
    def begin(name: str, *arguments: str) -> tuple[Board, BuildResult]:
        result = built(name)
        command = runner_for(result.board).command(str(result.firmware.elf), "--serve", *arguments)
        boards.append(Board(command, noise=b"U-Boot 2023.01\r\nStarting kernel ...\r\n\r\n"))
        boards[-1].line.timeout_s = 30
        return boards[-1], result

    return begin


def answer_of(result: BuildResult, prompt: str, *arguments: str) -> tuple[bytes, dict[str, Any]]:
    transcript = run(result, "--prompt", prompt, "--max-tokens=10", *arguments)
    return transcript.stdout, dict(transcript.status)


@pytest.mark.parametrize("name", ["native", "cortex-a53"])
def test_the_line_carries_what_the_command_line_prints(
    start: Callable[..., tuple[Board, BuildResult]], name: str
) -> None:
    board, result = start(name)
    line = board.line
    line.connect()
    info = line.ask_json(INFO)
    assert info["model_sha256"][:16] == line.host.peer["digest"] and info["protocol"] == 1
    _, tested = line.done(line.request(SELFTEST))
    assert tested["status"] == "ok" and tested["expected_hash"] == tested["logits_hash"] == info["golden_hash"]
    line.to_device, line.from_device = BadLine(7, 0.04), BadLine(8, 0.04)
    for prompt in PROMPTS:
        text, expected = answer_of(result, prompt)
        tokens, status = line.generate(prompt.encode(), max_tokens=10)
        assert {**status, "trace": None} == {**expected, "trace": None}
        assert b"".join(piece for _, _, piece in tokens) + b"\n" == text
    line.to_device = line.from_device = bytes
    assert line.ask(SHUTDOWN)[0] == OK
    assert board.end().status["prompts"] == 1 + len(PROMPTS)
    assert line.host.violations == []


def test_records_come_as_frames_while_a_session_asks_for_them(start: Callable[..., tuple[Board, BuildResult]]) -> None:
    board, result = start("native")
    line = board.line
    line.connect()
    assert line.ask_json(INFO)["trace"] == 7
    line.generate(b"a", max_tokens=3)
    assert line.host.traces == []
    assert line.ask(TRACE, b"\x07") == (OK, b"")
    _, status = line.generate(b"a", max_tokens=3)
    assert status["ids"] == answer_of(result, "a")[1]["ids"][:3]
    line.until(lambda: sum(kind == 2 for kind in kinds(line.host.traces)) >= 1 + 2, "TOKEN records")
    found = kinds(line.host.traces)
    assert found[0] == 1 and {1, 2, 3, 4, 5} == set(found)
    assert [struct.unpack("<H", body[1:3])[0] for body in line.host.traces] == list(range(len(line.host.traces)))
    assert line.ask(TRACE, b"\0") == (OK, b"")
    while line.host.messages or line.host.traces:
        line.host.traces.clear()
        line.step()
    line.generate(b"a", max_tokens=3)
    assert line.host.traces == []


def kinds(frames: list[bytes]) -> list[int]:
    """Kinds of the records in TRACE frames."""
    return [body[at] for body in frames for at in range(8, len(body), 16)]


def test_a_mask_of_the_command_line_shows_records_to_a_person(start: Callable[..., tuple[Board, BuildResult]]) -> None:
    board, _ = start("native", "--trace-events", "routing", "--max-tokens", "2")
    line = board.line
    line.expect_text(b"> ")
    os.write(board.master, b"a\r")
    said = line.expect_text(b"\r\n-- length, 2 tokens, ").decode()
    lines = said.split("\r\n")
    kinds_shown = [line.split("]")[0] + "]" for line in lines if line.startswith("[")]
    assert kinds_shown == ["[INFO]", *["[ROUTING]", "[ROUTING]", "[TOKEN]"] * 2]
    assert not any("[ROUTING]" in line[1:] for line in lines)


def test_a_build_without_debug_refuses_to_trace(start: Callable[..., tuple[Board, BuildResult]]) -> None:
    board, _ = start("cortex-a53")
    board.line.connect()
    answered, text = board.line.ask(TRACE, b"\x01")
    assert (answered, text[:1]) == (ERROR, b"\x06")
    assert board.line.ask(TRACE, b"\0") == (OK, b"")


def test_a_host_that_reconnects_in_the_middle_gets_a_right_answer(
    start: Callable[..., tuple[Board, BuildResult]],
) -> None:
    board, result = start("cortex-a53")
    line = board.line
    line.connect()
    line.request(GENERATE, generate_fields(PROMPTS[0].encode()))
    line.until(lambda: line.host.messages, "first token")
    line.host.messages.clear()
    boot = line.host.peer["boot"]
    assert line.connect()["boot"] == boot
    _, status = line.generate(PROMPTS[1].encode(), max_tokens=10)
    assert status["logits_hash"] == answer_of(result, PROMPTS[1])[1]["logits_hash"]
