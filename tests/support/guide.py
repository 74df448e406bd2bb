"""Commands of a document, run as its reader would: one shell after another, and a second terminal for a board."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(sh board|sh|expect)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """Commands and the lines that the document promises. `is_board`: they stay on, in a second terminal."""

    commands: str
    expected: tuple[str, ...]
    is_board: bool


def steps_of(text: str) -> tuple[Step, ...]:
    """Fenced `sh` and `sh board` blocks, each with the `expect` block behind it."""
    steps: list[Step] = []
    for kind, body in _FENCE.findall(text):
        if kind == "expect":
            assert steps and not steps[-1].expected, f"what is this the outcome of? {body}"
            steps[-1] = Step(steps[-1].commands, tuple(body.splitlines()), steps[-1].is_board)
        else:
            steps.append(Step(body, (), kind == "sh board"))
    return tuple(steps)


def lacking(said: str, expected: tuple[str, ...]) -> list[str]:
    return [line for line in expected if line not in said]


def shell(step: Step, folder: Path, environment: dict[str, str], timeout_s: float = 300) -> str:
    """Run a step to its end and return what it said. Fails on an exit code or a missing line."""
    done = subprocess.run(
        ["sh", "-eu", "-c", step.commands],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert (done.returncode, lacking(said, step.expected)) == (0, []), f"{step.commands}\n{said}"
    return said


@contextmanager
def second_terminal(step: Step, folder: Path, environment: dict[str, str], timeout_s: float = 180) -> Iterator[None]:
    """Start a step, wait for its lines, and end it with Ctrl-C; it has to end well."""
    path = folder / "second-terminal"
    with path.open("wb") as stream:
        board = subprocess.Popen(
            ["sh", "-eu", "-c", f"exec {step.commands.strip()}"],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + timeout_s
        while missing := lacking(path.read_text(), step.expected):
            assert board.poll() is None, path.read_text()
            assert time.monotonic() < deadline, (missing, path.read_text())
            time.sleep(0.1)
        yield
        os.kill(board.pid, signal.SIGINT)
        assert board.wait(30) == 0, path.read_text()
    finally:
        if board.poll() is None:
            board.terminate()
            board.wait(30)
