"""The output folder: what we wrote there, and nothing of anyone else's."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from colibri_build.errors import RenderError
from colibri_build.files import whole_file, write_whole

MANIFEST = ".colibri-tree.json"  # names of the files that we wrote, so that a later build may replace or remove them
_FICLONE = 0x40049409  # ioctl that shares a file's blocks (btrfs, XFS)


def claim(out: Path, names: Iterable[str]) -> None:
    """Take `names` in `out` for the tree, and remove what an earlier tree had beside them.

    Raises RenderError if a file is in the way that no earlier build wrote.
    """
    wanted = set(names)
    ours = _manifest(out)
    for name in sorted(wanted - ours):
        if (out / name).exists():
            raise RenderError(
                f"{out / name} is in the way: this file was not written by colibri-build",
                hint="choose an empty folder with -o",
            )
    _write_manifest(out, wanted | ours)  # first, so that an interrupted build can be taken up again
    for name in sorted(ours - wanted):
        (out / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (out / name).parent.rmdir()
    _write_manifest(out, wanted)


def _manifest(out: Path) -> set[str]:
    try:
        names = json.loads((out / MANIFEST).read_bytes())["files"]
        return {str(name) for name in names if _is_inside(str(name))}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _is_inside(name: str) -> bool:
    """Whether a name of the manifest stays in the folder: it may have been edited, and we remove what it names."""
    return not name.startswith("/") and ".." not in name.split("/")


def _write_manifest(out: Path, names: set[str]) -> None:
    write_whole(out / MANIFEST, (json.dumps({"files": sorted(names)}, indent=1) + "\n").encode())


def place(source: Path, target: Path) -> None:
    """Make `target` the content of `source` without copying it where the file system can; it outlives `source`.

    An unchanged target (the same file, or equal size and time of change) stays untouched.
    """
    if _is_same(source, target):
        return
    with whole_file(target) as temporary:
        if _clone(source, temporary):
            return
        try:
            temporary.hardlink_to(source)
        except OSError:
            shutil.copyfile(source, temporary)
            _copy_time(source, temporary)


def _is_same(source: Path, target: Path) -> bool:
    try:
        a, b = source.stat(), target.stat()
    except OSError:
        return False
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino) or (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


def _clone(source: Path, target: Path) -> bool:
    try:
        with source.open("rb") as a, target.open("wb") as b:
            fcntl.ioctl(b.fileno(), _FICLONE, a.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        return False
    _copy_time(source, target)
    return True


def _copy_time(source: Path, target: Path) -> None:
    status = source.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
