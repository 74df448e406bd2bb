"""One run of a firmware as a process: command, input, deadline, output, status."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from colibri_build.artifacts import Transcript
from colibri_build.errors import DeadlineError, RunError
from colibri_build.run.runner import Runner, RunnerKind, runner_for
from colibri_build.run.status_line import check_end

__all__ = ["Runner", "RunnerKind", "firmware_environment", "require_elf", "run_firmware", "runner_for"]

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
_GRACE_S = 2.0  # between asking a firmware to end and killing it
_CHUNK_BYTES = 65536

OnChunk = Callable[[bytes], None]


def run_firmware(
    runner: Runner,
    elf: Path,
    args: Sequence[str] = (),
    stdin: bytes | IO[bytes] | None = None,
    timeout_s: float = 120.0,
    on_stdout: OnChunk | None = None,
    on_stderr: OnChunk | None = None,
) -> Transcript:
    """Run a firmware to its end and return what it said. A status other than "ok" is no error here.

    `stdin` is its input, or a file that it reads itself (None: none); `on_stdout` and `on_stderr` get each piece of
    output as it comes. Raises DeadlineError after `timeout_s`, RunError if the firmware cannot be started, crashes, or
    does not end with one status line.
    """
    command = runner.command(str(require_elf(elf)), *args)
    started = time.monotonic()
    fed = stdin if isinstance(stdin, bytes) else b""
    process = _start(command, None if stdin is None or isinstance(stdin, bytes) else stdin)
    try:
        stdout, stderr_bytes = _talk(process, fed, started + timeout_s, on_stdout, on_stderr)
        exit_code = process.wait(max(0.0, started + timeout_s - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        _kill(process)
        raise DeadlineError(
            f"{elf.name} did not end within {timeout_s:g} s on {runner}", hint="a longer timeout, or fewer --max-tokens"
        ) from None
    except BaseException:
        _end_politely(process)
        raise
    seconds = time.monotonic() - started
    stderr = stderr_bytes.decode("utf-8", errors="replace")
    return Transcript(command, exit_code, stdout, stderr, check_end(exit_code, stderr, runner.board), seconds)


def require_elf(elf: Path) -> Path:
    """Return the absolute path of a firmware. Raises RunError if it is not there."""
    if not elf.is_file():
        raise RunError(f"no firmware at {elf}", hint="colibri-build -b BOARD -o DIR MODEL")
    return elf.resolve()


def firmware_environment() -> dict[str, str]:
    """Return our environment without the variables that change what QEMU emulates."""
    return {name: value for name, value in os.environ.items() if not name.startswith("QEMU_")}


def _start(command: Sequence[str], stdin: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, so that all of it can be ended."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=firmware_environment(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RunError(
            f"cannot start {command[0]}: {reason}", hint="check that it is executable and made for this machine"
        ) from error


def _talk(
    process: subprocess.Popen[bytes],
    stdin: bytes,
    deadline: float,
    on_stdout: OnChunk | None,
    on_stderr: OnChunk | None,
) -> tuple[bytes, bytes]:
    """Feed the input and collect both outputs until they end. Raises TimeoutError at the deadline."""
    assert process.stdout
    assert process.stderr
    stdout, stderr = bytearray(), bytearray()
    steps = [
        (process.stdout, _reader(process.stdout, stdout, on_stdout)),
        (process.stderr, _reader(process.stderr, stderr, on_stderr)),
    ]
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for stream, step in steps:
            selector.register(stack.enter_context(stream), selectors.EVENT_READ, step)
        if process.stdin:
            feed = _feeder(stack.enter_context(process.stdin), stdin)
            selector.register(process.stdin, selectors.EVENT_WRITE, feed)
        while selector.get_map():
            for key, _ in _ready(selector, deadline):
                if not key.data():
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
    return bytes(stdout), bytes(stderr)


def _reader(stream: IO[bytes], output: bytearray, on_chunk: OnChunk | None) -> Callable[[], bool]:
    """Return a function that reads what is there into `output`; it returns False at the stream's end."""

    def read() -> bool:
        chunk = os.read(stream.fileno(), _CHUNK_BYTES)
        output.extend(chunk)
        if len(output) > MAX_OUTPUT_BYTES:
            raise RunError(f"the firmware wrote more than {MAX_OUTPUT_BYTES >> 20} MiB", hint="fewer --max-tokens")
        if chunk and on_chunk is not None:
            on_chunk(chunk)
        return bool(chunk)

    return read


def _feeder(stream: IO[bytes], data: bytes) -> Callable[[], bool]:
    """Return a function that writes what the pipe takes; it returns False once all is written, or nobody reads."""
    os.set_blocking(stream.fileno(), False)
    left = memoryview(data)

    def write() -> bool:
        nonlocal left
        try:
            left = left[os.write(stream.fileno(), left[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(left)

    return write


def _ready(selector: selectors.BaseSelector, deadline: float) -> list[tuple[selectors.SelectorKey, int]]:
    left_s = deadline - time.monotonic()
    ready = selector.select(left_s) if left_s > 0 else []
    if not ready and time.monotonic() >= deadline:
        raise TimeoutError
    return ready


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _kill(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _end_politely(process: subprocess.Popen[bytes]) -> None:
    """Let the firmware end by itself (Ctrl-C reached only us), kill what is left."""
    _signal_group(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    _kill(process)
