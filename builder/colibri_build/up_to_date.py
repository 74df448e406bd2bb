"""Whether a build would only make again what is there: nothing that it read, ran or wrote has changed since.

Files are compared by their stamps: inode, size, time of modification and time of change. Whatever alters a file's bytes
moves the last of them, which no program can set, so equal stamps mean equal bytes wherever the file system's clock ticks
between two writes: before a stamp is taken of what was read or written, a few ticks pass, and inputs are stamped before
they are read and looked at again afterwards. A file system with coarser times (FAT, some network mounts) may take a file
for unchanged that was replaced by one of the same size within such a tick.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from colibri_build.files import write_whole
from colibri_build.requests import BuildRequest
from colibri_build.resources import data_dir, package_dir
from colibri_build.target.commands import environment, run_quietly

STAMP_FILE = ".colibri-build.json"  # in the build folder
_TICKS_S = 0.02  # file systems of a disk stamp changes with 1 to 10 ms
_DATA = ("boards", "runtime_c", "templates", "toolchains")
_LIBRARIES = ("site-packages", "dist-packages")  # whose time moves when one of Python's, as ziglang, is installed
_CHOOSING = ("CC", "CROSS_COMPILE")  # which compiler `auto` takes, beside what compilers get to see
# What a driver starts and links beside what its own file says.
_PARTS = (("prog", ("cc1", "as", "ld", "collect2")), ("file", ("libc.a", "libm.a", "libgcc.a", "crt1.o")))

Stamp = list[int] | None  # None: no such file


def unchanged(request: BuildRequest, out: Path) -> dict[str, Any] | None:
    """The record that `Watch.finish` left in `out`, if a build of this request would make the same; else None."""
    try:
        kept = json.loads((out / STAMP_FILE).read_bytes())
        same = kept["request"] == _asked(request) and kept["environment"] == _surroundings()
        same = same and all(shutil.which(name) == path for name, path in kept["programs"].items())
        if not same or any(_stamp(Path(path)) != stamp for path, stamp in kept["stamps"].items()):
            return None
        if any(_stamp(out / path) != stamp for path, stamp in kept["outputs"].items()):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return {**kept["record"], "files": len(kept["stamps"]) + len(kept["outputs"])}


class Watch:
    """Stamps of a build's inputs from before they are read; in the end, those of all that it used and made."""

    def __init__(self, request: BuildRequest, cc: tuple[str, ...]) -> None:
        """`cc` is the compiler's command."""
        self._request = request
        self._programs = {name: shutil.which(name) for name in sorted(_programs(cc))}
        paths = (*map(str, _inputs(request)), *_parts(cc), *filter(None, self._programs.values()))
        self._before = {path: _stamp(Path(path)) for path in paths}
        time.sleep(_TICKS_S)  # so that a later change has a later stamp

    def finish(self, out: Path, outputs: Iterable[Path], record: Mapping[str, Any]) -> None:
        """Note a finished build, with `record` (JSON values) for those who find it; not if an input changed meanwhile.

        `outputs` lie below `out`.
        """
        time.sleep(_TICKS_S)
        stamps = {path: _stamp(Path(path)) for path in self._before}
        if any(_without_change(stamp) != _without_change(self._before[path]) for path, stamp in stamps.items()):
            return
        kept = {
            "request": _asked(self._request),
            "environment": _surroundings(),
            "programs": self._programs,
            "stamps": stamps,
            "outputs": {path.relative_to(out).as_posix(): _stamp(path) for path in sorted(outputs)},
            "record": dict(record),
        }
        write_whole(out / STAMP_FILE, (json.dumps(kept, sort_keys=True) + "\n").encode())


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _without_change(stamp: Stamp) -> Stamp:
    """Without the time of change, which a new link to the file moves: the tree of a build links the weights."""
    return stamp and stamp[:3]


def _asked(request: BuildRequest) -> dict[str, Any]:
    """The request as JSON gives it back. Relative paths of it mean what they mean in this folder."""
    asked: dict[str, Any] = json.loads(json.dumps({**asdict(request), "folder": str(Path.cwd())}, default=str))
    return {name: value for name, value in asked.items() if name not in ("pristine", "will_run")}


def _surroundings() -> dict[str, str]:
    own = {name: os.environ[name] for name in _CHOOSING if name in os.environ}
    return {**environment(), **own, "python": f"{sys.executable} {sys.version}"}


def _inputs(request: BuildRequest) -> Iterator[Path]:
    """Every file that a build may read before it has a tree of its own, and every folder that it lists."""
    yield from _below(package_dir())
    for name in _DATA:
        yield from _below(data_dir(name))
    yield from _board_files(request.board)
    yield from _model_files(request.model)
    yield from (Path(folder) for folder in sys.path if Path(folder).name in _LIBRARIES)
    if request.quantize.calibration is not None:
        yield request.quantize.calibration.absolute()


def _below(folder: Path) -> Iterator[Path]:
    yield folder
    for path in folder.rglob("*"):
        if "__pycache__" not in path.parts:
            yield path


def _board_files(board: str) -> Iterator[Path]:
    """The user's own profile, and those of his that it extends."""
    seen: set[Path] = set()
    path = Path(board).absolute()
    while path.name.endswith(".toml") and path not in seen:
        seen.add(path)
        yield path
        with suppress(OSError, ValueError):
            path = path.parent / str(tomllib.loads(path.read_text(encoding="utf-8")).get("extends", ""))


def _model_files(model: Path) -> Iterator[Path]:
    """A folder and what is in it; beside a file, as a GGUF model's, all shards."""
    if model.is_dir():
        yield from (model.absolute(), *(path for path in model.absolute().iterdir() if path.is_file()))
    else:
        yield from model.absolute().parent.glob(f"*{model.suffix}")


def _programs(cc: tuple[str, ...]) -> set[str]:
    """Names that are looked up in $PATH to choose and run compilers."""
    named = {cc[0]}
    for path in data_dir("toolchains").glob("*.toml"):
        for tools in tomllib.loads(path.read_text(encoding="utf-8"))["arch"].values():
            named |= {command[0] for command in (*tools["cc"], *tools["objdump"])}
    return {name for name in named if "{" not in name}


def _parts(cc: tuple[str, ...]) -> Iterator[str]:
    """The compiler, and the files that make it up as far as it names them; links, which may come to lead elsewhere."""
    found = [shutil.which(cc[0]) or cc[0]]
    for what, names in _PARTS:
        found += [run_quietly((*cc, f"-print-{what}-name={name}")).first_line for name in names]
    for name in found:
        path = shutil.which(name) or name
        if Path(path).is_file():
            yield path
