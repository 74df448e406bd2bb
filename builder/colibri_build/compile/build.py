"""Compiles and links a C tree, only as far as something changed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from colibri_build.artifacts import Firmware, SourceTree
from colibri_build.compile.processes import Processes, Step
from colibri_build.compile.stamp import Stamp, key_of
from colibri_build.errors import CompileError
from colibri_build.target.board import Board
from colibri_build.target.toolchain import Toolchain

BINARY = "colibri_inference"
OBJECTS_FOLDER = "objects"
_STAMP, _LOCK = f"{OBJECTS_FOLDER}/stamp.json", f"{OBJECTS_FOLDER}/.lock"
_UNFINISHED = f"{OBJECTS_FOLDER}/{BINARY}.unfinished"

OnCommand = Callable[[Sequence[str]], None]
OnProgress = Callable[[str, int, int], None]


def compile_tree(
    tree: SourceTree,
    board: Board,
    toolchain: Toolchain,
    jobs: int | None = None,
    on_command: OnCommand | None = None,
    on_progress: OnProgress | None = None,
) -> Firmware:
    """Compile `tree` for `board` into `tree.path / "colibri_inference"`, `jobs` processes at a time (None: one for each core).

    Every path in a command is relative to the tree, so the folder's name reaches no output. Objects lie in `objects/`,
    named after their sources, each with its .su file of stack use where the compiler writes one. `on_command` gets each
    command before it runs, `on_progress` (what, done, total). An ELF appears whole or not at all. Raises CompileError.
    """
    if toolchain.arch != board.arch:
        raise CompileError(
            f"{toolchain.name} compiles for {toolchain.arch}, {board.name} is {board.arch}", hint="--toolchain auto"
        )
    with _locked(tree.path):
        return _Build(tree, toolchain, on_command, on_progress).run(jobs or os.cpu_count() or 1)


def objects_of(tree_path: Path) -> tuple[Path, ...]:
    """The object files of a compiled tree, by name."""
    return tuple(sorted((tree_path / OBJECTS_FOLDER).rglob("*.o")))


def built_objects(tree_path: Path) -> tuple[Path, ...]:
    """What lies in the folder of a compiled tree's objects: those, their stack use, and the stamp."""
    return tuple(sorted(path for path in (tree_path / OBJECTS_FOLDER).rglob("*") if path.is_file()))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second build out of the folder."""
    (folder / OBJECTS_FOLDER).mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CompileError(
                f"another build is running in {folder}", hint="wait for it, or choose another -o"
            ) from error
        yield


class _Build:
    """One run of compile_tree."""

    def __init__(
        self, tree: SourceTree, toolchain: Toolchain, on_command: OnCommand | None, on_progress: OnProgress | None
    ) -> None:
        self._tree = tree
        self._toolchain = toolchain
        self._on_command = on_command
        self._on_progress = on_progress
        self._stamp = Stamp(tree.path / _STAMP)
        self._processes = Processes(tree.path, toolchain.install)
        self._done = self._total = 0

    def run(self, jobs: int) -> Firmware:
        compiles = [self._compile_step(source) for source in self._tree.sources]
        keys = {
            step.makes: self._compile_key(step, source)
            for step, source in zip(compiles, self._tree.sources, strict=True)
        }
        link = self._link_step([step.makes for step in compiles])
        link_key = self._link_key(link, list(keys.values()))
        outdated = [
            step for step in compiles if not self._stamp.is_current(self._tree.path, step.makes, keys[step.makes])
        ]
        if outdated or not self._stamp.is_current(self._tree.path, BINARY, link_key):
            self._total = len(outdated) + 1
            self._remove_strangers(set(keys))
            try:
                self._processes.run_all(
                    outdated, jobs, self._started, lambda step: self._compiled(step, keys[step.makes])
                )
                self._processes.run_all([link], 1, self._started, lambda step: self._linked(link_key))
            finally:
                (self._tree.path / _UNFINISHED).unlink(missing_ok=True)
                self._stamp.save([*keys, BINARY])
        commands = tuple(shlex.join(step.command) for step in (*compiles, link))
        return Firmware(self._tree.path / BINARY, commands)

    def _compile_step(self, source: str) -> Step:
        made = str(Path(OBJECTS_FOLDER, source).with_suffix(".o"))
        flags = (*self._toolchain.cflags, *self._tree.compile_flags)
        return Step(f"compile {source}", (*self._toolchain.cc, *flags, "-c", source, "-o", made), made)

    def _link_step(self, objects: list[str]) -> Step:
        flags = (*self._toolchain.ldflags, *self._tree.link_flags)
        return Step("link", (*self._toolchain.cc, "-o", _UNFINISHED, *objects, *flags), BINARY)

    def _compile_key(self, step: Step, source: str) -> str:
        """Digest of what an object depends on: command, compiler, source, all headers; weights for assembly."""
        suffixes = (".h", ".bin") if source.endswith(".S") else (".h",)
        inputs = [source, *(name for name in self._tree.files if name.endswith(suffixes))]
        return key_of([self._toolchain.version, *step.command], self._hashes(inputs))

    def _link_key(self, step: Step, object_keys: list[str]) -> str:
        """Digest of what the binary depends on: command, linker, objects, linker scripts."""
        scripts = self._hashes(name for name in self._tree.files if name.endswith(".ld"))
        return key_of([self._toolchain.version, *step.command], object_keys, scripts)

    def _hashes(self, names: Iterable[str]) -> list[str]:
        return [f"{name} {self._stamp.hash_of(self._tree.path, name)}" for name in names]

    def _remove_strangers(self, objects: set[str]) -> None:
        """Objects of sources that are gone: the inspection reads every object in the folder."""
        for path in objects_of(self._tree.path):
            if path.relative_to(self._tree.path).as_posix() not in objects:
                path.unlink()
                path.with_suffix(".su").unlink(missing_ok=True)
        for name in objects:
            (self._tree.path / name).parent.mkdir(parents=True, exist_ok=True)

    def _started(self, step: Step) -> None:
        if self._on_command:
            self._on_command(step.command)

    def _compiled(self, step: Step, key: str) -> None:
        self._stamp.record(self._tree.path, step.makes, key)
        self._count(step.what)

    def _linked(self, key: str) -> None:
        unfinished, elf = self._tree.path / _UNFINISHED, self._tree.path / BINARY
        with unfinished.open("rb") as stream:
            os.fsync(stream.fileno())
        unfinished.replace(elf)
        self._stamp.record(self._tree.path, BINARY, key)
        self._count("link")

    def _count(self, what: str) -> None:
        self._done += 1
        if self._on_progress:
            self._on_progress(what, self._done, self._total)
