"""Runs genimage: a slot's file system, then the boot partition and the disk around both. Without root, without mounts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from colibri_build.errors import ImageError
from colibri_build.image.layout import BOOT, FIRST_PARTITION, MIB, SECTOR, Layout, Region, slot_label
from colibri_build.image.manifest import IMAGE_FILE, SLOT_IMAGE_FILE
from colibri_build.target.commands import environment
from colibri_build.target.image_tools import missing_packages, search_path

BOOT_IMAGE = "boot.vfat"
EPOCH = 315532800  # 1980-01-01, the first day that FAT knows: every time in an image
SQUASHFS_BLOCK = 128 * 1024
_BASIC_DATA, _LINUX = "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
_NAMESPACE = uuid.UUID("5d0a0b1c-54c7-5d9b-8f0e-5f2c43a1e6b7")
_LOOK_S = 0.2  # between two looks at how much is written


class Watcher(Protocol):
    """What a caller sees of the work. Progress is in MiB."""

    def stage(self, text: str) -> None:
        """Take note of a step that starts."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Take note of how far it is."""

    def command(self, argv: Sequence[str]) -> None:
        """Take note of a process that is about to run."""


@dataclass(frozen=True)
class Ids:
    """The identifiers of one image, derived from the hash of its content: the same content, the same bytes."""

    content: str

    def uuid(self, role: str) -> str:
        """Return the UUID of the disk or a partition."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.content}:{role}"))

    @property
    def volume(self) -> str:
        """Volume id of the boot partition, 8 hexadecimal digits."""
        return self.uuid(BOOT)[:8]


def slot_config() -> str:
    """Return the configuration that makes a slot image: uncompressed, since quantized weights do not get smaller."""
    return f"""image {SLOT_IMAGE_FILE} {{
  squashfs {{
    compression = "none"
    block-size = {SQUASHFS_BLOCK}
    extraargs = "-all-root -no-xattrs -no-progress"
  }}
  mountpoint = "/"
}}
"""


def disk_config(layout: Layout, boot_files: Mapping[str, str], used: Sequence[str], ids: Ids) -> str:
    """Return the configuration of boot partition and disk. `boot_files`: name in the partition -> input file."""
    files = "\n".join(f'    file "{name}" {{ image = "{source}" }}' for name, source in boot_files.items())
    table = "\n".join(_partition(region, used, ids) for region in layout.regions)
    return f"""image {BOOT_IMAGE} {{
  vfat {{
    extraargs = "--invariant -S 512 -i {ids.volume} -n COLIBRI"
{files}
  }}
  size = {layout.region(BOOT).bytes}
}}
image {IMAGE_FILE} {{
  hdimage {{
    partition-table-type = "gpt"
    disk-uuid = "{ids.uuid("disk")}"
    align = 1M
  }}
  size = {layout.bytes}
{table}
}}
"""


def _partition(region: Region, used: Sequence[str], ids: Ids) -> str:
    content, kind = "", _LINUX
    if region.name == BOOT:
        # U-Boot looks for extlinux on the bootable partition.
        content, kind = f'image = "{BOOT_IMAGE}"\n    bootable = true\n    offset = {FIRST_PARTITION}', _BASIC_DATA
    elif region.name in map(slot_label, used):
        content = f'image = "{SLOT_IMAGE_FILE}"'
    return f"""  partition {region.name} {{
    {content}
    size = {region.bytes}
    partition-type-uuid = "{kind}"
    partition-uuid = "{ids.uuid(region.name)}"
  }}"""


def require_tools() -> None:
    """Raise ImageError naming the packages that are not installed."""
    missing = missing_packages()
    if missing:
        raise ImageError(f"not installed: {', '.join(missing)}", hint=f"sudo apt-get install {' '.join(missing)}")


def run_genimage(work: Path, name: str, config: str, result: tuple[str, int], watcher: Watcher) -> None:
    """Run genimage on `root` and `in` in the folder `work`; its images come to `work`/out. Raises ImageError.

    `result`: the file that shows how far it is, and about how many bytes it will take on the disk.

    genimage forms shell commands with absolute paths, which a quote in a folder's name would break: it gets a short
    name for `work` instead.
    """
    (work / f"{name}.cfg").write_text(config, encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="colibri-image-") as folder:
        link = Path(folder) / "work"
        link.symlink_to(work.resolve())
        argv = ["genimage", "--config", f"{link / name}.cfg", "--tmppath", f"{link / name}.tmp"]
        argv += ["--rootpath", f"{link}/root", "--inputpath", f"{link}/in", "--outputpath", f"{link}/out"]
        watcher.command(argv)
        _run(argv, work, work / "out" / result[0], result[1], watcher)


def _run(argv: Sequence[str], work: Path, result: Path, expected: int, watcher: Watcher) -> None:
    variables = {**environment(), "PATH": search_path(), "SOURCE_DATE_EPOCH": str(EPOCH), "TZ": "UTC0"}
    log = work / "genimage.log"
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                cwd=work,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,  # so that what genimage starts ends with it
            )
            _wait(process, result, expected, watcher)
    except OSError as error:
        raise ImageError(f"cannot start genimage: {error.strerror}", hint="sudo apt-get install genimage") from error
    if process.returncode:
        reason = _reason(log.read_text(encoding="utf-8", errors="replace"))
        raise ImageError(f"genimage failed: {reason}", hint=_advice(work))


def _wait(process: subprocess.Popen[bytes], result: Path, expected: int, watcher: Watcher) -> None:
    """Wait for the end, and tell how much is written meanwhile. An exception ends the process."""
    try:
        while True:
            try:
                process.wait(_LOOK_S)
                return
            except subprocess.TimeoutExpired:
                blocks = result.stat().st_blocks if result.exists() else 0
                watcher.progress("written, MiB", min(blocks * SECTOR, expected) // MIB, max(expected // MIB, 1))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _reason(output: str) -> str:
    """Return the line of genimage's output that says most."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for sign in ("No space left", "full", "FATAL", "ERROR"):
        for line in lines:
            if sign in line:
                return line
    return (lines or ["no output"])[-1]


def _advice(work: Path) -> str:
    free = shutil.disk_usage(work).free
    return f"check the disk ({free // (1024 * 1024)} MiB free) and the tools: colibri-build doctor"
