"""Reads a model folder and trusts nothing in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from colibri_build.artifacts import FileRecord, ModelFolder, QuantizedModel, QuantizedTensor, Tokenizer
from colibri_build.errors import PackError
from colibri_build.files import sha256_of
from colibri_build.layout import TOKENIZER_FILE, FileLayout, PartLayout, file_layouts
from colibri_build.pack.chat_file import CHAT_FILE, read_chat_bytes
from colibri_build.pack.codec import Bytes, check_padding, check_tensor, decode_part, gaps
from colibri_build.pack.config_file import CONFIG_FILE, ConfigFile

_DAMAGED = "the folder is damaged; copy it again, or make it again with colibri-quantize"


def read_model_folder(path: Path, *, verify: bool = True) -> ModelFolder:
    """Check a model folder and describe it. Raises PackError.

    Always: config.json, the set of files and their sizes. With `verify`, every byte: hashes, codes, scales, padding.
    """
    if not path.is_dir():
        raise PackError(f"{path}: no such folder", hint="name a folder that colibri-quantize made")
    data = _read(path / CONFIG_FILE)
    read = ConfigFile(data, str(path / CONFIG_FILE))
    digest = hashlib.sha256(data).hexdigest()
    folder = ModelFolder(path, read.config, read.group_size, read.formats, read.files, read.provenance, digest)
    layouts = {layout.name: layout for layout in file_layouts(read.config, read.formats, read.group_size)}
    _check_names(folder, set(layouts))
    for name, record in sorted(read.files.items()):
        _check_size(path / name, record, layouts.get(name))
    if verify:
        for name, record in sorted(read.files.items()):
            _check_hash(path / name, record)
        for layout in layouts.values():
            _check_contents(folder, layout)
    return _with_chat(folder)


def _with_chat(folder: ModelFolder) -> ModelFolder:
    path = folder.path / CHAT_FILE
    return replace(folder, chat=read_chat_bytes(_read(path), str(path))) if CHAT_FILE in folder.files else folder


def load_quantized(folder: ModelFolder, read_tokenizer: Callable[[bytes, int], Tokenizer]) -> QuantizedModel:
    """The model in a checked folder; tensors are decoded when they are asked for.

    `read_tokenizer` gets the bytes of tokenizer.json and the vocabulary size. Raises PackError.
    """
    tokenizer = read_tokenizer(_read(folder.path / TOKENIZER_FILE), folder.config.vocab_size)
    tensors = PackedTensors(folder)
    return QuantizedModel(
        folder.config, folder.group_size, folder.formats, tensors, tokenizer, folder.provenance, folder.chat
    )


class PackedTensors(Mapping[str, QuantizedTensor]):
    """Our name -> tensor, decoded from the memory-mapped file.

    Vectors and the embedding, of which each token needs a row, are kept; other matrices are decoded at each access.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder
        self._parts: dict[str, tuple[FileLayout, PartLayout]] = {}
        self._kept: dict[str, QuantizedTensor] = {}
        for layout in file_layouts(folder.config, folder.formats, folder.group_size):
            self._parts.update({part.spec.name: (layout, part) for part in layout.parts})

    def __getitem__(self, name: str) -> QuantizedTensor:
        if name in self._kept:
            return self._kept[name]
        layout, part = self._parts[name]
        tensor = decode_part(_map(self._folder.path / layout.name, layout.bytes), part, self._folder.group_size)
        if part.spec.rows == 1 or name == "embedding":
            self._kept[name] = tensor
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise PackError(f"{path}: missing", hint="name a folder that colibri-quantize made") from error
    except OSError as error:
        raise PackError(f"{path}: cannot be read ({error.strerror})") from error


def _map(path: Path, size: int) -> Bytes:
    try:
        mapped: Bytes = np.memmap(path, np.uint8, "r", 0, (size,))
    except (OSError, ValueError) as error:
        raise PackError(f"{path}: cannot be read ({error})", hint=_DAMAGED) from error
    return mapped


def _check_names(folder: ModelFolder, binary: set[str]) -> None:
    """config.json names exactly the files that the configuration needs, and exactly those are there."""
    needed = binary | {TOKENIZER_FILE} | ({CHAT_FILE} & set(folder.files))
    for found, where in (
        (set(folder.files), f'{folder.path / CONFIG_FILE}: "files"'),
        ({entry.name for entry in folder.path.iterdir()} - {CONFIG_FILE}, str(folder.path)),
    ):
        missing, extra = sorted(needed - found), sorted(found - needed)
        if missing:
            raise PackError(
                f"{where}: {len(missing)} of {len(needed)} files are missing; the first: {missing[0]}", hint=_DAMAGED
            )
        if extra:
            raise PackError(
                f"{where}: {len(extra)} files that the model does not have; the first: {extra[0]}",
                hint="a model folder holds nothing else; move it elsewhere",
            )


def _check_size(path: Path, record: FileRecord, layout: FileLayout | None) -> None:
    if layout is not None and record.bytes != layout.bytes:
        raise PackError(
            f"{path}: config.json says {record.bytes} bytes, its shapes and formats need {layout.bytes}", hint=_DAMAGED
        )
    if path.is_symlink() or not path.is_file():
        raise PackError(f"{path}: no regular file", hint=_DAMAGED)
    found = path.stat().st_size
    if found != record.bytes:
        raise PackError(f"{path}: {found} bytes, config.json says {record.bytes}", hint=_DAMAGED)


def _check_hash(path: Path, record: FileRecord) -> None:
    try:
        digest = sha256_of(path)
    except OSError as error:
        raise PackError(f"{path}: cannot be read ({error.strerror})") from error
    if digest != record.sha256:
        raise PackError(f"{path}: SHA-256 is {digest}, config.json says {record.sha256}", hint=_DAMAGED)


def _check_contents(folder: ModelFolder, layout: FileLayout) -> None:
    """Finite values, codes in range, zeros where nothing is."""
    path = folder.path / layout.name
    data = _map(path, layout.bytes)
    try:
        for part in layout.parts:
            check_tensor(decode_part(data, part, folder.group_size), part, folder.group_size)
            check_padding(data, part, folder.group_size)
    except PackError as error:
        raise PackError(f"{path}: {error.what}", hint=_DAMAGED) from error
    for start, end in gaps(layout.parts, layout.bytes):
        if data[start:end].any():
            raise PackError(f"{path}: padding bytes {start}..{end - 1} are not zero", hint=_DAMAGED)
