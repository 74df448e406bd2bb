"""One tensor in a checkpoint's files: plain numbers, or codes of the checkpoint's own quantization."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, GroupCodes

Index = tuple[int | slice | NDArray[np.int64], ...]  # picks experts and rows, never inputs

_PIECE = 1 << 20  # values that are looked at, at a time, by each thread
PLAIN_DTYPES = ("F32", "F16", "BF16")
# How the values are mapped. bfloat16 is the upper half of a float32, and NumPy has no type for it.
MAPPED: dict[str, str] = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_EXPONENT = {"F32": 0x7F800000, "F16": 0x7C00, "BF16": 0x7F80}  # all ones: NaN or infinity


def bad_numbers(flat: NDArray[Any], dtype: str) -> NDArray[np.bool_]:
    """Which of some plain numbers, as they are mapped, are NaN or infinite."""
    bits = flat.view(f"<u{flat.dtype.itemsize}")
    return np.asarray((bits & _EXPONENT[dtype]) == _EXPONENT[dtype])


def count_bad(
    pieces: Iterable[tuple[int, NDArray[np.bool_]]], shape: tuple[int, ...]
) -> tuple[int, tuple[int, ...]] | None:
    """What `non_finite` says: from (flat index of its first value, which values are bad) of each piece, in order."""
    count, first = 0, -1
    for start, bad in pieces:
        if first < 0 and bad.any():
            first = start + int(bad.argmax())
        count += int(np.count_nonzero(bad))
    return (count, tuple(int(i) for i in np.unravel_index(first, shape))) if count else None


@dataclass(frozen=True)
class StoredTensor(ABC):
    """A tensor under its published name, whatever it looks like in `file`. Nothing is kept in memory."""

    file: Path
    name: str
    dtype: str  # as a message calls it
    shape: tuple[int, ...]  # of the values, [outputs, inputs] for a matrix

    @property
    def supported(self) -> bool:
        """Whether the values can be read at all."""
        return True

    @property
    def by_rows(self) -> bool:
        """Whether `load` of some rows reads little else."""
        return True

    @property
    def packing(self) -> tuple[int, int] | None:
        """(bits, group size) of codes that w4 or w8 can hold as they are; None: there are none.

        Group size 0: codes in groups that are not made of ours, which `codes` cannot give.
        """
        return None

    @abstractmethod
    def load(self, index: Index = ()) -> F32:
        """The values, or the part of them that `index` picks, as float32."""

    @abstractmethod
    def non_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """(count of NaN and infinities, index of the first), or None. Never holds more than a piece in memory."""

    def codes(self, index: Index = ()) -> GroupCodes | None:
        """The codes that `load` multiplies out, where `packing` promises some; None: w4 and w8 cannot hold these."""
        return None

    def misfit(self, index: Index = ()) -> str:
        """Why `codes` gives None although `packing` promises some, in a few words."""
        return "codes, zero points or scales that w4 and w8 have no place for"


@dataclass(frozen=True)
class RawTensor(StoredTensor):
    """Numbers in a file; `offset` counts bytes from its start."""

    offset: int

    @property
    def supported(self) -> bool:
        """Whether it is one of the types that weights have."""
        return self.dtype in PLAIN_DTYPES

    def mapped(self) -> NDArray[Any]:
        """The stored values, memory-mapped; bfloat16 as uint16 bits. Needs a supported dtype."""
        return np.memmap(self.file, MAPPED[self.dtype], "r", self.offset, self.shape)

    def load(self, index: Index = ()) -> F32:
        """As float32, which is exact for every supported dtype."""
        values = self.mapped()[index]
        if self.dtype == "BF16":
            bits = np.array(values, np.uint32)
            bits <<= 16  # in place: a second array of this size would double the peak
            return bits.view(np.float32)
        return np.array(values, np.float32)

    def non_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """Reads the file in pieces."""
        flat = self.mapped().reshape(-1)
        starts = range(0, flat.size, _PIECE)
        return count_bad(
            ((start, bad_numbers(flat[start : start + _PIECE], self.dtype)) for start in starts), self.shape
        )
