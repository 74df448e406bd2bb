"""The command that boots a disk image under QEMU: a board on the desk for those who have none."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import rich_click as click

from colibri_build import pipeline
from colibri_build.cli_keys import Keys
from colibri_build.cli_options import PATH
from colibri_build.errors import ColibriError, RunError
from colibri_build.run.console import BAD_PATTERNS
from colibri_build.run.emulated_line import Outlet, PtyOutlet, UnixOutlet, pump
from colibri_build.run.qemu_system import POWERED_OFF, QemuSystem


class Terminal:
    """This terminal as the machine's. What is typed before the firmware is ready waits for it."""

    def __init__(self, keys: Keys) -> None:
        self.is_ready = False
        self._keys = keys

    def watch(self) -> list[int]:
        """See Outlet. Keys are looked at in each step."""
        return []

    def read(self) -> bytes:
        """See Outlet."""
        return self._keys.read().replace(b"\n", b"\r") if self.is_ready else b""

    def write(self, data: bytes) -> None:
        """See Outlet."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@click.command()
@click.argument("disk", type=PATH)
@click.option(
    "--port",
    metavar="unix:PATH|pty",
    help="Offer the console as a unix socket, or a pseudo terminal whose name is printed. Default: this terminal.",
)
@click.option(
    "-b", "--board", metavar="BOARD", help="Emulate this board. Default: the one that the disk's firmware is for."
)
@click.option(
    "--memory", type=click.IntRange(min=32), metavar="MIB", help="RAM of the machine. Default: the board profile's."
)
def emulate(disk: Path, port: str | None, board: str | None, memory: int | None) -> None:
    """Boot DISK, an image folder or a flashed file, on an emulated board: a real kernel under QEMU.

    The image has to carry a kernel (image --kernel). The disk is not changed. Ctrl-] here, or Ctrl-C, switches the board
    off; with --port other commands speak with it meanwhile, one at a time.

    \b
    Examples:
      colibri-build emulate build/cortex-a53/model/image
      colibri-build emulate disk.img --port unix:board.sock
    """
    with ExitStack() as stack:
        outlet, name = _outlet(stack, port)
        machine = stack.enter_context(pipeline.emulated(disk, board, memory))
        click.echo(f"{machine.board.name} boots from {disk}, its console is {name}", err=True)

        def ready(line: str) -> None:
            if isinstance(outlet, Terminal):
                outlet.is_ready = True
                return
            click.echo(f"{line}\nthe board is ready; in another terminal: colibri-monitor --port {name}", err=True)

        _pump(machine, outlet, ready)


def _outlet(stack: ExitStack, port: str | None) -> tuple[Outlet, str]:
    """What --port says, and its name for other commands."""
    if port is None:
        keys = Keys()
        stack.enter_context(keys.singly())
        return Terminal(keys), "this terminal (Ctrl-] switches it off)"
    if port == "pty":
        pty = stack.enter_context(PtyOutlet())
        return pty, pty.path
    path = port.removeprefix("unix:")
    if path == port or not path or "," in path:
        raise ColibriError(f"--port {port}: neither unix:PATH nor pty", hint="--port unix:board.sock")
    return stack.enter_context(UnixOutlet(Path(path))), port


def _pump(machine: QemuSystem, outlet: Outlet, ready: Callable[[str], None]) -> None:
    """Run until the machine is off, by itself or by the user."""
    try:
        pump(machine.console, outlet, ready)
    except KeyboardInterrupt:
        click.echo("\nswitched off", err=True)
    except RunError:
        said = machine.console.text
        if POWERED_OFF not in said:
            raise
        if bad := re.search("|".join(BAD_PATTERNS), said):
            line = said[bad.start() :].partition("\n")[0]
            raise RunError(
                f"the board says '{line}' and has switched itself off",
                hint="docs/troubleshooting.md, READY never comes",
            ) from None
        click.echo("the board has switched itself off", err=True)
