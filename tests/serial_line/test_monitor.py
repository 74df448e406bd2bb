"""colibri-monitor: in a pipe, in a file, and on a real terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pytest
from rich.console import Console

from colibri_build import cli, cli_monitor
from colibri_build.cli_keys import Keys, LineEditor
from colibri_build.cli_live import LiveFigures, LiveState, heat_grid, live_page, sparkline
from colibri_build.trace.read import read_traces
from colibri_build.trace_events import Dropped, Info, Losses, Phase, Routing, Stage, Time, Token
from serial_line.conftest import Serve
from support.device_model import DIGEST, N_EXPERTS, N_LAYERS, DeviceModel
from support.fake_board import noise, wrong_baud

ENTRY = [sys.executable, "-c", "from colibri_build.__main__ import monitor_main as m; m()"]
Watch = Callable[..., "Done"]
Type = Callable[..., pexpect.spawn]


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Run colibri-monitor in this process, with `keys` on a pipe."""

    def run(*arguments: object, keys: str = "") -> Done:
        reader, writer = os.pipe()
        os.write(writer, keys.encode())
        os.close(writer)
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patch, os.fdopen(reader) as stdin, pytest.raises(SystemExit) as stopped:
            for name, value in (("stdin", stdin), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, value)
            patch.setattr(sys, "argv", ["colibri-monitor", *map(str, arguments)])
            cli.monitor_main()
        said = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]  # type: ignore[attr-defined]
        return Done(int(stopped.value.code or 0), *said)

    return run


@pytest.fixture
def on_terminal() -> Iterator[Type]:
    """Run colibri-monitor on a terminal of 100 columns."""
    started: list[pexpect.spawn] = []

    def run(*arguments: object) -> pexpect.spawn:
        child = pexpect.spawn(
            ENTRY[0], [*ENTRY[1:], *map(str, arguments)], dimensions=(40, 100), encoding="utf-8", timeout=10
        )
        started.append(child)
        return child

    yield run
    for child in started:
        child.close(force=True)


def test_a_pipe_talks_to_the_human_mode(serve: Serve, watch: Watch) -> None:
    done = watch("--port", serve().port, "--for", "0.7", keys="abc\n")
    assert done.returncode == 0, done.stderr
    assert "abc\ndefghijklmnopqrstuvwxyz\n-- eos, 24 tokens, 1 ms\n> " in done.stdout.replace("\r", "")


def test_prompts_in_a_session_are_traced(serve: Serve, watch: Watch, tmp_path: Path) -> None:
    log, raw = tmp_path / "log.txt", tmp_path / "raw.bin"
    done = watch("--port", serve().port, "--trace", "routing,timing", "--log", log, "--log-raw", raw, keys="xy\nw\n")
    assert done.returncode == 0, done.stderr
    assert "> xy\n" in done.stdout
    assert "[ROUTING] layer=0, top_k=[2,5], scores=[0.750,0.250]\n" in done.stdout
    assert "[TIME] layer_2 experts: 2450 ticks (39.2us @ 62.5MHz)\n" in done.stdout
    assert "[TOKEN] decode position=0 id=122: 20000 ticks (320.0us @ 62.5MHz)\n" in done.stdout
    assert done.stdout.count("-- eos, ") == 2
    assert "6 tokens traced, 0 records dropped, 0 trace frames lost, 0 bad frames" in done.stderr
    assert log.read_bytes() == done.stdout.encode()
    trace = read_traces([raw])
    assert sum(1 for _ in trace.tokens) == 6
    assert trace.info.digest == DIGEST.hex()


def test_json_is_one_object_a_line(serve: Serve, watch: Watch) -> None:
    done = watch("--port", serve().port, "--trace", "routing", "--json", keys="y\n")
    events = [event for line in done.stdout.splitlines() if (event := json.loads(line))["event"] != "text"]
    kinds = [event["event"] for event in events]
    assert kinds.count("prompt") == kinds.count("done") == 1
    assert kinds.count("routing") == 2 * N_LAYERS
    assert kinds[-1] == "end"
    assert [event["id"] for event in events if event["event"] == "answer"] == [122, 257]
    assert next(event for event in events if event["event"] == "done")["status"]["stop"] == "eos"
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    assert done.stderr == ""


def test_what_a_bad_line_lost_is_said(serve: Serve, watch: Watch) -> None:
    done = watch("--port", serve(to_host=noise(3, 0.003)).port, "--trace", "routing", keys="abc\n")
    found = re.search(r"(\d+) trace frames lost, (\d+) bad frames", done.stderr)
    assert found, done.stderr
    assert int(found[1]) > 0
    assert int(found[2]) >= int(found[1])
    assert re.search(r"^-- \d+ trace frames lost$", done.stdout, re.MULTILINE)


def test_text_records_of_a_firmware_without_frames(serve: Serve, watch: Watch) -> None:
    class Old(DeviceModel):
        def _type(self, byte: int) -> None:
            if byte == ord("\r"):
                self._say(b"\r\n[INFO] model=2f6c0a5de1b94c77 layers=3 experts=8 clock=24000000Hz\r\nhello\r\n")
                self._say(b"[ROUTING] layer=0, top_k=[3,5], scores=[0.721,0.279]\r\n> ")

    done = watch("--port", serve(Old()).port, "--for", "0.5", "--json", keys="\n")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    at = [event["event"] for event in events].index("info")
    assert [event["event"] for event in events[at:]] == ["info", "text", "routing", "text", "end"]
    assert [event["text"] for event in events[at:] if event["event"] == "text"] == ["hello\r\n", "> "]
    assert events[at + 2]["experts"] == [3, 5]


def test_garbage_is_remarked(serve: Serve, watch: Watch) -> None:
    done = watch("--port", serve(to_host=wrong_baud()).port, "--for", "0.5", keys="abcdefghijklmnopqrstuvw\n")
    assert re.search(
        r"-- what comes looks like another baud rate than 115200 \(\d+% of \d+ bytes are no text\)", done.stderr
    )


def test_silence_is_remarked(serve: Serve, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_monitor, "_SILENT_S", 0.1)
    done = watch("--port", serve(silent_at=0).port, "--for", "0.3")
    assert done.stderr == "-- no byte for 0.1 s; check power, wiring, console= and --baud\n"


def test_the_wrong_build_is_refused(serve: Serve, watch: Watch, built: Path) -> None:
    board = serve(DeviceModel(digest=b"ANOTHER!"))
    done = watch("--port", board.port, "--build", built, "--trace", "routing", keys="a\n")
    assert done.returncode == 1
    assert f"error: the board holds model {b'ANOTHER!'.hex()}, the build is {DIGEST.hex()}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["--port", "/dev/ttyNONE9"], 4, "error: there is no port /dev/ttyNONE9; try: "),
        (["--port", "PORT", "--log", "/nowhere/log"], 2, "error: cannot write /nowhere/log: No such file or directory"),
        (["--port", "PORT", "--trace", "routing,heat"], 2, "'heat' is none of routing, memory, timing"),
        (["--port", "PORT", "--build", "/nowhere"], 2, "error: /nowhere holds no finished build"),
        ([], 2, "Missing option"),
    ],
)
def test_mistakes_are_one_line(serve: Serve, watch: Watch, arguments: list[str], code: int, what: str) -> None:
    port = serve().port
    done = watch(*(port if word == "PORT" else word for word in arguments))
    assert done.returncode == code
    assert what in done.stderr
    assert "Traceback" not in done.stderr


def test_a_build_without_debug_says_how_to_get_traces(serve: Serve, watch: Watch) -> None:
    done = watch("--port", serve(DeviceModel(trace_compiled=0)).port, "--trace", "routing", keys="a\n")
    assert done.returncode == 4
    assert "the board refuses TRACE (not compiled in)" in done.stderr
    assert "try: build with --debug routing,memory,timing" in done.stderr


def test_an_unplugged_board_ends_it(serve: Serve, watch: Watch) -> None:
    done = watch("--port", serve(unplug_at=80).port, "--for", "5", keys="abc\n" * 9)
    assert done.returncode == 4
    assert "error: device disconnected: " in done.stderr


def test_a_board_that_is_reset_in_a_session_is_traced_again(serve: Serve) -> None:
    board = serve()
    with subprocess.Popen(
        [*ENTRY, "--port", board.port, "--trace", "routing", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        infos = 0
        for line in process.stdout:
            infos += json.loads(line)["event"] == "info"
            if infos == 1 and board.backend.boot == 1000:  # type: ignore[attr-defined]
                board.reset()
            if infos == 2:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode == 0


def test_keys_go_to_the_board_one_by_one_and_ctrl_bracket_ends_it(serve: Serve, on_terminal: Type) -> None:
    child = on_terminal("--port", serve().port)
    child.send("\r")
    child.expect("> ")
    child.send("ab")
    child.expect("ab")
    child.send("c\r")
    child.expect(r"defghijklmnopqrstuvwxyz\r+\n-- eos, 24 tokens, 1 ms\r+\n")
    child.send("\x1d")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_the_live_view_draws_experts_and_latency(serve: Serve, on_terminal: Type) -> None:
    child = on_terminal("--port", serve(DeviceModel(token_s=0.02)).port, "--trace", "routing,timing", "--view", "live")
    child.expect("> ")
    child.send("abx\x7fc\r")
    child.expect(r"24 tokens \(\+0 of prompts\)  [\d.]+ tokens/s  median 0\.32 ms  p99 0\.32 ms")
    child.expect("0 records dropped by the board  0 trace frames lost  0 bad frames")
    child.expect("layer 0 .*layer 2 ")
    child.send("\x1d")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert "-- eos, 24 tokens" in child.before


def test_the_terminal_is_put_back(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    with os.fdopen(slave) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        keys = Keys()
        with pytest.raises(KeyboardInterrupt), keys.singly():
            assert not termios.tcgetattr(slave)[3] & (termios.ECHO | termios.ICANON)
            os.write(master, b"k")
            assert keys.read() == b"k"
            os.kill(os.getpid(), signal.SIGQUIT)
            time.sleep(1)
        assert termios.tcgetattr(slave) == before
        assert signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL
    os.close(master)


def drawn(figures: LiveFigures, width: int = 80) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(live_page(figures, LiveState("title", Losses(dropped_records=3), 2, "a\nb", "typed"), width))
    return console.export_text()


def figures_of(n_layers: int, n_experts: int) -> LiveFigures:
    figures = LiveFigures()
    figures.take(Info(DIGEST.hex(), n_layers, n_experts, 1_000_000))
    return figures


def test_the_figures_are_those_of_the_trace() -> None:
    figures = figures_of(2, 4)
    for ticks in range(1, 101):
        figures.take(Routing(1, 0, (2, 3), (0.75, 0.25)))
        figures.take(Time(Stage.HEAD, 0, 0, 0, 25))
        figures.take(Time(Stage.EXPERTS, 1, 0, 0, 75))
        figures.take(Token(Phase.DECODE, ticks, 7, ticks * 1000))
    figures.take(Token(Phase.PREFILL, 0, 7, 10**6))
    figures.take(Dropped(3))
    page = drawn(figures)
    assert "100 tokens (+1 of prompts)" in page
    assert "median 50.00 ms  p99 99.00 ms" in page
    assert "3 records dropped by the board  0 trace frames lost  2 bad frames" in page
    assert "head 25%  experts 75%" in page
    assert re.search(r"layer 0\s*\n", page), "a layer that nothing is known of is blank"
    assert re.search(r"layer 1 \s+████\s+2: 50%", page)
    assert page.rstrip().endswith("> typed")


def test_a_wide_model_fits_a_narrow_terminal() -> None:
    figures = figures_of(2, 256)
    figures.take(Routing(0, 0, (255,), (1.0,)))
    page = drawn(figures, width=60)
    assert max(map(len, page.splitlines())) <= 60
    assert re.search(r"█ +255: 100%", page)
    assert heat_grid(LiveFigures(), 80).row_count == 0


def test_an_expert_that_was_chosen_once_is_not_blank() -> None:
    figures = figures_of(1, N_EXPERTS)
    for _ in range(1000):
        figures.take(Routing(0, 0, (0,), (1.0,)))
    figures.take(Routing(0, 0, (5,), (1.0,)))
    assert "█" in drawn(figures)
    assert "·" in drawn(figures)


def test_sparks() -> None:
    assert sparkline([0, 1, 2, 4]) == " ▂▄█"
    assert sparkline([]) == ""
    assert sparkline([0.0]) == " "


def test_a_line_is_edited_by_characters() -> None:
    editor = LineEditor()
    assert editor.type("aé".encode() + b"\x7fb\r\n\r") == ["ab"]
    assert editor.type(b"no\x15yes\x01") == []
    assert editor.text == "yes"
    assert editor.type(b"\n") == ["yes"]


def test_a_reset_in_the_middle_of_an_answer_does_not_end_the_watch(serve: Serve, watch: Watch) -> None:
    board = serve(DeviceModel(token_s=0.01), reset_at=400)
    done = watch("--port", board.port, "--trace", "routing", keys="abc\nxy\n")
    assert done.returncode == 0
    assert "-- the board was reset in the middle of the answer" in done.stderr
    assert "-- eos, 2 tokens" in done.stdout
