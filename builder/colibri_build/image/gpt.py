"""Reads GUID partition tables, and moves the second copy to the end of a larger device."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from colibri_build.errors import FlashError
from colibri_build.image.layout import BACKUP_BYTES, SECTOR

# Reads `length` bytes at `offset`; fewer at the end of the device.
ReadAt = Callable[[int, int], bytes]

# signature, revision, header size, CRC of the header, reserved, this LBA, the other one, first and last usable LBA,
# GUID of the disk, first LBA of the entries, their number, size of one, CRC of all
_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_MOST_ENTRIES = 1024
_MOST_SECTORS = 1 << 54  # 2^63 bytes, the largest offset of the kernel's
_MBR_SECTORS = 446 + 12  # where the protective MBR keeps the number of sectors behind it
_REMEDY = "flash the whole image (without --slot), or repair the table with: sgdisk -v DEVICE"


@dataclass(frozen=True)
class Partition:
    """One entry of the table, in bytes."""

    name: str  # PARTLABEL
    offset: int
    bytes: int


@dataclass(frozen=True)
class Header:
    """What we need of a GPT header."""

    last_usable: int
    entries_at: int  # LBA
    entries: int
    entry_bytes: int


def read_gpt(read: ReadAt, where: str) -> tuple[Partition, ...]:
    """Return the partitions of the primary table, checked by its CRCs. Raises FlashError without a sound one."""
    header = _header(read(SECTOR, SECTOR), where)
    table = read(header.entries_at * SECTOR, header.entries * header.entry_bytes)
    if zlib.crc32(table) != _fields(read(SECTOR, SECTOR))[-1]:
        raise FlashError(f"{where}: the partition entries are damaged (CRC)", hint=_REMEDY)
    return tuple(_partitions(table, header.entry_bytes, where))


def find_partition(partitions: tuple[Partition, ...], name: str, where: str) -> Partition:
    """Return the one partition with this PARTLABEL. Raises FlashError if there is none, or more than one."""
    found = [partition for partition in partitions if partition.name == name]
    if len(found) != 1:
        count = "no partition" if not found else f"{len(found)} partitions"
        labels = ", ".join(partition.name or "(none)" for partition in partitions) or "none at all"
        raise FlashError(
            f"{where}: {count} with PARTLABEL {name} (there are: {labels})",
            hint="name the right device, or flash the whole image (without --slot)",
        )
    return found[0]


def moved_backup(head: bytes, tail: bytes, device_bytes: int) -> tuple[bytes, bytes]:
    """Return the start of an image and its last 33 sectors for a device that may be larger than the image.

    The table's second copy belongs in the last sectors of the device, and each copy names the place of the other.
    """
    last = device_bytes // SECTOR - 1
    backup_at = last - BACKUP_BYTES // SECTOR + 1
    primary = _rewritten(head[SECTOR : 2 * SECTOR], this=1, other=last, entries_at=2, last_usable=backup_at - 1)
    second = _rewritten(tail[-SECTOR:], this=last, other=1, entries_at=backup_at, last_usable=backup_at - 1)
    mbr = head[:_MBR_SECTORS] + struct.pack("<I", min(last, 0xFFFFFFFF)) + head[_MBR_SECTORS + 4 : SECTOR]
    return mbr + primary + head[2 * SECTOR :], tail[:-SECTOR] + second


def _fields(sector: bytes) -> tuple[int, ...]:
    return _HEADER.unpack_from(sector)


def _header(sector: bytes, where: str) -> Header:
    if len(sector) < SECTOR or sector[:8] != b"EFI PART":
        raise FlashError(f"{where}: no GUID partition table", hint="flash the whole image first (without --slot)")
    fields = _fields(sector)
    size, crc = fields[2], fields[3]
    if not _HEADER.size <= size <= SECTOR or zlib.crc32(sector[:16] + bytes(4) + sector[20:size]) != crc:
        raise FlashError(f"{where}: the header of the partition table is damaged (CRC)", hint=_REMEDY)
    header = Header(fields[8], fields[10], fields[11], fields[12])
    if header.entries > _MOST_ENTRIES or header.entry_bytes < 128 or header.entry_bytes > SECTOR:
        raise FlashError(f"{where}: a partition table of {header.entries} x {header.entry_bytes} bytes", hint=_REMEDY)
    return header


def _partitions(table: bytes, entry_bytes: int, where: str) -> list[Partition]:
    found = []
    for at in range(0, len(table), entry_bytes):
        if not any(table[at : at + 16]):  # type GUID of an unused entry
            continue
        first, last = struct.unpack_from("<QQ", table, at + 32)
        if not first <= last < _MOST_SECTORS:
            number = at // entry_bytes + 1
            raise FlashError(f"{where}: partition {number} reaches from sector {first} to {last}", hint=_REMEDY)
        name = table[at + 56 : at + 128].decode("utf-16-le", errors="replace").split("\0")[0]
        found.append(Partition(name, first * SECTOR, (last - first + 1) * SECTOR))
    return found


def _rewritten(sector: bytes, *, this: int, other: int, entries_at: int, last_usable: int) -> bytes:
    values = list(_HEADER.unpack_from(sector))
    values[5], values[6], values[8], values[10] = this, other, last_usable, entries_at
    values[3] = 0
    values[3] = zlib.crc32(_HEADER.pack(*values) + sector[_HEADER.size : values[2]])
    return _HEADER.pack(*values) + sector[_HEADER.size :]
