"""Tensors of a GGUF file under published names: rows of its tensors in another order, dequantized piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from colibri_build.artifacts import F32, GroupCodes
from colibri_build.checkpoint.gguf_codes import BITS_OF, GROUP_SIZE, group_codes
from colibri_build.checkpoint.gguf_finite import bad_values
from colibri_build.checkpoint.gguf_header import GgufEntry
from colibri_build.checkpoint.stored import Index, StoredTensor, count_bad

Rows = NDArray[np.int64]
_PIECE = 1 << 20  # values that are dequantized at a time


@cache
def _has_values(kind: GGMLQuantizationType) -> bool:
    """Whether the library can dequantize a type, and it is one for weights."""
    try:
        dequantize(np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8), kind)
    except NotImplementedError:
        return False
    return True


@dataclass(frozen=True)
class GgufTensor(StoredTensor):
    """Rows of `entries`, which follow each other and are all of one width.

    Row i is theirs number `first` + i, or `first` + `order[i]`. A vector is one row, or with `by_element` a column of
    rows of one value.
    """

    entries: tuple[GgufEntry, ...]
    first: int = 0
    order: Rows | None = None
    by_element: bool = False

    @property
    def supported(self) -> bool:
        """Whether the library knows how to dequantize all of it, and rows of one value have a place of their own."""
        blocks = {GGML_QUANT_SIZES[entry.kind][0] for entry in self.entries}
        return all(_has_values(entry.kind) for entry in self.entries) and not (self.by_element and blocks != {1})

    @property
    def packing(self) -> tuple[int, int] | None:
        """Of Q8_0, Q4_0 and Q4_1, if all of the tensor is of that type."""
        kinds = {entry.kind for entry in self.entries}
        bits = BITS_OF.get(next(iter(kinds))) if len(kinds) == 1 and len(self.shape) > 1 else None
        return (bits, GROUP_SIZE) if bits else None

    def load(self, index: Index = ()) -> F32:
        """Dequantized by the library, a million values at a time."""
        rows = self._rows(index)
        values = np.empty((rows.size, self._cols), np.float32)
        for start, piece in self._pieces(rows.ravel()):
            values[start : start + len(piece)] = piece
        return values.reshape(rows.shape if self.by_element else (*rows.shape, self._cols))

    def codes(self, index: Index = ()) -> GroupCodes | None:
        """None for a type without codes that w4 or w8 can hold, or where these here are not among them."""
        rows = self._rows(index)
        if not self.packing or rows.ndim != 1:
            return None
        return group_codes(self._stored(rows), self.entries[0].kind)

    def non_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """Values that are NaN or infinite, by index of this tensor."""
        rows, step = self._rows(()).ravel(), max(1, _PIECE // self._cols)
        starts = range(0, rows.size, step)
        return count_bad(((start * self._cols, self._bad(rows[start : start + step])) for start in starts), self.shape)

    @property
    def _cols(self) -> int:
        return 1 if self.by_element else self.shape[-1]

    def _rows(self, index: Index) -> Rows:
        """Which rows of the entries `index` picks."""
        outer = self.shape if self.by_element else self.shape[:-1]
        rows = np.arange(math.prod(outer)) if self.order is None else self.order
        return np.asarray((rows + self.first).reshape(outer)[index])

    def _pieces(self, rows: Rows) -> Iterator[tuple[int, F32]]:
        """(number of the first row, values) of one piece after the other."""
        step = max(1, _PIECE // self._cols)
        for start in range(0, rows.size, step):
            piece = rows[start : start + step]
            values = np.empty((piece.size, self._cols), np.float32)
            for kind, here, stored in self._by_kind(piece):
                values[here] = dequantize(stored, kind).reshape(-1, self._cols)
            yield start, values

    def _bad(self, rows: Rows) -> NDArray[np.bool_]:
        """Which values of some rows are not finite."""
        bad = np.empty((rows.size, self._cols), np.bool_)
        for kind, here, stored in self._by_kind(rows):
            bad[here] = bad_values(stored, kind).reshape(-1, self._cols)
        return bad

    def _by_kind(self, rows: Rows) -> Iterator[tuple[GGMLQuantizationType, NDArray[np.bool_], NDArray[np.uint8]]]:
        """Of each entry: its type, which of `rows` are its own, and those as they lie in the file."""
        start = 0
        for entry in self.entries:
            n_rows = entry.rows * (entry.cols // self._cols)
            here = (rows >= start) & (rows < start + n_rows)
            if here.any():
                yield entry.kind, here, self._mapped(entry)[rows[here] - start]
            start += n_rows

    def _mapped(self, entry: GgufEntry) -> NDArray[np.uint8]:
        """[rows, bytes of a row] of an entry."""
        per_row = entry.cols // self._cols
        return np.memmap(entry.file, np.uint8, "r", entry.offset, (entry.rows * per_row, entry.row_bytes // per_row))

    def _stored(self, rows: Rows) -> NDArray[np.uint8]:
        """[rows, bytes of a row] of all entries, which are of one type."""
        parts = list(self._by_kind(rows))
        stored = np.empty((rows.size, parts[0][2].shape[1]), np.uint8)
        for _, here, part in parts:
            stored[here] = part
        return stored
