"""What a disk of ours boots: read from it as its boot loader would, without mounting it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from colibri_build.errors import FlashError
from colibri_build.image.fat import FatVolume
from colibri_build.image.gpt import read_gpt
from colibri_build.image.layout import MIB
from colibri_build.image.manifest import MANIFEST_FILE, FirmwareRecord, parse_firmware
from colibri_build.image.slots import EXTLINUX_FILE, INITRD_FILE, KERNEL_FILE, boot_volume, find_switch

_MOST_BYTES = 256 * MIB  # of a kernel or initrd; a damaged entry may say 4 GiB


@dataclass(frozen=True)
class BootFiles:
    """The active slot, its kernel and initrd, and what stands on the kernel's command line before and behind ` -- `."""

    firmware: FirmwareRecord
    slot: str
    kernel: bytes
    initrd: bytes
    words: tuple[str, ...]
    arguments: tuple[str, ...]


def read_boot_files(path: Path) -> BootFiles:
    """Read an image or a flashed file.

    Raises FlashError if it is not one of ours or carries no kernel, ImageError if its manifest is damaged.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream.fileno(), str(path))
    except OSError as error:
        raise FlashError(f"cannot read {path}: {error.strerror}", hint="check the path and its permissions") from error


def _read(descriptor: int, where: str) -> BootFiles:
    def read(offset: int, size: int) -> bytes:
        return os.pread(descriptor, size, offset)

    table = read_gpt(read, where)
    switch = find_switch(read, table, where)
    if switch.file != EXTLINUX_FILE:
        raise FlashError(f"{where} carries no kernel", hint="make the image with --kernel and --initrd")
    volume = boot_volume(read, table, where)
    manifest, kernel, initrd = (_content(volume, name, where) for name in (MANIFEST_FILE, KERNEL_FILE, INITRD_FILE))
    words, arguments = _command_line(switch.sector.decode("ascii", errors="replace"), switch.active, where)
    return BootFiles(parse_firmware(manifest, where), switch.active, kernel, initrd, words, arguments)


def _content(volume: FatVolume, name: str, where: str) -> bytes:
    file = volume.find(name)
    if file is None:
        raise FlashError(f"{where}: no {name} in the boot partition", hint="flash the whole image (without --slot)")
    return volume.content(file, _MOST_BYTES)


def _command_line(configuration: str, slot: str, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kernel's words and the firmware's arguments of one label of extlinux.conf."""
    found = re.search(rf"^label {slot}$.*?^ append ([^\n]*)$", configuration, re.MULTILINE | re.DOTALL)
    if found is None:
        raise FlashError(f"{where}: {EXTLINUX_FILE} has no label {slot}", hint="flash the whole image (without --slot)")
    words, _, arguments = found[1].partition(" -- ")
    return tuple(words.split()), tuple(arguments.split())
