"""The initramfs: first stage, kernel modules and a console in one archive that is the same for the same content."""

from __future__ import annotations

import gzip
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from colibri_build.files import write_whole

_MAGIC = b"070701"  # of cpio's format `newc`
_ALIGNMENT = 4
_BLOCK = 512  # of the whole archive
_CONSOLE = (5, 1)  # major and minor number of /dev/console


@dataclass(frozen=True)
class Entry:
    """A file, folder or device. `mode` as in stat; `device` is (major, minor)."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def write_initramfs(first_stage: Path, modules: Sequence[Path], out: Path) -> Path:
    """Write the archive with `first_stage` as /init and the modules, loaded in this order, to `out`; return `out`.

    No time, owner or path of this machine is in it. Raises ColibriError if `out` cannot be written, OSError if an
    input cannot be read.
    """
    listed = "".join(f"{path.name}\n" for path in modules).encode()
    entries = [
        Entry("dev", stat.S_IFDIR | 0o755),
        # The kernel opens it for /init before anything is mounted.
        Entry("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE),
        Entry("init", stat.S_IFREG | 0o755, first_stage.read_bytes()),
        Entry("modules", stat.S_IFDIR | 0o755),
        Entry("modules/modules", stat.S_IFREG | 0o644, listed),
        *(Entry(f"modules/{path.name}", stat.S_IFREG | 0o644, path.read_bytes()) for path in modules),
    ]
    write_whole(out, gzip.compress(newc_archive(entries), compresslevel=6, mtime=0))
    return out


def newc_archive(entries: Iterable[Entry]) -> bytes:
    """cpio archive of format newc; a folder has to come before what is in it."""
    archive = bytearray()
    for inode, entry in enumerate(entries, start=1):
        archive += _record(entry, inode)
    archive += _record(Entry("TRAILER!!!", 0), 0)
    return bytes(archive + bytes(-len(archive) % _BLOCK))


def _record(entry: Entry, inode: int) -> bytes:
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    # inode, mode, uid, gid, links, time, size, device of the file system (2), device number (2), name size, checksum
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    header = _MAGIC + b"".join(b"%08x" % field for field in fields)
    return _padded(header + name) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
