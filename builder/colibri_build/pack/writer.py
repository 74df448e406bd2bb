"""Writes a model folder: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from colibri_build.artifacts import (
    ChatTemplate,
    FileRecord,
    Format,
    Kind,
    ModelConfig,
    ModelFolder,
    QuantizedModel,
    QuantizedTensor,
    Tokenizer,
)
from colibri_build.errors import PackError
from colibri_build.files import sha256_of
from colibri_build.layout import TOKENIZER_FILE, FileLayout, file_layouts
from colibri_build.pack.chat_file import CHAT_FILE, chat_bytes
from colibri_build.pack.codec import encode_part, gaps
from colibri_build.pack.config_file import CONFIG_FILE, FORMAT_NAME, ConfigFile, config_bytes
from colibri_build.tensor_specs import tensor_specs

_OUR_FILE = re.compile(r"config\.json|routing\.bin|dense\.bin|tokenizer\.json|chat\.json|expert_\d+_\d+\.bin")
_QUANTIZE_AGAIN = "quantize the checkpoint again"
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_model_folder(model: QuantizedModel, out: Path) -> ModelFolder:
    """Write `model` to the folder `out`. As `new_model_folder`, which see, for tensors that are all there."""
    _refuse_wrong_names(model.config, set(model.tensors))
    content = FolderContent(model.config, model.group_size, model.formats, model.tokenizer, model.chat)
    with new_model_folder(content, out) as folder:
        for layout in folder.layouts:
            for part in layout.parts:
                folder.put(part.spec.name, model.tensors[part.spec.name])
        return folder.finish(model.provenance)


@contextlib.contextmanager
def new_model_folder(content: FolderContent, out: Path) -> Iterator[FolderWriter]:
    """Write the folder `out`, tensor by tensor; an older model folder there is replaced once the new one is complete.

    Raises PackError: `out` is something else, the disk is full, a tensor breaks the format. Whatever happens,
    KeyboardInterrupt included, `out` is the old folder or, after `finish`, the new one, and nothing else is left behind.
    """
    out = out.resolve()
    require_replaceable(out)
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(4)}.tmp")
    writer = FolderWriter(content, out, temporary)
    try:
        with writing(out, writer.needed):
            out.parent.mkdir(parents=True, exist_ok=True)
            require_space(out, writer.needed)
            temporary.mkdir()
        yield writer
    finally:
        writer.close()
        shutil.rmtree(temporary, ignore_errors=True)


@dataclass(frozen=True)
class FolderContent:
    """What is known of a model before its tensors."""

    config: ModelConfig
    group_size: int
    formats: Mapping[Kind, Format]
    tokenizer: Tokenizer
    chat: ChatTemplate | None = None


class FolderWriter:
    """A folder that is being written under a temporary name. Tensors may come in any order; only open files are kept.

    A file is hashed, flushed and closed as soon as its last tensor is there.
    """

    def __init__(self, content: FolderContent, out: Path, temporary: Path) -> None:
        self._content, self.out, self._temporary = content, out, temporary
        self.layouts = tuple(file_layouts(content.config, content.formats, content.group_size))
        self.needed = sum(layout.bytes for layout in self.layouts) + len(content.tokenizer.json_bytes)
        self._places = {part.spec.name: (layout, part) for layout in self.layouts for part in layout.parts}
        self._missing = {layout.name: len(layout.parts) for layout in self.layouts}
        self._put: set[str] = set()
        self._open: dict[str, BinaryIO] = {}
        self._records: dict[str, FileRecord] = {}

    def put(self, name: str, tensor: QuantizedTensor) -> str:
        """Write one tensor at its place; returns the SHA-256 of its codes and scales.

        Raises PackError for one that the model does not have, or that came before.
        """
        if name not in self._places or name in self._put:
            raise PackError(f"tensor {name}: not part of the model, or written twice", hint=_QUANTIZE_AGAIN)
        layout, part = self._places[name]
        codes, scales = encode_part(tensor, part, self._content.group_size)
        with writing(self.out, self.needed):
            file = self._file(layout)
            file.seek(part.offset)
            file.write(codes)
            if scales:
                file.seek(part.scale_offset)
                file.write(scales)
            file.flush()  # to the system: the journal may say now that it is there
        self._count(name)
        digest = hashlib.sha256(codes)
        digest.update(scales)
        return digest.hexdigest()

    def take_up(self, names: Container[str]) -> None:
        """Count tensors that an interrupted run wrote; the caller has looked at their bytes."""
        for layout in self.layouts:
            mine = [part.spec.name for part in layout.parts if part.spec.name in names]
            if not mine:
                continue
            with writing(self.out, self.needed):
                file = self._open[layout.name] = (self._temporary / layout.name).open("r+b")
                for start, end in gaps(layout.parts, layout.bytes):
                    file.seek(start)
                    file.write(bytes(end - start))
            for name in mine:
                self._count(name)
            self.close()  # of a file that lacks tensors; there may be more of them than a process may have open

    def _count(self, name: str) -> None:
        layout, _ = self._places[name]
        self._put.add(name)
        self._missing[layout.name] -= 1
        if not self._missing[layout.name]:
            with writing(self.out, self.needed):
                self._complete(layout)

    def finish(self, provenance: Mapping[str, Any]) -> ModelFolder:
        """Put the complete folder in its place. Raises PackError where a tensor is missing."""
        content = self._content
        _refuse_wrong_names(content.config, self._put)
        with writing(self.out, self.needed):
            files, data = self._finish_files(provenance)
            _replace(self._temporary, self.out)
        digest = hashlib.sha256(data).hexdigest()
        return ModelFolder(
            self.out,
            content.config,
            content.group_size,
            content.formats,
            files,
            provenance,
            digest,
            content.chat,
        )

    def _finish_files(self, provenance: Mapping[str, Any]) -> tuple[dict[str, FileRecord], bytes]:
        """Write what is no tensor, and flush the folder; returns the records of all files, and config.json."""
        content = self._content
        files = {layout.name: self._records[layout.name] for layout in self.layouts}
        files[TOKENIZER_FILE] = _write(self._temporary / TOKENIZER_FILE, content.tokenizer.json_bytes)
        if content.chat is not None:
            files[CHAT_FILE] = _write(self._temporary / CHAT_FILE, chat_bytes(content.chat))
        data = config_bytes(content.config, content.group_size, content.formats, files, provenance)
        ConfigFile(data, str(self.out / CONFIG_FILE))
        _write(self._temporary / CONFIG_FILE, data)
        with _opened(self._temporary) as descriptor:
            os.fsync(descriptor)
        return files, data

    def close(self) -> None:
        """Close what is open; of a file that is complete nothing is, so an error here is of one to be thrown away."""
        for file in self._open.values():
            with contextlib.suppress(OSError):
                file.close()
        self._open.clear()

    def _file(self, layout: FileLayout) -> BinaryIO:
        """The open file, which is zeros of its final size at first."""
        if layout.name not in self._open:
            begun = any(part.spec.name in self._put for part in layout.parts)
            self._open[layout.name] = file = (self._temporary / layout.name).open("r+b" if begun else "wb")
            file.truncate(layout.bytes)
        return self._open[layout.name]

    def _complete(self, layout: FileLayout) -> None:
        file = self._open[layout.name]
        file.flush()
        os.fsync(file.fileno())
        self._open.pop(layout.name).close()
        self._records[layout.name] = FileRecord(layout.name, layout.bytes, sha256_of(self._temporary / layout.name))


def require_replaceable(out: Path) -> None:
    """Raise PackError unless `out` is absent, empty, or a model folder without anything of the user's in it."""
    if not out.exists():
        return
    with _locked(out.parent):
        _refuse_foreign(out)


def _refuse_foreign(out: Path) -> None:
    if not out.exists():
        return
    hint = "choose another folder, or remove it first"
    if not out.is_dir():
        raise PackError(f"{out}: exists and is no folder", hint=hint)
    names = sorted(entry.name for entry in out.iterdir())
    if not names:
        return
    config = None
    with contextlib.suppress(OSError, ValueError):
        config = json.loads((out / CONFIG_FILE).read_bytes())
    if not isinstance(config, dict) or config.get("format") != FORMAT_NAME:
        raise PackError(f"{out}: exists and is no model folder ({len(names)} entries)", hint=hint)
    foreign = [name for name in names if not _OUR_FILE.fullmatch(name)]
    if foreign:
        raise PackError(f"{out}: a model folder with foreign files in it ({foreign[0]})", hint=hint)


def _refuse_wrong_names(config: ModelConfig, found: set[str]) -> None:
    wanted = {spec.name for spec in tensor_specs(config)}
    if wanted != found:
        first = sorted(wanted ^ found)[0]
        raise PackError(
            f"tensor {first}: {'missing' if first in wanted else 'not part of the model'}; "
            f"{len(found)} tensors, the model has {len(wanted)}",
            hint=_QUANTIZE_AGAIN,
        )


def _write(path: Path, data: bytes) -> FileRecord:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return FileRecord(path.name, len(data), hashlib.sha256(data).hexdigest())


def require_space(out: Path, needed: int, there: int = 0) -> None:
    """Raise PackError unless the disk has room for `needed` bytes, of which `there` are written already."""
    free = shutil.disk_usage(out.parent).free
    if free < needed - there:
        raise _full(out, needed, free)


def _full(out: Path, needed: int, free: int) -> PackError:
    return PackError(
        f"{out}: the disk is full: the model folder needs {needed} bytes, {free} are free",
        hint="free some space, or choose a folder on another disk",
    )


@contextlib.contextmanager
def writing(out: Path, needed: int) -> Iterator[None]:
    """Raise PackError where the system refuses to write. What the caller does between its tensors is its own."""
    try:
        yield
    except OSError as error:
        raise _write_error(out, needed, error) from error


def _write_error(out: Path, needed: int, error: OSError) -> PackError:
    if error.errno in _DISK_FULL:
        return _full(out, needed, shutil.disk_usage(out.parent).free)
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return PackError(f"{out}: a part of this path is a file", hint="choose another folder")
    return PackError(f"{out}: cannot be written ({error.strerror})", hint="check the folder's permissions and limits")


def _replace(temporary: Path, out: Path) -> None:
    """Put `temporary` in the place of `out`. An older folder steps aside first, and comes back if that fails."""
    old = temporary.with_suffix(".old")
    with _locked(out.parent) as parent:
        _refuse_foreign(out)  # again: hours may have passed since the first look
        try:
            if out.exists() and any(out.iterdir()):
                out.rename(old)
            temporary.rename(out)
            os.fsync(parent)
        finally:
            if old.exists() and not out.exists():
                old.rename(out)
            shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """A descriptor of a folder whose model folders nobody else replaces: two builds may share one cache."""
    with _opened(folder) as descriptor:
        with contextlib.suppress(OSError):  # a file system without locks still serves one build
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor of a folder, to lock it and to flush its entries."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
