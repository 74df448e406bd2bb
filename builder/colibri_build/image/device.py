"""What a device is and why it must not be written: mounted, of the wrong kind, not removable. Read from sysfs and procfs."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from colibri_build.errors import FlashError
from colibri_build.image.layout import SECTOR

_BOOT_AREA = re.compile(r"mmcblk\d+(boot\d+|rpmb|gp\d+)(p\d+)?")
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Machine:
    """Where the kernel tells about devices and mounts."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")


@dataclass(frozen=True)
class Device:
    """A disk, or a regular file that stands for one."""

    path: Path
    name: str  # the kernel's, as mmcblk0; of a file, its name
    bytes: int
    number: str | None  # major:minor; None for a file

    @property
    def is_disk(self) -> bool:
        """Whether it is a block device."""
        return self.number is not None


def find_device(path: Path, machine: Machine) -> Device:
    """Return the device. Raises FlashError if it is not there, or is no disk and no file."""
    real = path.resolve()
    if _BOOT_AREA.fullmatch(real.name):
        raise FlashError(
            f"{path} is a boot or protected area of an eMMC, where boot loader and keys are: never written",
            hint=f"the user area, as {re.sub(r'(boot|rpmb|gp).*', '', str(real))}",
        )
    try:
        status = real.stat()
        if stat.S_ISREG(status.st_mode):
            return Device(path, real.name, status.st_size, None)
        if not stat.S_ISBLK(status.st_mode):
            raise FlashError(f"{path} is neither a disk nor a file", hint="a disk as /dev/mmcblk0; lsblk lists them")
        number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        return Device(path, _entry(machine, number).name or real.name, _disk_bytes(real), number)
    except PermissionError as error:
        raise FlashError(f"no permission for {path}", hint="sudo, or membership in the group disk") from error
    except OSError as error:
        raise FlashError(f"{path}: {error.strerror}", hint="lsblk lists the disks; is it plugged in?") from error


def check_device(device: Device, machine: Machine, force: bool) -> None:
    """Raise FlashError if the device must not be written. `force` allows disks that are not removable, nothing else."""
    _refuse_mounted(device, machine)
    if device.number is None:
        return
    entry = _entry(machine, device.number)
    if _text(entry / "partition"):
        disk = f"/dev/{entry.parent.name}"
        raise FlashError(f"{device.path} is partition {_text(entry / 'partition')} of a disk", hint=f"the disk: {disk}")
    if _text(entry / "ro") == "1":
        raise FlashError(f"{device.path} is write-protected", hint="the switch on the card or its adapter")
    sector = _text(entry / "queue" / "logical_block_size") or str(SECTOR)
    if sector != str(SECTOR):
        raise FlashError(f"{device.path} has sectors of {sector} bytes, images have {SECTOR}", hint="another disk")
    if not force and not _is_removable(entry, device.name):
        kind = "an eMMC that is soldered in" if _text(entry / "device" / "type") == "MMC" else "not removable"
        raise FlashError(
            f"{device.path} ({description(device, machine)}) is {kind}: this machine's own disk?",
            hint="check the name with lsblk; if it is right, --force",
        )


def description(device: Device, machine: Machine) -> str:
    """Return size and model of a device, as a person knows it by."""
    size = f"{device.bytes / 1e9:.1f} GB" if device.bytes >= 10**9 else f"{device.bytes / 1e6:.1f} MB"
    if device.number is None:
        return f"file, {size}"
    folder = _entry(machine, device.number) / "device"
    names = [_text(folder / name) for name in ("vendor", "model", "name")]
    return ", ".join([" ".join(name for name in names if name) or device.name, size])


def _is_removable(entry: Path, name: str) -> bool:
    """Return whether a disk can be pulled out: USB sticks and readers say so, an SD card by its type. A loop is a file."""
    return name.startswith("loop") or _text(entry / "removable") == "1" or _text(entry / "device" / "type") == "SD"


def _entry(machine: Machine, number: str) -> Path:
    """Return the folder of sysfs that describes a block device."""
    return (machine.sys / "dev" / "block" / number).resolve()


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _disk_bytes(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _refuse_mounted(device: Device, machine: Machine) -> None:
    numbers = _family(device, machine)
    for number, where in (*_mounts(machine), *_swaps(machine)):
        if number in numbers:
            name = _entry(machine, number).name
            what = "swap space" if where == "swap" else f"mounted at {where}"
            remedy = "swapoff" if where == "swap" else "umount"
            raise FlashError(
                f"{device.path} is in use: {name} is {what}", hint=f"{remedy} /dev/{name}, or another disk"
            )


def _family(device: Device, machine: Machine) -> set[str]:
    """Return the numbers of a disk, of its partitions, and of what is built upon them (device mapper, RAID, loops)."""
    if device.number is not None:
        return {device.number, *_with_parts(_entry(machine, device.number))}
    numbers: set[str] = set()
    for loop in (machine.sys / "block").glob("loop*"):
        backing = _text(loop / "loop" / "backing_file")
        with suppress(OSError):
            if backing and device.path.samefile(backing):
                numbers.update(_with_parts(loop.resolve()))
    return numbers


def _with_parts(entry: Path) -> Iterator[str]:
    yield _text(entry / "dev")
    for holder in entry.glob("holders/*"):
        yield from _with_parts(holder.resolve())
    for part in entry.glob("*/partition"):
        yield from _with_parts(part.parent)


def _mounts(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield the number and the mount point of every mount; twice for btrfs, whose own numbers are not its disk's."""
    for line in _text(machine.proc / "self" / "mountinfo").splitlines():
        fields = line.split()
        if len(fields) < 10 or "-" not in fields:
            continue
        where = _unescaped(fields[4])
        yield fields[2], where
        yield from ((number, where) for number in _number_of(_unescaped(fields[fields.index("-") + 2])))


def _swaps(machine: Machine) -> Iterator[tuple[str, str]]:
    for line in _text(machine.proc / "swaps").splitlines()[1:]:
        yield from ((number, "swap") for number in _number_of(_unescaped(line.split()[0])))


def _number_of(path: str) -> Iterator[str]:
    with suppress(OSError, ValueError):
        status = Path(path).stat()
        if stat.S_ISBLK(status.st_mode):
            yield f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def _unescaped(text: str) -> str:
    r"""Undo the kernel's \040 for a blank."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
