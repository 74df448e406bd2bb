"""Tensors of a GGUF file under published names: rows of its tensors in another order, dequantized piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from colibri_build.artifacts import F32, GroupCodes
from colibri_build.checkpoint.gguf_codes import BITS_OF, GROUP_SIZE, SCALES_OF, group_codes
from colibri_build.checkpoint.gguf_header import GgufEntry
from colibri_build.checkpoint.stored import Index, StoredTensor

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
        """Values that are NaN or infinite. Of a type with codes, the scales tell."""
        count, first = 0, -1
        for start, piece in self._bad_values():
            if first < 0 and piece.any():
                first = start + int(piece.argmax())
            count += int(np.count_nonzero(piece))
        return (count, tuple(int(i) for i in np.unravel_index(first, self.shape))) if count else None

    @property
    def _cols(self) -> int:
        return 1 if self.by_element else self.shape[-1]

    def _rows(self, index: Index) -> Rows:
        """Which rows of the entries `index` picks."""
        outer = self.shape if self.by_element else self.shape[:-1]
        rows = np.arange(math.prod(outer)) if self.order is None else self.order
        return np.asarray((rows + self.first).reshape(outer)[index])

    def _stored(self, rows: Rows) -> NDArray[np.uint8]:
        """[rows, row_bytes] as they lie in the file. Needs entries of one type."""
        width = self.entries[0].row_bytes // (self.entries[0].cols // self._cols)
        stored = np.empty((rows.size, width), np.uint8)
        start = 0
        for entry in self.entries:
            n_rows = entry.rows * (entry.cols // self._cols)
            mapped = np.memmap(entry.file, np.uint8, "r", entry.offset, (n_rows, width))
            here = (rows >= start) & (rows < start + n_rows)
            stored[here] = mapped[rows[here] - start]
            start += n_rows
        return stored

    def _pieces(self, rows: Rows) -> Iterator[tuple[int, F32]]:
        """(number of the first row, values) of one piece after the other."""
        step = max(1, _PIECE // self._cols)
        for start in range(0, rows.size, step):
            yield start, self._dequantized(rows[start : start + step])

    def _dequantized(self, rows: Rows) -> F32:
        kinds = {entry.kind for entry in self.entries}
        if len(kinds) == 1:
            return dequantize(self._stored(rows), next(iter(kinds))).reshape(rows.size, self._cols)
        values, start = np.empty((rows.size, self._cols), np.float32), 0
        for entry in self.entries:
            n_rows = entry.rows * (entry.cols // self._cols)
            here = (rows >= start) & (rows < start + n_rows)
            part = replace(self, entries=(entry,))
            values[here] = dequantize(part._stored(rows[here] - start), entry.kind).reshape(-1, self._cols)
            start += n_rows
        return values

    def _bad_values(self) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """(flat index of the first value, which are bad) of one piece after the other."""
        rows = self._rows(()).ravel()
        n_scales = SCALES_OF.get(self.entries[0].kind) if self.packing else None
        if n_scales is None:
            for start, piece in self._pieces(rows):
                yield start * self._cols, ~np.isfinite(piece).ravel()
            return
        step = max(1, _PIECE // self._cols)
        size = GGML_QUANT_SIZES[self.entries[0].kind][1]
        for start in range(0, rows.size, step):
            blocks = self._stored(rows[start : start + step]).reshape(-1, size)
            scales = np.ascontiguousarray(blocks[:, : 2 * n_scales]).view("<f2")
            yield start * self._cols, np.repeat(~np.isfinite(scales).all(axis=1), GROUP_SIZE)
