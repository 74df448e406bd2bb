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
from collections.abc import Iterable, Iterator
from pathlib import Path

from colibri_build.artifacts import FileRecord, ModelFolder, QuantizedModel
from colibri_build.errors import PackError
from colibri_build.layout import TOKENIZER_FILE, FileLayout, file_layouts
from colibri_build.pack.codec import encode_part
from colibri_build.pack.config_file import CONFIG_FILE, FORMAT_NAME, ConfigFile, config_bytes
from colibri_build.tensor_specs import tensor_specs

_OUR_FILE = re.compile(r"config\.json|routing\.bin|dense\.bin|tokenizer\.json|expert_\d+_\d+\.bin")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_model_folder(model: QuantizedModel, out: Path) -> ModelFolder:
    """Write `model` to the folder `out`; an older model folder there is replaced once the new one is complete.

    Raises PackError: `out` is something else, the disk is full, a tensor breaks the format. Whatever happens,
    KeyboardInterrupt included, `out` is the old folder or the new one, and nothing else is left behind.
    """
    out = out.resolve()
    require_replaceable(out)
    _refuse_wrong_tensors(model)
    layouts = tuple(file_layouts(model.config, model.formats, model.group_size))
    needed = sum(layout.bytes for layout in layouts) + len(model.tokenizer.json_bytes)
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(4)}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _require_space(out, needed)
        temporary.mkdir()
        files = _write_files(model, layouts, temporary)
        data = config_bytes(model.config, model.group_size, model.formats, files, model.provenance)
        ConfigFile(data, str(out / CONFIG_FILE))
        _write(temporary / CONFIG_FILE, [data])
        with _opened(temporary) as descriptor:
            os.fsync(descriptor)
        _replace(temporary, out)
    except OSError as error:
        raise _write_error(out, needed, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    digest = hashlib.sha256(data).hexdigest()
    return ModelFolder(out, model.config, model.group_size, model.formats, files, model.provenance, digest)


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


def _refuse_wrong_tensors(model: QuantizedModel) -> None:
    wanted = {spec.name for spec in tensor_specs(model.config)}
    found = set(model.tensors)
    if wanted != found:
        first = sorted(wanted ^ found)[0]
        raise PackError(
            f"tensor {first}: {'missing' if first in wanted else 'not part of the model'}; "
            f"{len(found)} tensors, the model has {len(wanted)}",
            hint="quantize the checkpoint again",
        )


def _write_files(model: QuantizedModel, layouts: Iterable[FileLayout], folder: Path) -> dict[str, FileRecord]:
    records = [_write(folder / layout.name, _stream(model, layout)) for layout in layouts]
    records.append(_write(folder / TOKENIZER_FILE, [model.tokenizer.json_bytes]))
    return {record.name: record for record in records}


def _stream(model: QuantizedModel, layout: FileLayout) -> Iterator[bytes]:
    """A file's bytes, one tensor at a time."""
    at = 0
    for part in layout.parts:
        codes, scales = encode_part(model.tensors[part.spec.name], part, model.group_size)
        yield bytes(part.offset - at)
        yield codes
        at = part.offset + len(codes)
        if scales:
            yield bytes(part.scale_offset - at)
            yield scales
            at = part.scale_offset + len(scales)
    yield bytes(layout.bytes - at)


def _write(path: Path, blocks: Iterable[bytes]) -> FileRecord:
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as file:
        for block in blocks:
            file.write(block)
            digest.update(block)
            size += len(block)
        file.flush()
        os.fsync(file.fileno())
    return FileRecord(path.name, size, digest.hexdigest())


def _require_space(out: Path, needed: int) -> None:
    free = shutil.disk_usage(out.parent).free
    if free < needed:
        raise _full(out, needed, free)


def _full(out: Path, needed: int, free: int) -> PackError:
    return PackError(
        f"{out}: the disk is full: the model folder needs {needed} bytes, {free} are free",
        hint="free some space, or choose a folder on another disk",
    )


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
