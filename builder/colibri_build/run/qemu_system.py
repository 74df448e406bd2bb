"""QEMU as a whole machine: a real kernel, the flashed image as its disk, the console on a socket."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run.console import BAD_PATTERNS, Console
from colibri_build.target.board import Board
from colibri_build.target.board import QemuSystem as Machine

UBOOT = Path("/usr/lib/u-boot/qemu_arm64/u-boot.bin")
POWERED_OFF = "reboot: Power down"  # the kernel's last words
# `panic=-1` resets at once, which -no-reboot turns into QEMU's end: a panic is never waited for.
_KERNEL_WORDS = ("quiet", "loglevel=3", "panic=-1")
_GRACE_S = 2.0  # between asking QEMU to end and killing it
_DISKS = {
    "sdhci": ("-device", "sdhci-pci", "-device", "sd-card,drive=disk"),  # /dev/mmcblk0
    "nvme": ("-device", "nvme,drive=disk,serial=colibri"),  # /dev/nvme0n1; U-Boot has no driver for the other
}


@dataclass(frozen=True)
class DirectBoot:
    """QEMU puts the kernel into memory itself. `slot` and `arguments` (of the firmware) go on its command line."""

    kernel: Path
    initrd: Path
    slot: str = "a"
    arguments: tuple[str, ...] = ("--serve",)
    words: tuple[str, ...] = ()  # more for the kernel


@dataclass(frozen=True)
class BootLoader:
    """The machine starts a boot loader, which finds everything on the disk, as on the board."""

    path: Path = UBOOT


@dataclass(frozen=True)
class Hardware:
    """What differs from the board's [qemu_system]. None: as there.

    `counts_time`: time is counted in instructions of the one CPU that the machine then has, and nothing in it is random:
    two boots see the same ticks, however busy the host is.
    """

    disk: Literal["sdhci", "nvme"] = "sdhci"
    ram_mib: int | None = None
    cpus: int | None = None
    counts_time: bool = False


class QemuSystem:
    """One emulated machine; a context manager that always ends it.

    `console` is the byte stream of its serial line: a channel for SerialPort, with waits of its own. The image is not
    changed: what the machine writes is forgotten. Timeouts are in seconds; `multiplier` scales them.
    """

    def __init__(
        self,
        board: Board,
        image: Path,
        boot: DirectBoot | BootLoader,
        hardware: Hardware | None = None,
        multiplier: float = 1.0,
        bad_patterns: Sequence[str] = BAD_PATTERNS,
    ) -> None:
        """Start the machine. Raises RunError, naming the package or file that is missing."""
        self.board = board
        self._multiplier = multiplier
        with contextlib.ExitStack() as resources:
            folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="colibri-qemu-")))
            ours, theirs = socket.socketpair()
            resources.callback(ours.close)
            with theirs:
                disk = _power_of_two(_required(image, "image"), folder)
                self.command = qemu_command(board, disk, boot, hardware or Hardware(), theirs.fileno())
                self._errors = folder / "errors"
                self._process = _start(self.command, theirs.fileno(), self._errors)
            resources.callback(self._end)
            self.console = Console(ours, self._why_gone, bad_patterns)
            self._resources = resources.pop_all()

    def expect(self, pattern: str, timeout_s: float = 60.0) -> str:
        """Wait for a regular expression on the console and return what matched. Errors as of Console.expect."""
        return self.console.expect(pattern, timeout_s * self._multiplier).group()

    def wait_ready(self, timeout_s: float = 60.0) -> str:
        """Wait for the firmware's READY line and return it."""
        return self.expect(r"READY colibri .*\n", timeout_s).rstrip()

    def write(self, text: str) -> None:
        """Type text on the console."""
        self.console.write(text.encode())

    def wait_power_off(self, timeout_s: float = 30.0) -> None:
        """Wait until the machine has switched itself off.

        Raises DeadlineError if it goes on, RunError if it ended otherwise.
        """
        deadline = time.monotonic() + timeout_s * self._multiplier
        try:
            if not self.console.drain(deadline - time.monotonic()):
                raise subprocess.TimeoutExpired(self.command, timeout_s)
            exit_code = self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise DeadlineError(
                f"{self.board.name} is still on after {timeout_s:g} s{self.console.tail()}", hint="a longer timeout"
            ) from None
        if exit_code != 0 or POWERED_OFF not in self.console.text:
            raise RunError(
                f"{self._why_gone()} without a power off{self.console.tail()}", hint="its last words say why"
            )

    def close(self) -> None:
        """End QEMU, whatever it does; a second call does nothing."""
        self._resources.close()

    def __enter__(self) -> QemuSystem:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _why_gone(self) -> str:
        """Say how QEMU ended, with its last complaint."""
        try:
            exit_code = self._process.wait(_GRACE_S)  # its console closes a moment before it ends
        except subprocess.TimeoutExpired:
            return "QEMU closed the console"
        complaints = self._errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = f": {complaints[-1]}" if complaints else ""
        how = f"was ended by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"ended with {exit_code}"
        return f"QEMU {how}{said}"


def qemu_command(
    board: Board, disk: Path, boot: DirectBoot | BootLoader, hardware: Hardware, console_fd: int
) -> tuple[str, ...]:
    """Return QEMU's command line; `console_fd` is its end of the console's socket.

    Raises RunError if the board has no emulated machine, or QEMU or a file is missing.
    """
    machine = board.qemu_system
    if machine is None:
        raise RunError(f"{board.name} has no emulated machine", hint="a table [qemu_system] in its profile")
    return (
        _emulator(board.arch),
        *_machine(machine, hardware),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-monitor", "none"),
        *("-chardev", f"socket,id=console,fd={console_fd}", "-serial", "chardev:console"),
        *("-drive", f"if=none,id=disk,format=raw,snapshot=on,file={_escaped(disk)}"),
        *_DISKS[hardware.disk],
        *machine.args,
        *_boot(machine, boot, hardware),
    )


def _emulator(arch: str) -> str:
    name = f"qemu-system-{arch}"
    found = shutil.which(name)
    if found is None:
        raise RunError(f"{name} is not installed", hint="apt-get install qemu-system-arm")
    return found


def _machine(machine: Machine, hardware: Hardware) -> tuple[str, ...]:
    cpus = 1 if hardware.counts_time else hardware.cpus or machine.cpus
    # The device tree carries seeds of the host's random numbers, which move the kernel and everything behind it.
    name = f"{machine.machine},dtb-randomness=off" if hardware.counts_time else machine.machine
    counted = ("-icount", "shift=0,sleep=off", "-rtc", "base=2024-01-01,clock=vm") if hardware.counts_time else ()
    ram = hardware.ram_mib or machine.ram_mib
    return ("-M", name, "-cpu", machine.cpu, "-smp", str(cpus), "-m", f"{ram}M", *counted)


def _boot(machine: Machine, boot: DirectBoot | BootLoader, hardware: Hardware) -> tuple[str, ...]:
    if isinstance(boot, BootLoader):
        return ("-bios", str(_required(boot.path, "boot loader", "apt-get install u-boot-qemu")))
    kernel = _required(boot.kernel, "kernel", "scripts/fetch_kernel.sh")
    initrd = _required(boot.initrd, "initrd", "make one from the kernel's modules")
    fixed = ("nokaslr",) if hardware.counts_time else ()
    words = (f"console={machine.console}", *_KERNEL_WORDS, *fixed, *boot.words, f"colibri.slot={boot.slot}")
    line = " ".join((*words, "--", *map(_quoted, boot.arguments)))
    return ("-kernel", str(kernel), "-initrd", str(initrd), "-append", line)


def _quoted(argument: str) -> str:
    """One word of the kernel's command line. It knows double quotes around a word, and no way to write one inside."""
    if '"' in argument or not argument.isprintable():
        raise RunError(f"{argument!r} cannot stand on a kernel's command line", hint="type it on the console instead")
    return f'"{argument}"' if " " in argument or not argument else argument


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")  # a comma ends a value of QEMU's options


def _required(path: Path, what: str, hint: str = "check the path") -> Path:
    if not path.is_file():
        raise RunError(f"the {what} {path} is missing", hint=hint)
    return path


def _power_of_two(image: Path, folder: Path) -> Path:
    """Return the image, or a copy in `folder` filled up with zeros: QEMU's SD cards have sizes like those of real ones."""
    size = image.stat().st_size
    wanted = 1 << max(size - 1, 1).bit_length()
    if size == wanted:
        return image
    copy = folder / "disk.img"
    try:
        shutil.copyfile(image, copy)
        os.truncate(copy, wanted)
    except OSError as error:
        raise RunError(f"cannot copy {image}: {error.strerror}", hint="set TMPDIR to a larger disk") from error
    return copy


def _start(command: Sequence[str], console_fd: int, errors: Path) -> subprocess.Popen[bytes]:
    with errors.open("wb") as stream:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                pass_fds=(console_fd,),
                start_new_session=True,  # Ctrl-C at the terminal is for us; we end QEMU
            )
        except OSError as error:
            raise RunError(f"cannot start {command[0]}: {error.strerror}", hint="install it anew") from error
