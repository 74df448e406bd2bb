"""Runs compiler processes, a few at a time; the first failure ends all of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from colibri_build.compile.failure import failure
from colibri_build.errors import CompileError
from colibri_build.target.toolchain import environment

DEADLINE_S = 900.0  # of one process: a C library built for the first time on a slow machine, with a margin


@dataclass(frozen=True)
class Step:
    """One process. `what` names it for people, `makes` is the file it writes."""

    what: str
    command: tuple[str, ...]
    makes: str


class Processes:
    """Compiler processes in one folder and one clean environment."""

    def __init__(self, folder: Path, install: str) -> None:
        self._folder = folder
        self._install = install  # the command that installs the toolchain
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run_all(
        self, steps: Iterable[Step], jobs: int, on_start: Callable[[Step], None], on_end: Callable[[Step], None]
    ) -> None:
        """Run `steps` in any order, `jobs` at a time. Raises CompileError of the first that fails."""
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            futures = [pool.submit(self._run, step, on_start, on_end) for step in steps]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    def stop(self) -> None:
        """End every process that is running, and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _run(self, step: Step, on_start: Callable[[Step], None], on_end: Callable[[Step], None]) -> None:
        on_start(step)
        process = self._start(step.command)
        if process is None:
            return
        try:
            output, _ = process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise CompileError(f"{step.what}: not finished after {DEADLINE_S:.0f} s", hint="build again") from None
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode != 0:
            raise failure(step.what, step.command, process.returncode, output)
        on_end(step)

    def _start(self, command: Sequence[str]) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._stopped:
                return None
            try:
                process = subprocess.Popen(
                    list(command),
                    cwd=self._folder,
                    env=environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    start_new_session=True,  # a process group of its own: the driver's children end with it
                )
            except OSError as error:
                raise CompileError(f"cannot start {command[0]}: {error.strerror}", hint=self._install) from error
            self._running.add(process)
            return process
