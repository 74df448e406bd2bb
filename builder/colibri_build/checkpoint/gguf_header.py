"""The header of a GGUF file: its metadata, and where its tensors are. All of it is held against the size of the file."""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from colibri_build.errors import CheckpointError

DOWNLOAD_AGAIN = "download the file again"
MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32
_ALIGNMENT_KEY = "general.alignment"
_MOST_DIMENSIONS = 4
# Value types by id. Of the others, 7 is a byte 0 or 1, 8 a string, 9 an array of one type.
_NUMBERS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 10: "<u8", 11: "<i8", 12: "<f8"}
_BOOL, _STRING, _ARRAY, _F32 = 7, 8, 9, 6
_LEAST_PAIR, _LEAST_TENSOR = 8 + 4 + 1, 8 + 4 + 8 + 4 + 8  # bytes


@dataclass(frozen=True)
class GgufEntry:
    """One tensor of a file. `shape` has the innermost dimension last, `offset` counts bytes from the file's start."""

    file: Path
    name: str
    kind: GGMLQuantizationType
    shape: tuple[int, ...]
    offset: int

    @property
    def cols(self) -> int:
        """Values of a row."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        """Rows of all the outer dimensions together."""
        return math.prod(self.shape[:-1])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row; rows follow each other without padding."""
        block, size = GGML_QUANT_SIZES[self.kind]
        return self.cols // block * size


@dataclass(frozen=True)
class GgufHeader:
    """Metadata by key (numbers, texts, flags, lists of them), and the tensors in file order."""

    file: Path
    metadata: dict[str, Any]
    entries: tuple[GgufEntry, ...]


def read_header(path: Path) -> GgufHeader:
    """Raises CheckpointError for what is no GGUF file, or one that is damaged or truncated."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            _check_start(path, start)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Cursor(path, data).header()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error


def _check_start(path: Path, start: bytes) -> None:
    if start == b"version ":
        raise CheckpointError(f"{path}: a Git LFS pointer, not the file itself", hint="run `git lfs pull`")
    if len(start) < 8 or start[:4] != MAGIC:
        raise CheckpointError(f"{path}: no GGUF file: it starts with {start[:4]!r}", hint=DOWNLOAD_AGAIN)
    (version,) = struct.unpack("<I", start[4:])
    if version and version & 0xFFFF == 0:
        raise CheckpointError(f"{path}: a big-endian GGUF file", hint="take the little-endian file of the same model")
    if version not in _VERSIONS:
        raise CheckpointError(
            f"{path}: GGUF version {version} is not supported", hint="supported: 2 and 3; convert the model again"
        )


class _Cursor:
    """Reads forwards; whatever would lie behind the end of the file is refused before it is touched."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self._size = path, data, len(data)
        self._at = 8  # magic and version

    def header(self) -> GgufHeader:
        n_tensors, n_pairs = self._count(_LEAST_TENSOR, "tensors"), self._count(_LEAST_PAIR, "metadata keys")
        metadata: dict[str, Any] = {}
        for _ in range(n_pairs):
            key = self._text()
            if key in metadata:
                raise self._damaged(f'metadata key "{short(key)}" appears twice')
            metadata[key] = self._value(self._integer("<I"))
        found = [self._tensor() for _ in range(n_tensors)]
        alignment = self._alignment(metadata)
        start = -(-self._at // alignment) * alignment
        return GgufHeader(self._path, metadata, self._placed(found, start, alignment))

    def _alignment(self, metadata: dict[str, Any]) -> int:
        value = metadata.get(_ALIGNMENT_KEY, _DEFAULT_ALIGNMENT)
        if type(value) is not int or not 0 < value <= 1 << 20 or value & (value - 1):
            raise self._damaged(f'"{_ALIGNMENT_KEY}" is {short(str(value))}, not a power of two up to 1048576')
        return value

    def _tensor(self) -> GgufEntry:
        """One entry; its offset still counts from the start of the tensor data."""
        name = self._text()
        n_dimensions = self._integer("<I")
        if not 1 <= n_dimensions <= _MOST_DIMENSIONS:
            raise self._damaged(f"tensor {short(name)} has {n_dimensions} dimensions")
        shape = tuple(self._integer("<Q") for _ in range(n_dimensions))[::-1]
        kind, offset = self._integer("<I"), self._integer("<Q")
        if kind not in GGMLQuantizationType.__members__.values():
            raise CheckpointError(
                f"{self._path}: tensor {short(name)} has type id {kind}, which is not known",
                hint="use a file of another quantization",
            )
        entry = GgufEntry(self._path, name, GGMLQuantizationType(kind), shape, offset)
        block = GGML_QUANT_SIZES[entry.kind][0]
        if min(shape) < 1 or math.prod(shape) > 1 << 62 or shape[-1] % block:
            raise self._damaged(f"tensor {short(name)} of type {entry.kind.name} has shape {list(shape)}")
        return entry

    def _placed(self, found: list[GgufEntry], start: int, alignment: int) -> tuple[GgufEntry, ...]:
        """With offsets from the file's start, which must be aligned, apart, and within the file."""
        placed = [GgufEntry(e.file, e.name, e.kind, e.shape, start + e.offset) for e in found]
        if len({entry.name for entry in placed}) < len(placed):
            names = sorted(entry.name for entry in placed)
            twice = next(a for a, b in pairwise(names) if a == b)
            raise self._damaged(f"tensor {short(twice)} appears twice")
        end = start
        for entry in sorted(placed, key=lambda entry: entry.offset):
            if (entry.offset - start) % alignment or entry.offset < end:
                raise self._damaged(f"tensor {short(entry.name)} starts at byte {entry.offset}, inside of another one")
            end = entry.offset + entry.rows * entry.row_bytes
            if end > self._size:
                raise self._truncated(f"tensor {short(entry.name)} ends at byte {end}")
        return tuple(placed)

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._numbers(kind, 1)[0]
        if kind == _STRING:
            return self._text()
        if kind == _BOOL:
            return self._flags(1)[0]
        if kind != _ARRAY:
            raise self._damaged(f"metadata value of type {kind} at byte {self._at}")
        inner, count = self._integer("<I"), self._integer("<Q")
        if inner in _NUMBERS:
            return self._numbers(inner, count)
        if inner == _BOOL:
            return self._flags(count)
        if inner != _STRING:
            raise self._damaged(f"metadata array of type {inner} at byte {self._at}")
        self._check_left(8 * count)
        return [self._text() for _ in range(count)]

    def _numbers(self, kind: int, count: int) -> list[Any]:
        """A float32 as the shortest decimal that it was rounded from, so that 1e-5 is 1e-5."""
        dtype = np.dtype(_NUMBERS[kind])
        values = np.frombuffer(self._bytes(count * dtype.itemsize), dtype)
        return [float(str(value)) for value in values] if kind == _F32 else values.tolist()

    def _flags(self, count: int) -> list[bool]:
        values = self._bytes(count)
        if values.strip(b"\0\1"):
            raise self._damaged(f"a flag before byte {self._at} is neither 0 nor 1")
        return [value == 1 for value in values]

    def _count(self, least: int, what: str) -> int:
        count = self._integer("<Q")
        if count * least > self._size - self._at:
            raise self._truncated(f"its header promises {count} {what}")
        return count

    def _text(self) -> str:
        start = self._at + 8
        raw = self._bytes(self._integer("<Q"))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self._damaged(f"the text at byte {start} is no UTF-8") from None

    def _integer(self, layout: str) -> int:
        return int(struct.unpack(layout, self._bytes(struct.calcsize(layout)))[0])

    def _bytes(self, count: int) -> bytes:
        self._check_left(count)
        start, self._at = self._at, self._at + count
        return self._data[start : self._at]

    def _check_left(self, count: int) -> None:
        if count > self._size - self._at:
            raise self._truncated(f"{count} bytes are wanted at byte {self._at}")

    def _truncated(self, why: str) -> CheckpointError:
        return CheckpointError(f"{self._path}: truncated: {self._size} bytes, but {why}", hint=DOWNLOAD_AGAIN)

    def _damaged(self, why: str) -> CheckpointError:
        return CheckpointError(f"{self._path}: damaged: {why}", hint=DOWNLOAD_AGAIN)


def short(text: str) -> str:
    """Text of a file as a message may hold it: printable, 60 characters at most."""
    printable = ascii(text)[1:-1]
    return printable if len(printable) <= 60 else printable[:57] + "..."
