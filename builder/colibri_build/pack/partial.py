"""A model folder that grows beside its place, and that an interrupted run leaves for the next one to go on with."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri_build.errors import ColibriError, PackError
from colibri_build.layout import FileLayout, PartLayout, file_layouts
from colibri_build.pack.config_file import CONFIG_FILE
from colibri_build.pack.journal import Journal
from colibri_build.pack.writer import FolderContent, FolderWriter, require_replaceable, require_space, writing

_FILES, _OLD, _JOURNAL = "files", "files.old", "journal"
_READ = 1 << 20  # bytes that are hashed at a time
_BLOCK = 512  # bytes that st_blocks counts in


@dataclass(frozen=True)
class Resumption:
    """Which run may go on with what another left.

    `identity`: everything that the bytes depend on, by a name for people; runs that differ in any of it share nothing.
    `restart`: share nothing in any case. `on_wait` is called with the partial folder before another run is waited for;
    None: that one is there is an error.
    """

    identity: Mapping[str, str]
    restart: bool = False
    on_wait: Callable[[Path], None] | None = None


class PartialFolder:
    """`.NAME.partial` beside the model folder NAME: `files`, which become the folder, and the journal.

    `files` holds no config.json before it is complete, so nothing takes it for a model folder. `why_anew` says why what
    was there is not gone on with, in words that follow its name; "" where it is, or nothing was there.
    """

    def __init__(self, path: Path, writer: FolderWriter, records: dict[str, Any], why_anew: str) -> None:
        self.path, self.records, self.why_anew = path, records, why_anew  # records: of what is finished, by name
        self._writer = writer
        self._journal = Journal(path / _JOURNAL)

    @property
    def writer(self) -> FolderWriter:
        """Takes the tensors that `records` does not have; `finish` puts the folder in its place."""
        return self._writer

    @property
    def n_tensors(self) -> int:
        """How many tensors are there."""
        return sum(part.spec.name in self.records for layout in self._writer.layouts for part in layout.parts)

    def is_kept_after(self, error: BaseException) -> bool:
        """Whether the folder stays for the next run: not for an error that it would only find again.

        Nor once `files` is in its place: nothing is left to be done.
        """
        is_new = not isinstance(error, ColibriError) or isinstance(error.__cause__, OSError)
        return is_new and bool(self.records) and (self.path / _FILES).is_dir()

    def put(self, name: str, tensor: Any, record: Mapping[str, Any]) -> None:
        """Write a tensor (None: there is none to write), then note that it is there, with `record`."""
        digest = "" if tensor is None else self._writer.put(name, tensor)
        with writing(self._writer.out, self._writer.needed):
            self._journal.append({"name": name, "sha256": digest, "record": record})
        self.records[name] = record


@contextlib.contextmanager
def partial_folder(content: FolderContent, out: Path, resumption: Resumption) -> Iterator[PartialFolder]:
    """Write the model folder `out`, or go on with what an interrupted run of the same identity finished of it.

    Whatever happens, power cuts included, `out` is the old folder or, after `finish`, the new one (between the two
    renames of the exchange it is neither, and the next run mends that). An interruption or a full disk leaves
    `.NAME.partial`, other errors and success do not. Raises PackError as `new_model_folder` does, and if another
    run is writing the same folder.
    """
    out = out.resolve()
    require_replaceable(out)
    path = partial_path(out)
    writer = FolderWriter(content, out, path / _FILES)
    with _held(path, out, resumption, writer.needed):
        with writing(out, writer.needed):
            records, why = _take_up(path, writer, content, resumption)
            if resumption.on_wait is None or not out.exists():  # else another run has just made it
                require_space(out, writer.needed, _allocated(path))
        partial = PartialFolder(path, writer, records, why)
        kept = False
        try:
            yield partial
        except BaseException as error:
            kept = partial.is_kept_after(error)
            raise
        finally:
            writer.close()
            if not kept:
                shutil.rmtree(path, ignore_errors=True)


def partial_path(out: Path) -> Path:
    """Where a model folder grows."""
    return out.with_name(f".{out.name}.partial")


@contextlib.contextmanager
def _held(path: Path, out: Path, resumption: Resumption, needed: int) -> Iterator[None]:
    """Make the partial folder and keep other runs out of it."""
    with writing(out, needed):
        descriptor = _locked(path)
        if descriptor is None and resumption.on_wait:
            resumption.on_wait(path)
            while descriptor is None:
                descriptor = _locked(path, fcntl.LOCK_EX)
    if descriptor is None:
        raise PackError(f"another run is writing {out}", hint="wait for it, or choose another folder")
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> int | None:
    """A descriptor that holds the folder's lock; None: another run has it, or had it and removed the folder."""
    path.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # another run has just finished
        return _locked(path, how)
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        return descriptor  # a file system without locks still serves one run
    with contextlib.suppress(OSError):
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    os.close(descriptor)
    return None if how & fcntl.LOCK_NB == 0 else _locked(path, how)


def _take_up(
    path: Path, writer: FolderWriter, content: FolderContent, resumption: Resumption
) -> tuple[dict[str, Any], str]:
    """The records of what is there and whole, and why the rest is not; makes `files` and the journal ready."""
    if (path / _OLD).exists() and not writer.out.exists():
        (path / _OLD).rename(writer.out)  # the last run ended within the exchange
    journal = Journal(path / _JOURNAL)
    why = _difference(path, journal, resumption)
    if journal.entries and not why and (path / _FILES).is_dir():  # else the last run ended behind the exchange
        entries = {str(entry["name"]): entry for entry in journal.entries[1:]}
        (path / _FILES / CONFIG_FILE).unlink(missing_ok=True)  # until all is whole again
        whole = _whole_tensors(path / _FILES, content, entries)
        writer.take_up(whole)
        return {name: entry["record"] for name, entry in entries.items() if not entry["sha256"] or name in whole}, ""
    for entry in path.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    (path / _FILES).mkdir()
    Journal(path / _JOURNAL).append({"identity": dict(resumption.identity)})
    return {}, why


def _difference(path: Path, journal: Journal, resumption: Resumption) -> str:
    """Why this run cannot go on with what is in a partial folder; "" where it can, or nothing is there."""
    if not (path / _JOURNAL).exists():
        return ""
    if resumption.restart:
        return "is discarded"
    if not journal.entries:
        return "has a damaged journal"
    theirs = journal.entries[0].get("identity", {})
    names = sorted(set(theirs) | set(resumption.identity))
    other = [name for name in names if theirs.get(name) != resumption.identity.get(name)]
    return f"was made otherwise: {', '.join(other)}" if other else ""


def _whole_tensors(files: Path, content: FolderContent, entries: Mapping[str, Any]) -> set[str]:
    """The tensors whose bytes are those that the journal says; hashed by all cores."""
    layouts = tuple(file_layouts(content.config, content.formats, content.group_size))
    places = [(layout, part) for layout in layouts for part in layout.parts if part.spec.name in entries]

    def is_whole(place: tuple[FileLayout, PartLayout]) -> bool:
        layout, part = place
        wanted = str(entries[part.spec.name]["sha256"])
        return wanted == digest_of_part(files / layout.name, part, layout.bytes) != ""

    with ThreadPoolExecutor(os.cpu_count() or 1) as executor:
        whole = executor.map(is_whole, places)
    return {part.spec.name for (_, part), ok in zip(places, whole, strict=True) if ok}


def digest_of_part(path: Path, part: PartLayout, file_bytes: int) -> str:
    """SHA-256 of a tensor's codes and scales as they lie in a file; "" for a file that is missing or of another size."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != file_bytes:
                return ""
            for offset, size in ((part.offset, part.code_bytes), (part.scale_offset, part.scale_bytes)):
                file.seek(offset)
                while size:
                    block = file.read(min(size, _READ))
                    if not block:
                        return ""
                    digest.update(block)
                    size -= len(block)
    except OSError:
        return ""
    return digest.hexdigest()


def _allocated(path: Path) -> int:
    """Bytes that the disk gave already."""
    return sum(file.stat().st_blocks * _BLOCK for file in path.rglob("*") if file.is_file())
