"""Reads files of a FAT12, FAT16 or FAT32 volume without mounting it: by content, and by place."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from colibri_build.errors import FlashError
from colibri_build.image.gpt import ReadAt

_ENTRY = 32
_LONG_NAME, _VOLUME, _FOLDER = 0x0F, 0x08, 0x10  # attributes
_LONG_PARTS = ((1, 11), (14, 26), (28, 32))  # where an entry keeps its 13 UTF-16 units of a long name
_MOST_FAT_BYTES = 64 << 20  # of a FAT; a damaged boot sector may ask for more than there is memory
_MOST_FILE_BYTES = 1 << 20  # of a file that we read: a manifest, a configuration


@dataclass(frozen=True)
class FatFile:
    """A file or folder: its size as the folder says it, and its clusters as (offset, bytes) in the volume."""

    name: str
    is_folder: bool
    bytes: int
    clusters: tuple[tuple[int, int], ...]


class FatVolume:
    """A volume, read through `read` with offsets from its start. Raises FlashError if it is no sound FAT."""

    def __init__(self, read: ReadAt, where: str) -> None:
        self._read, self._where = read, where
        boot = read(0, 512)
        if len(boot) < 512 or boot[510:512] != b"\x55\xaa":
            raise self._damaged("no FAT file system")
        sector, self._sectors_a_cluster, reserved, fats = struct.unpack_from("<HBHB", boot, 11)
        roots, small, _, fat_sectors = struct.unpack_from("<HHBH", boot, 17)
        (large,), (fat32_sectors, _, _, root) = (
            struct.unpack_from("<I", boot, 32),
            struct.unpack_from("<IHHI", boot, 36),
        )
        if sector not in (512, 1024, 2048, 4096) or not self._sectors_a_cluster or not reserved or not fats:
            raise self._damaged("no FAT file system")
        fat_bytes = (fat_sectors or fat32_sectors) * sector
        if fat_bytes > _MOST_FAT_BYTES:
            raise self._damaged(f"a FAT of {fat_bytes} bytes")
        self._cluster = self._sectors_a_cluster * sector
        self._root = (reserved * sector + fats * fat_bytes, roots * _ENTRY)
        self.data_start = self._root[0] + self._root[1]  # offset of the first cluster in the volume
        self._count = ((small or large) * sector - self.data_start) // self._cluster
        self._bits = 12 if self._count < 4085 else 16 if self._count < 65525 else 32
        self._root_cluster = root if self._bits == 32 else 0
        self._fat = read(reserved * sector, fat_bytes)

    def _damaged(self, what: str) -> FlashError:
        return FlashError(f"{self._where}: {what}", hint="flash the whole image (without --slot)")

    def find(self, path: str) -> FatFile | None:
        """Return a file by its path, as `extlinux/extlinux.conf`; names compare without case. None if it is absent."""
        found: FatFile | None = None
        for part in path.split("/"):
            if found is not None and not found.is_folder:
                return None
            entries = self._entries(found)
            found = next((entry for entry in entries if entry.name.lower() == part.lower()), None)
            if found is None:
                return None
        return found

    def content(self, file: FatFile, most_bytes: int = _MOST_FILE_BYTES) -> bytes:
        """Return a file's bytes. Raises FlashError for one above `most_bytes`, or whose clusters do not hold it."""
        if file.bytes > min(most_bytes, sum(size for _, size in file.clusters)):
            raise self._damaged(f"{file.name} has {file.bytes} bytes, which its clusters do not hold")
        return b"".join(self._read(offset, size) for offset, size in file.clusters)[: file.bytes]

    def _entries(self, folder: FatFile | None) -> Iterator[FatFile]:
        if folder is not None:
            places = folder.clusters
        elif self._root_cluster:
            places = self._chain(self._root_cluster)
        else:
            places = (self._root,)
        data = b"".join(self._read(offset, size) for offset, size in places)
        long_name = ""
        for at in range(0, len(data) - _ENTRY + 1, _ENTRY):
            entry = data[at : at + _ENTRY]
            if entry[0] == 0:
                return
            if entry[0] == 0xE5:  # deleted
                long_name = ""
            elif entry[11] == _LONG_NAME:
                units = b"".join(entry[start:end] for start, end in _LONG_PARTS)
                long_name = units.decode("utf-16-le", errors="replace").split("\0")[0] + long_name
            else:
                if not entry[11] & _VOLUME:
                    yield self._file(entry, long_name)
                long_name = ""

    def _file(self, entry: bytes, long_name: str) -> FatFile:
        stem, suffix = entry[:8].decode("latin-1").rstrip(), entry[8:11].decode("latin-1").rstrip()
        (high,), (low, size) = struct.unpack_from("<H", entry, 20), struct.unpack_from("<HI", entry, 26)
        first = low + (high << 16 if self._bits == 32 else 0)
        name = long_name or (f"{stem}.{suffix}" if suffix else stem)
        return FatFile(name, bool(entry[11] & _FOLDER), size, self._chain(first) if first else ())

    def _chain(self, cluster: int) -> tuple[tuple[int, int], ...]:
        found: list[tuple[int, int]] = []
        while 2 <= cluster < self._count + 2:
            if len(found) > self._count:
                raise self._damaged("the FAT has a chain that runs in a circle")
            found.append((self.data_start + (cluster - 2) * self._cluster, self._cluster))
            cluster = self._next(cluster)
        return tuple(found)

    def _next(self, cluster: int) -> int:
        """Next cluster of a chain; a value beyond the last cluster at its end."""
        at = {12: cluster * 3 // 2, 16: cluster * 2, 32: cluster * 4}[self._bits]
        value = int.from_bytes(self._fat[at : at + (4 if self._bits == 32 else 2)], "little")
        if self._bits == 12:
            return value >> 4 if cluster & 1 else value & 0xFFF
        return value & 0x0FFFFFFF if self._bits == 32 else value
