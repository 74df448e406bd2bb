"""The active slot: one sector in the boot partition that names it, rewritten in place to switch.

A sector is the unit that an eMMC writes whole or not at all, so after a cut the old slot is active or the new one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from colibri_build.errors import FlashError, ImageError
from colibri_build.image.fat import FatVolume
from colibri_build.image.gpt import Partition, ReadAt, find_partition, read_gpt
from colibri_build.image.layout import BOOT, SECTOR, SLOTS

EXTLINUX_FILE = "extlinux/extlinux.conf"  # in an image with a kernel; U-Boot's extlinux reads it
SLOT_FILE = "slot"  # in an image without: for the user's own boot loader (U-Boot: `env import -t`)
KERNEL_FILE, INITRD_FILE, DTB_FILE = "kernel", "initrd", "board.dtb"
_ACTIVE = re.compile(rb"^(default |slot=)([ab])$", re.MULTILINE)
_DEFAULT_ARGUMENTS = ("--serve",)


@dataclass(frozen=True)
class Switch:
    """Where a device keeps the name of its active slot."""

    file: str
    offset: int  # from the start of the device, a multiple of SECTOR
    sector: bytes
    active: str

    def switched(self, slot: str) -> bytes:
        """Return the sector with another active slot; the rest of it is as it was."""
        return _ACTIVE.sub(lambda match: match[1] + slot.encode(), self.sector)


def other_slot(slot: str) -> str:
    """Return b for a, a for b."""
    return SLOTS[1 - SLOTS.index(slot)]


def slot_sector() -> bytes:
    """Return the content of the file `slot` of a new image: slot a is active."""
    return _padded(b"slot=a\n")


def extlinux_sector(console: str, baud: int, cmdline: str, with_dtb: bool) -> bytes:
    """Return extlinux.conf with a label for each slot, slot a by default, in exactly one sector.

    `console` is a device as /dev/ttyAMA0. `cmdline`: more kernel words, and after ` -- ` the firmware's arguments in the
    place of `--serve`. Raises ImageError if it is not one line of printable ASCII, or does not fit.
    """
    if not cmdline.isascii() or not (cmdline.isprintable() or not cmdline):
        raise ImageError("--cmdline is not one line of printable ASCII", hint="leave the other characters out")
    words = cmdline.split()
    cut = words.index("--") if "--" in words else len(words)
    arguments = words[cut + 1 :] or list(_DEFAULT_ARGUMENTS)
    lines = ["default a"]
    for slot in SLOTS:
        lines += [f"label {slot}", f" kernel /{KERNEL_FILE}", f" initrd /{INITRD_FILE}"]
        if with_dtb:
            lines.append(f" fdt /{DTB_FILE}")
        tty = f"console={console.removeprefix('/dev/')},{baud}"
        append = [tty, "quiet", "loglevel=3", f"colibri.slot={slot}", *words[:cut], "--", *arguments]
        lines.append(f" append {' '.join(append)}")
    text = ("\n".join(lines) + "\n").encode()
    if len(text) > SECTOR:
        over = -(-(len(text) - SECTOR) // len(SLOTS))
        raise ImageError(
            f"extlinux.conf would have {len(text)} bytes; the switch of slots needs it in one sector of {SECTOR}",
            hint=f"shorten --cmdline by {over} characters",
        )
    return _padded(text)


def _padded(text: bytes) -> bytes:
    """Fill a sector up with a comment."""
    room = SECTOR - len(text)
    return text + (b"#" + b" " * (room - 2) + b"\n" if room > 1 else b"\n" * room)


def boot_volume(read: ReadAt, partitions: tuple[Partition, ...], where: str) -> FatVolume:
    """Return the boot partition's file system."""
    return _volume(read, find_partition(partitions, BOOT, where), where)


def _volume(read: ReadAt, boot: Partition, where: str) -> FatVolume:
    return FatVolume(lambda offset, size: read(boot.offset + offset, size), f"{where}, partition {BOOT}")


def find_switch(read: ReadAt, partitions: tuple[Partition, ...], where: str) -> Switch:
    """Find the sector that names the active slot. Raises FlashError if it is not as we made it."""
    boot = find_partition(partitions, BOOT, where)
    volume = _volume(read, boot, where)
    for name in (EXTLINUX_FILE, SLOT_FILE):
        file = volume.find(name)
        if file is None:
            continue
        content = volume.content(file)
        found = _ACTIVE.findall(content)
        if len(content) != SECTOR or len(found) != 1:
            raise FlashError(
                f"{where}: {name} in the boot partition was changed: {len(content)} bytes, not {SECTOR}, or no one slot",
                hint="flash the whole image (without --slot)",
            )
        return Switch(name, boot.offset + file.clusters[0][0], content, found[0][1].decode())
    raise FlashError(
        f"{where}: neither {EXTLINUX_FILE} nor {SLOT_FILE} in the boot partition",
        hint="flash the whole image first (without --slot)",
    )


def active_slot(path: Path | str) -> str:
    """Return the active slot, "a" or "b", of a disk image or a device. Raises FlashError if it has none of ours."""
    where = str(path)
    try:
        descriptor = os.open(where, os.O_RDONLY)
    except OSError as error:
        raise FlashError(f"cannot read {where}: {error.strerror}", hint="check the path and its permissions") from error
    try:

        def read(offset: int, size: int) -> bytes:
            return os.pread(descriptor, size, offset)

        return find_switch(read, read_gpt(read, where), where).active
    except OSError as error:
        raise FlashError(f"cannot read {where}: {error.strerror}", hint="check the device") from error
    finally:
        os.close(descriptor)
