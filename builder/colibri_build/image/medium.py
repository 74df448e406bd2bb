"""An open device: blocks written, flushed, and read back past the page cache."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator

from colibri_build.errors import FlashError
from colibri_build.image.device import Device
from colibri_build.image.layout import BLOCK, MIB

CHUNK = MIB  # bytes of one write or read
_REREAD_TABLE = 0x125F  # ioctl BLKRRPART


class Medium:
    """A device that this process has for itself. Every failure is a FlashError that names the offset."""

    def __init__(self, device: Device, descriptor: int, direct: int | None) -> None:
        """`direct`: a second descriptor with O_DIRECT, or None where the file system has none."""
        self.device, self._descriptor, self._direct = device, descriptor, direct
        self._buffer = mmap.mmap(-1, CHUNK + 2 * BLOCK)  # O_DIRECT wants memory that begins at a page

    def read(self, offset: int, size: int) -> bytes:
        """Read through the page cache; fewer bytes at the end of the device."""
        with self._failing("read", offset):
            return os.pread(self._descriptor, size, offset)

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data`. It is on the device only after `flush`."""
        with self._failing("write", offset):
            view = memoryview(data)
            while view:
                done = _put(self._descriptor, view, offset)
                view, offset = view[done:], offset + done

    def flush(self) -> None:
        """Wait until everything written is on the device."""
        with self._failing("write", None):
            _sync(self._descriptor)

    def write_sector(self, offset: int, sector: bytes) -> None:
        """Write one sector, in a request of its own where the device allows it, and flush."""
        with self._failing("write", offset):
            if self._direct is None or not self._write_direct(self._direct, offset, sector):
                _put(self._descriptor, memoryview(sector), offset)
            _sync(self._descriptor)

    def _write_direct(self, descriptor: int, offset: int, sector: bytes) -> bool:
        self._buffer[: len(sector)] = sector
        with memoryview(self._buffer) as memory, memory[: len(sector)] as view:
            try:
                return _put(descriptor, view, offset) == len(sector)
            except OSError as error:
                if error.errno != errno.EINVAL:  # sectors of 4096 bytes: through the page cache
                    raise
                return False

    def read_back(self, offset: int, size: int) -> bytes:
        """Read what the device itself holds, at most CHUNK bytes. Call `flush` before."""
        start, end = offset // BLOCK * BLOCK, -(-(offset + size) // BLOCK) * BLOCK
        with self._failing("read back", offset):
            if self._direct is not None:
                with memoryview(self._buffer) as memory, memory[: end - start] as view:
                    done = os.preadv(self._direct, [view], start)
                return self._buffer[offset - start : min(done, offset - start + size)]
            os.posix_fadvise(self._descriptor, start, end - start, os.POSIX_FADV_DONTNEED)
            return os.pread(self._descriptor, size, offset)

    def reread_table(self) -> None:
        """Make the kernel look at a new partition table; not every device can."""
        if self.device.is_disk:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._descriptor, _REREAD_TABLE)

    @contextlib.contextmanager
    def _failing(self, verb: str, offset: int | None) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = "" if offset is None else f" at offset {offset}"
            hint = "free some space" if error.errno == errno.ENOSPC else "check cable, reader and card; dmesg says more"
            raise FlashError(f"cannot {verb} {self.device.path}{where}: {error.strerror}", hint=hint) from error


@contextlib.contextmanager
def open_medium(device: Device) -> Iterator[Medium]:
    """Open a device for writing, and keep every other program with manners out. Raises FlashError."""
    # For a disk, O_EXCL is the kernel's own check that nothing mounts or holds it, free of races.
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_EXCL if device.is_disk else 0)
    descriptors: list[int] = []
    try:
        descriptors.append(os.open(device.path, flags))
        _lock(descriptors[0])
        direct = None
        with contextlib.suppress(OSError):
            direct = os.open(device.path, os.O_RDWR | os.O_CLOEXEC | os.O_DIRECT)
            descriptors.append(direct)
    except OSError as error:
        _close(descriptors)
        raise _not_opened(device, error) from error
    try:
        yield Medium(device, descriptors[0], direct)
    finally:
        _close(descriptors)


def _lock(descriptor: int) -> None:
    """Take the lock by which udev and partitioning tools, too, keep off a disk."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # a file system without locks still has one writer


def _not_opened(device: Device, error: OSError) -> FlashError:
    if error.errno in (errno.EBUSY, errno.EWOULDBLOCK):
        return FlashError(f"{device.path} is in use by another program", hint="end it; lsof and lsblk say who")
    if isinstance(error, PermissionError):
        return FlashError(f"no permission to write {device.path}", hint="sudo, or membership in the group disk")
    return FlashError(f"cannot write {device.path}: {error.strerror}", hint="check the device and its write protection")


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


# The only two ways by which a device changes: tests cut the power between them.
def _put(descriptor: int, data: memoryview, offset: int) -> int:
    return os.pwrite(descriptor, data, offset)


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)
