"""A matrix that a checkpoint holds as integer codes with a scale and a zero point for each group of inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, GroupCodes
from colibri_build.checkpoint.stored import Index, RawTensor, StoredTensor, count_bad

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

_GROUP_SIZES = (128, 64, 32)  # that w4 and w8 know, the best first
_PIECE = 1 << 20  # values that are unpacked at a time
_LARGEST_SCALE = float(np.finfo(np.float32).max) / 256  # times any difference of 8-bit codes, it is finite
_W8_LARGEST = 127


class CodedRows(NamedTuple):
    """Some rows: value = (code - zero) * scale. codes [rows, cols] uint8; zeros int16 and scales [rows, n_groups]."""

    codes: NDArray[np.uint8]
    zeros: NDArray[np.int16]
    scales: F32


@dataclass(frozen=True)
class PackedMatrix(StoredTensor):
    """Several stored tensors that are one matrix [outputs, inputs]; the formats differ in `_coded`."""

    bits: int  # 4 or 8
    group_size: int  # inputs that share a scale; of a row with one scale, all of them
    scales: RawTensor
    order: I64 | None  # [inputs]: the group of each (act-order); None: runs of `group_size`

    @abstractmethod
    def _coded(self, rows: I64) -> CodedRows:
        """These rows, unpacked."""

    @abstractmethod
    def _scales(self, rows: I64) -> F32:
        """[rows, n_groups]"""

    @property
    def packing(self) -> tuple[int, int]:
        """The largest of our group sizes that divides the checkpoint's; 0 where none does."""
        if self._other_groups():
            return self.bits, 0
        if self._one_group:
            return self.bits, _GROUP_SIZES[0]
        return self.bits, next(size for size in _GROUP_SIZES if self.group_size % size == 0)

    def load(self, index: Index = ()) -> F32:
        """Multiplied out, a million values at a time; every product is exact in float32 where scales are fp16."""
        picked = self._picked(index)
        values = np.empty((picked.size, self.shape[1]), np.float32)
        for here, rows in _pieces(picked, self.shape[1]):
            coded = self._coded(rows)
            values[here] = coded.codes
            values[here] -= self._by_input(coded.zeros.astype(np.float32))
            values[here] *= self._by_input(coded.scales)
        return values.reshape(*picked.shape, self.shape[1])

    def non_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """Values whose scale is NaN, infinite or beyond float32 when it is multiplied with a code."""
        return count_bad(self._bad_pieces(), self.shape)

    def _bad_pieces(self) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """(flat index, bad values) of the pieces that have any: only there are they spread over the inputs."""
        for place, rows in _pieces(np.arange(self.shape[0]), self.shape[1]):
            bad = ~(np.abs(self._scales(rows)) <= _LARGEST_SCALE)
            if bad.any():
                yield place.start * self.shape[1], self._by_input(bad)

    def codes(self, index: Index = ()) -> GroupCodes | None:
        """None for act-order, for groups of other sizes, and where a code, zero point or scale has no place in ours."""
        picked = self._picked(index)
        if picked.ndim != 1 or self._other_groups():
            return None
        pieces = []
        for _, rows in _pieces(picked, self.shape[1]):
            coded = self._coded(rows)
            if self._misfit(coded):
                return None
            pieces.append((self._fitted(coded), self._in_our_groups(coded.scales), self._in_our_groups(coded.zeros)))
        codes, scales, zeros = (np.concatenate(part) for part in zip(*pieces, strict=True))
        own_zeros = zeros.astype(np.uint8) if self.bits == 4 else None
        return GroupCodes(self.packing[1], codes, scales.astype(np.float16), own_zeros)

    def misfit(self, index: Index = ()) -> str:
        """Why `codes` gives None, in a few words."""
        reason = self._other_groups()
        for _, rows in _pieces(self._picked(index), self.shape[1]):
            reason = reason or self._misfit(self._coded(rows))
        return reason or super().misfit(index)

    def _other_groups(self) -> str | None:
        if self.order is not None:
            return "groups are not runs of inputs (act-order)"
        if not self._one_group and all(self.group_size % size for size in _GROUP_SIZES):
            return f"groups of {self.group_size} are no multiple of 32"
        return None

    def _misfit(self, coded: CodedRows) -> str | None:
        with np.errstate(over="ignore"):
            halves = coded.scales.astype(np.float16).astype(np.float32)
        wrong = halves != coded.scales
        if wrong.any():
            return f"scales that fp16 cannot hold, as {float(coded.scales[wrong][0]):.6g}"
        if self.bits == 8:
            signed = self._signed(coded)
            beyond = np.abs(signed) > _W8_LARGEST
            return f"code {signed[beyond][0]}" if beyond.any() else None
        return None

    def _signed(self, coded: CodedRows) -> NDArray[np.int16]:
        return np.asarray(coded.codes - self._by_input(coded.zeros), np.int16)

    def _fitted(self, coded: CodedRows) -> NDArray[Any]:
        return coded.codes if self.bits == 4 else self._signed(coded).astype(np.int8)

    def _in_our_groups(self, values: NDArray[Any]) -> NDArray[Any]:
        """[rows, n_groups] of the checkpoint -> [rows, ceil(cols / our group size)]."""
        firsts = np.arange(0, self.shape[1], self.packing[1])
        return np.ascontiguousarray(values[:, firsts // self.group_size])

    @property
    def _one_group(self) -> bool:
        return self.group_size >= self.shape[1]

    def _by_input(self, values: NDArray[Any]) -> NDArray[Any]:
        """[rows, n_groups] -> [rows, inputs]"""
        if self.order is None:
            return np.repeat(values, self.group_size, axis=1)[:, : self.shape[1]]
        return np.take(values, self.order, axis=1)

    def _picked(self, index: Index) -> I64:
        return np.asarray(np.arange(self.shape[0])[index])


def _pieces(rows: I64, cols: int) -> Iterator[tuple[slice, I64]]:
    """(place among `rows`, row numbers) of one piece after the other."""
    flat, step = rows.reshape(-1), max(1, _PIECE // cols)
    for start in range(0, flat.size, step):
        yield slice(start, start + step), flat[start : start + step]


def words_of(tensor: RawTensor) -> U32:
    """An I32 tensor, memory-mapped, its words as unsigned numbers."""
    return np.memmap(tensor.file, "<u4", "r", tensor.offset, tensor.shape)


def integers_of(tensor: RawTensor) -> I64:
    """An I32 or I64 tensor, read whole."""
    kind = {"I32": "<i4", "I64": "<i8"}[tensor.dtype]
    return np.array(np.memmap(tensor.file, kind, "r", tensor.offset, tensor.shape), np.int64)


def fields(words: U32, shifts: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """`bits` bits of each word from `shifts` on, which broadcast against the words."""
    return np.asarray((words >> shifts.astype(np.uint32)) & np.uint32((1 << bits) - 1), np.uint8)
