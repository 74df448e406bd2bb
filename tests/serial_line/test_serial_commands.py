"""`run` and `verify` with --port, as a user types them, against boards on PTYs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from serial_line.conftest import GOLDEN, Serve
from support.command_line import Run, error_line
from support.device_model import DeviceModel
from support.fake_board import noise
from support.fake_firmware import fake_answer

MARK = "COLIBRI_STATUS "


def spawn(*arguments: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "colibri_build", *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **{**pipes, **options})  # type: ignore[call-overload, no-any-return]


def test_verify_compares_board_reference_and_qemu(run: Run, serve: Serve, built: Path) -> None:
    code, out, err = run("verify", built, "--port", serve().port)
    assert code == 0, err
    assert out.count("Verify on") == 2
    assert "qemu-aarch64" in out
    assert out.count(GOLDEN[0].logits_hash) == 4


def test_verify_over_a_bad_line_is_as_good(run: Run, serve: Serve, built: Path) -> None:
    board = serve(to_host=noise(1, 0.002), to_board=noise(2, 0.002))
    code, out, err = run("verify", built, "--no-qemu", "--port", board.port, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True), err


def test_verify_shows_each_difference_on_a_line(run: Run, serve: Serve, built: Path) -> None:
    code, out, err = run("verify", built, "--port", serve(DeviceModel(wrong_token=3)).port)
    assert code == 1
    lines = [" ".join(line.split()) for line in out[out.index("prompt 1:") :].splitlines()]
    assert lines == [
        "prompt 1: 'abc'",
        f"token 3 reference {GOLDEN[0].ids[3]} QEMU {GOLDEN[0].ids[3]} board 99",
        "prompt 2: 'golden'",
        f"token 3 reference {GOLDEN[1].ids[3]} QEMU {GOLDEN[1].ids[3]} board 99",
    ]
    assert error_line(err).startswith("error: the board's answers are not the reference's")


def test_verify_as_json(run: Run, serve: Serve, built: Path) -> None:
    code, out, _ = run("verify", built, "--no-qemu", "--json", "--port", serve(DeviceModel(wrong_token=0)).port)
    record = json.loads(out)
    assert code == 1
    assert (record["ok"], record["qemu"], record["board"]["ok"]) == (False, None, False)
    assert len(record["differences"]) == 4


def test_equal_ids_from_other_logits_are_a_difference(run: Run, serve: Serve, built: Path) -> None:
    class Drift(DeviceModel):
        def _status(self, *arguments: object, **more: object) -> dict[str, object]:
            return super()._status(*arguments, **more)  # type: ignore[arg-type]

        def _finish(self, job: object) -> None:
            job.done["logits_hash"] = "0" * 16  # type: ignore[attr-defined]
            super()._finish(job)  # type: ignore[arg-type]

    code, out, _ = run("verify", built, "--no-qemu", "--port", serve(Drift()).port)
    assert code == 1
    assert "logits hash  reference 651697bc86f85785  board 0000000000000000" in out


def test_run_streams_to_standard_output(serve: Serve, built: Path) -> None:
    board = serve(DeviceModel(token_s=0.03))
    with spawn("run", built, "--port", board.port, "--prompt", "abc") as process:
        assert process.stdout and process.stderr
        first = os.read(process.stdout.fileno(), 100)
        assert b"d" in first
        assert b"z" not in first, "the answer came at once and not as it was computed"
        out, err = process.communicate(timeout=10)
    assert (first.decode() + out, process.returncode) == ("defghijklmnopqrstuvwxyz\n", 0)
    status = json.loads(err.splitlines()[-1].removeprefix(MARK))
    assert status["logits_hash"] == fake_answer(b"abc").logits_hash


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--prompt", "abc", "--max-tokens", "3"], "def\n"),
        (["--prompt=abc", "--max-tokens=3", "--ids"], "100,101,102\n"),
        (["--tokens", "97,98", "--max-tokens", "2"], "cd\n"),
    ],
)
def test_run_takes_the_firmwares_own_options(
    run: Run, serve: Serve, built: Path, words: list[str], wanted: str
) -> None:
    code, out, err = run("run", built, "--port", serve().port, "--", *words)
    assert (code, out) == (0, wanted), err


def test_run_selftest_and_info(run: Run, serve: Serve, built: Path) -> None:
    port = serve().port
    assert '"status":"ok"' in run("run", built, "--port", port, "--", "--selftest")[2]
    assert json.loads(run("run", built, "--port", port, "--", "--info")[1])["model"] == "fake"


def test_the_exit_code_is_the_firmwares(run: Run, serve: Serve, built: Path) -> None:
    code, _, err = run("run", built, "--port", serve().port, "--prompt", "")
    assert code == 3
    assert err.splitlines()[0] == "colibri_inference: empty prompt"


@pytest.mark.parametrize(
    "words",
    [
        ["--threads", "2"],
        ["--stdin"],
        ["--max-tokens", "0"],
        [],
        ["--info", "--selftest"],
        ["--tokens", "a"],
        ["--tokens", "-1"],
    ],
)
def test_options_that_mean_nothing_to_a_board_are_refused(run: Run, built: Path, words: list[str]) -> None:
    code, _, err = run("run", built, "--port", "/dev/ttyNONE9", "--", *words)
    assert code == 2, "the port was opened first"
    assert "; try: " in error_line(err)


@pytest.mark.parametrize("mode", [["--tokens", "97,98"], ["--selftest"], ["--info"]])
def test_raw_without_a_text_is_refused_as_by_the_firmware(run: Run, built: Path, mode: list[str]) -> None:
    code, _, err = run("run", built, "--port", "/dev/ttyNONE9", "--", *mode, "--raw")
    assert code == 2, "the port was opened first"
    assert error_line(err) == f"error: --raw does not go with {mode[0]}; try: leave --raw out"


def test_ctrl_c_cancels_on_the_board_and_exits_with_130(serve: Serve, built: Path) -> None:
    board = serve(DeviceModel(token_s=0.05))
    with spawn("run", built, "--port", board.port, "--prompt", "abc") as process:
        assert process.stdout
        assert process.stdout.read(2) == "de"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "\ninterrupted\n")
    deadline = time.monotonic() + 2
    while board.backend.is_busy and time.monotonic() < deadline:  # type: ignore[attr-defined]
        time.sleep(0.01)
    assert not board.backend.is_busy, "the board still computes"  # type: ignore[attr-defined]


def test_a_deadline_is_kept(run: Run, serve: Serve, built: Path) -> None:
    board = serve(DeviceModel(token_s=0.2))
    code, _, err = run("run", built, "--timeout", "0.3", "--port", board.port, "--prompt", "abc")
    assert code == 124
    assert "no end of GENERATE within 0.3 s" in error_line(err)


def test_a_reader_that_goes_away_ends_the_run(serve: Serve, built: Path) -> None:
    board = serve(DeviceModel(token_s=0.02))
    with spawn("run", built, "--port", board.port, "--prompt", "abc") as process:
        assert process.stdout and process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
    assert process.returncode != 0


def test_the_rate_is_the_board_profiles_unless_given(run: Run, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from colibri_build.errors import RunError
    from colibri_build.run.serial_port import SerialPort

    asked: list[int] = []

    def refuse(_url: str, baud: int) -> None:
        asked.append(baud)
        raise RunError("no")

    monkeypatch.setattr(SerialPort, "open", refuse)
    run("run", built, "--port", "x", "--prompt", "a")
    run("verify", built, "--no-qemu", "--port", "x", "--baud", "921600")
    assert asked == [115200, 921600]
