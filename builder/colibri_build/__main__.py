"""Entry points. They end cleanly on Ctrl-C and signals while the rest, which takes a second to import, is loading."""

from __future__ import annotations

import signal
import sys
from types import FrameType

CTRL_C = 130


def main() -> None:
    """Entry point of `colibri-build`."""
    _start("main")


def quantize_main() -> None:
    """Entry point of `colibri-quantize`."""
    _start("quantize_main")


def monitor_main() -> None:
    """Entry point of `colibri-monitor`."""
    _start("monitor_main")


def _start(name: str) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _end)
    try:
        from colibri_build import cli

        getattr(cli, name)()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(CTRL_C)


def _end(number: int, _frame: FrameType | None) -> None:
    """Unwind as Ctrl-C does, so that compilers and emulators end and nothing half-written stays."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
