"""The host program and real firmware on a paced line: x86-64 natively, Cortex-A53 under QEMU."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from colibri_build.run.client import Client, RequestRefusedError, TraceMask
from colibri_build.run.link import Link
from colibri_build.run.runner import runner_for
from colibri_build.run.serial_port import SerialPort
from colibri_build.target.board import load_board
from colibri_build.trace.read import read_traces
from support.builds import PROMPTS, build_tiny, quick_board
from support.command_line import Run, error_line
from support.fake_board import FakeBoard, Faults, FirmwareProcess, cr_to_newline, newline_to_crlf, noise
from support.fake_firmware import fake_answer, text_of

Boards = Callable[..., FakeBoard]


@pytest.fixture(scope="session")
def commands(fake_native: Path, fake_a53: Path) -> dict[str, tuple[str, ...]]:
    """How each board starts the firmware around the fake model."""
    emulator = runner_for(load_board("cortex-a53"), "qemu-user")
    return {"native": (str(fake_native), "--serve"), "a53": emulator.command(str(fake_a53), "--serve")}


@pytest.fixture
def boards(commands: dict[str, tuple[str, ...]]) -> Iterator[Boards]:
    """Start a board: boards(kind, baud=, **faults)."""
    with ExitStack() as stack:

        def start(kind: str, baud: int = 115200, **faults: object) -> FakeBoard:
            process = FirmwareProcess(commands[kind])
            return stack.enter_context(FakeBoard(process, Faults(**faults), baud))  # type: ignore[arg-type]

        yield start


def session(stack: ExitStack, board: FakeBoard) -> Client:
    line = stack.enter_context(SerialPort.open(board.port))
    return stack.enter_context(Client(Link(line)))


@pytest.mark.parametrize("kind", ["native", "a53"])
def test_every_request_at_115200_baud(boards: Boards, kind: str) -> None:
    board = boards(kind)
    with ExitStack() as stack:
        client = session(stack, board)
        text: list[bytes] = []
        status = client.generate("abc", on_token=lambda _i, _t, part: text.append(part))
        answer = fake_answer(b"abc")
        assert (status["ids"], status["logits_hash"]) == (list(answer.ids), answer.logits_hash)
        assert b"".join(text) == text_of(answer.ids)
        assert client.selftest()["status"] == "ok"
        assert client.info()["protocol"] == 1
        client.ping(bytes(range(200)))
        assert client.generate("")["status"] == "empty_prompt"
        with pytest.raises(RequestRefusedError, match="not compiled in"):
            client.trace(TraceMask.ROUTING)
        stats = client.stats()
        assert (stats["repeated_frames"], stats["prompts"]) == (0, 3)
        assert stats["sessions"] == 1
    assert board.backend.overruns == 0


@pytest.mark.parametrize(
    "faults",
    [
        {"to_host": noise(1, 0.001), "to_board": noise(2, 0.001)},
        {"to_host": newline_to_crlf, "to_board": cr_to_newline},
    ],
    ids=["noise", "line ends"],
)
def test_a_bad_line_changes_no_answer(boards: Boards, faults: dict[str, object]) -> None:
    with ExitStack() as stack:
        client = session(stack, boards("native", baud=1_000_000, **faults))
        for prompt in ("abc", "golden", "xyz"):
            assert (
                client.generate(prompt, on_token=lambda *_: None)["logits_hash"]
                == fake_answer(prompt.encode()).logits_hash
            )


def test_a_reset_in_the_middle_is_told_by_the_boot_number(boards: Boards) -> None:
    board = boards("native", reset_at=400)
    with ExitStack() as stack:
        client = session(stack, board)
        with pytest.raises(Exception, match="the board was reset in the middle of the answer"):
            for _ in range(20):
                client.generate("abc", on_token=lambda *_: None)


def test_a_firmware_that_is_shut_down_has_ended(boards: Boards) -> None:
    board = boards("native")
    with ExitStack() as stack:
        session(stack, board).shutdown()
        assert board.backend.process.wait(5) == 0


def test_a_line_without_flow_control_is_not_overrun(boards: Boards) -> None:
    """A long prompt to a board that reads slowly: the credits keep it below what its terminal holds."""
    board = boards("native", baud=10_000_000)
    with ExitStack() as stack:
        client = session(stack, board)
        status = client.generate("a" * 5000)
    assert status["status"] == "prompt_too_long"
    assert board.backend.overruns == 0


def test_another_model_is_refused_by_its_digest(boards: Boards, run: Run, built: Path) -> None:
    code, _, err = run("verify", built, "--no-qemu", "--port", boards("native").port)
    assert code == 1
    assert error_line(err).startswith("error: the board holds model 0000000000000000, the build is 2f6c0a5de1b94c77")


def test_the_human_mode_answers_in_a_plain_terminal(boards: Boards) -> None:
    board = boards("a53")
    said, deadline = b"", time.monotonic() + 20
    with SerialPort.open(board.port) as line:
        while b"> " not in said and time.monotonic() < deadline:
            said += line.read(0.1)
        line.write(b"abc\r")
        while b"-- eos, 24 tokens" not in said and time.monotonic() < deadline:
            said += line.read(0.1)
    assert b"\r\ndefghijklmnopqrstuvwxyz\r\n-- eos, 24 tokens, " in said


def test_a_debug_build_is_verified_watched_and_reported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole bench: a real model, built with traces, on a line of 115200 baud."""
    built = build_tiny(tmp_path, quick_board(tmp_path), debug=("memory", "routing", "timing"))
    raw = tmp_path / "trace.bin"
    with FakeBoard(FirmwareProcess([str(built.firmware.elf), "--serve"])) as board:
        code, out, err = run("verify", built.out, "--port", board.port)
        assert code == 0, err
        assert out.count(built.golden[0].logits_hash) == 4
        reader, writer = os.pipe()
        os.write(writer, f"{PROMPTS[0]}\n".encode())
        os.close(writer)
        with os.fdopen(reader) as stdin, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", stdin)
            code, _, err = run(
                "monitor", "--port", board.port, "--build", built.out, "--trace", "routing,timing", "--log-raw", raw
            )
        assert code == 0, err
        said = re.search(r"(\d+) tokens traced, (\d+) records dropped, 0 trace frames lost, 0 bad frames", err)
        assert said, err
        assert board.backend.overruns == 0  # type: ignore[attr-defined]
    trace = read_traces([raw])
    assert trace.info.digest == built.folder.digest[:16]
    # The model is quicker than the line, so the ring may drop; then the board says so, and the tokens that lack nothing do.
    assert int(said[1]) == sum(1 for _ in trace.tokens)
    assert int(said[2]) == trace.losses.dropped_records
    whole = [token for token in trace.tokens if token.token.lost == 0]
    assert whole
    assert all(len(token.routing) == built.folder.config.n_layers for token in whole)
