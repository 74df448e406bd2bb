"""Images around a small program, and the media that they are flashed to: files, and loop devices where there are some."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from colibri_build.image.flash import FlashEvents, FlashOptions, FlashResult, flash
from colibri_build.image.genimage import Watcher
from colibri_build.image.gpt import find_partition, read_gpt
from colibri_build.image.make import ImageOptions, make_image
from colibri_build.image.manifest import Manifest
from colibri_build.target.board import load_board

MIB = 1024 * 1024
MODEL = "ab" * 32
DISK_BYTES = 48 * MIB


@dataclass(frozen=True)
class Made:
    """An image folder, and the program in it."""

    elf: Path
    folder: Path
    manifest: Manifest


def compile_program(path: Path, number: int) -> Path:
    """A static aarch64 program with a build id; `number` makes it another one."""
    source = path.with_suffix(".c")
    source.write_text(f"int main(void) {{ return {number}; }}\n", encoding="utf-8")
    flags = ["-static", "-Wl,--build-id=sha1", "-s"]
    subprocess.run(["aarch64-linux-gnu-gcc", *flags, str(source), "-o", str(path)], check=True)
    return path


class Silent(Watcher):
    """Nobody looks."""


def image_of(elf: Path, out: Path, board: str = "cortex-a53", options: ImageOptions | None = None) -> Manifest:
    return make_image(elf, load_board(board), MODEL, out, options or ImageOptions(), Silent())


def blank_disk(path: Path, size: int = DISK_BYTES) -> Path:
    with path.open("wb") as stream:
        stream.truncate(size)
    return path


def copied(source: Path, target: Path) -> Path:
    """A copy of a file or folder, with its holes."""
    subprocess.run(["cp", "-r", "--sparse=always", str(source), str(target)], check=True)
    return target


def flashed(folder: Path, disk: Path, slot: str | None = None, force: bool = False) -> FlashResult:
    return flash(folder, disk, FlashOptions(slot, force), FlashEvents())


def partition_bytes(disk: Path, name: str) -> bytes:
    with disk.open("rb") as stream:

        def read(offset: int, size: int) -> bytes:
            stream.seek(offset)
            return stream.read(size)

        found = find_partition(read_gpt(read, "disk"), name, "disk")
        return read(found.offset, found.bytes)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def loop_device(file: Path) -> Iterator[Path]:
    done = subprocess.run(["losetup", "--find", "--show", str(file)], check=True, capture_output=True, text=True)
    device = Path(done.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", str(device)], check=True)


def _loops_work() -> bool:
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(MIB)
        try:
            with loop_device(Path(file.name)) as device:
                return device.is_block_device()
        except (OSError, subprocess.CalledProcessError):
            return False


def _mounts_work() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode:
            return False
        return subprocess.run(["umount", folder], capture_output=True).returncode == 0


# What a device may be on this machine. Files are everywhere; loop devices need root and a kernel that has them.
MEDIA = ["file", *(["loop"] if _loops_work() else [])]
MOUNTABLE = MEDIA[1:] if _mounts_work() else []


@contextlib.contextmanager
def medium(kind: str, folder: Path, size: int = DISK_BYTES) -> Iterator[Path]:
    """A blank disk of the kind."""
    file = blank_disk(folder / "disk.img", size)
    if kind == "file":
        yield file
        return
    with loop_device(file) as device:
        yield device
