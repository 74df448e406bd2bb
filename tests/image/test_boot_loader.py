"""A real U-Boot reads what we wrote: table, boot partition, and the switch before and after an update."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pexpect
from image_disks import Made, flashed

U_BOOT = "/usr/lib/u-boot/qemu_arm64/u-boot.bin"
PROMPT = "\n=> "
DEADLINE_S = 60


@contextlib.contextmanager
def u_boot(disk: Path) -> Iterator[pexpect.spawn]:
    """A board with the disk, at the prompt of its boot loader."""
    machine = ["-M", "virt", "-cpu", "cortex-a53", "-m", "128", "-nographic", "-nic", "none", "-bios", U_BOOT]
    drive = ["-drive", f"if=none,id=disk,format=raw,file={disk}", "-device", "nvme,drive=disk,serial=1"]
    board = pexpect.spawn("qemu-system-aarch64", [*machine, *drive], timeout=DEADLINE_S, encoding="utf-8")
    try:
        board.expect_exact("Hit any key to stop autoboot")
        board.send("\r")
        board.expect_exact(PROMPT)
        yield board
    finally:
        board.close(force=True)


def answer(board: pexpect.spawn, command: str) -> str:
    board.sendline(command)
    board.expect_exact(PROMPT)
    return str(board.before)


def test_u_boot_sees_the_partitions_and_which_slot_is_active(update: Made, disk: Path) -> None:
    """The commands are those of docs/images.md."""
    for wanted in ("a", "b"):
        with u_boot(disk) as board:
            answer(board, "nvme scan")
            table = answer(board, "part list nvme 0")
            assert all(f'"{name}"' in table for name in ("boot", "firmware-a", "firmware-b"))
            assert "512 bytes read" in answer(board, "load nvme 0:1 $loadaddr slot")
            answer(board, "env import -t $loadaddr 200")
            assert f"active-{wanted}" in answer(board, "echo active-$slot")
        if wanted == "a":
            flashed(update.folder, disk, "other")
