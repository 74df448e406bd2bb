"""Firmwares in --serve on a PTY, as on a serial line."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import tty
from collections.abc import Callable, Sequence
from typing import Any

from support.fake_firmware import Run
from support.serial_host import HostOnLine


class Board:
    """A process whose console is a PTY. `line` is a host at the other end; `noise` is on the line before the start."""

    def __init__(
        self, command: Sequence[str], fake: str = "", noise: bytes = b"", raw: bool = True, **popen: Any
    ) -> None:
        self.master, slave = pty.openpty()
        if raw:
            tty.setraw(slave)
        self.slave_name = os.ttyname(slave)
        os.write(slave, noise)
        environment = {**os.environ, "FAKE": fake, "ASAN_OPTIONS": "detect_leaks=0"}
        streams: dict[str, Any] = {"stdin": slave, "stdout": slave, "stderr": slave, **popen}
        self.process = subprocess.Popen(command, env=environment, start_new_session=True, **streams)
        os.close(slave)
        self.line = HostOnLine(self.master)

    def end(self, seconds: float = 10.0) -> Run:
        """Wait for the end of the run; what it said on the console is its standard error."""
        self.line.until(lambda: self.line.has_ended, "end of the run")
        return Run(self.process.wait(seconds), b"", self.line.host.text.decode().replace("\r\n", "\n"))

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self.master)


Start = Callable[..., Board]
