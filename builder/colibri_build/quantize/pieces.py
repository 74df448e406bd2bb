"""One tensor, quantized in runs of rows by all cores: rows do not depend on each other, so the result is the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, Format, QuantizedTensor, TensorSpec
from colibri_build.quantize.report import PieceError, piece_error, summed
from colibri_build.quantize.rtn import dequantize_tensor, quantize_tensor
from colibri_build.reference.numbers import group_count

_WEIGHTS = 1 << 18  # of a piece: its dozen temporaries stay near 10 MB a thread
_CODE_TYPES = {Format.F32: np.float32, Format.F16: np.float16, Format.W4: np.uint8, Format.W8: np.int8}

T = TypeVar("T")
R = TypeVar("R")
Rows = Callable[[slice], F32]  # a run of rows -> their values [rows, cols]; threads call it at the same time


class PieceWorkers:
    """The threads that quantize; NumPy leaves the interpreter to the others while it computes."""

    def __init__(self, executor: ThreadPoolExecutor, n_threads: int) -> None:
        self._executor, self.n_threads = executor, n_threads

    def map(self, step: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """As Python's `map`, by all threads."""
        return self._executor.map(step, items)

    def quantize(
        self, spec: TensorSpec, rows_of: Rows, fmt: Format, group_size: int, shrink: F32 | None
    ) -> tuple[QuantizedTensor, PieceError]:
        """The values that `rows_of` gives -> the tensor, and its error. Raises as `quantize_tensor` does.

        No more float32 values are held than the threads' pieces have.
        """
        whole = _empty(spec, fmt, group_size)

        def piece(rows: slice, part: TensorSpec) -> PieceError:
            values = rows_of(rows)
            clip = None if shrink is None else shrink[rows]
            tensor = quantize_tensor(part, values, fmt, group_size, clip)
            whole.codes[rows] = tensor.codes
            for target, source in ((whole.scales, tensor.scales), (whole.zeros, tensor.zeros)):
                if target is not None and source is not None:
                    target[rows] = source
            return piece_error(values, dequantize_tensor(tensor, group_size).reshape(values.shape))

        return whole, summed(self._executor.map(piece, *_pieces_of(spec)))

    def compare(self, tensor: QuantizedTensor, rows_of: Rows, group_size: int) -> PieceError:
        """How far a tensor that is stored already is from the values that `rows_of` gives."""

        def piece(rows: slice, part: TensorSpec) -> PieceError:
            scales = None if tensor.scales is None else tensor.scales[rows]
            zeros = None if tensor.zeros is None else tensor.zeros[rows]
            part_tensor = QuantizedTensor(part, tensor.format, tensor.codes[rows], scales, zeros)
            values = rows_of(rows)
            return piece_error(values, dequantize_tensor(part_tensor, group_size).reshape(values.shape))

        return summed(self._executor.map(piece, *_pieces_of(tensor.spec)))


@contextmanager
def piece_workers() -> Iterator[PieceWorkers]:
    """As many threads as there are cores."""
    n_threads = os.cpu_count() or 1
    with ThreadPoolExecutor(n_threads) as executor:
        yield PieceWorkers(executor, n_threads)


def _pieces_of(spec: TensorSpec) -> tuple[list[slice], list[TensorSpec]]:
    """Which rows each piece has, and what it would be as a tensor of its own."""
    step = max(1, _WEIGHTS // spec.cols)
    rows = [slice(start, min(start + step, spec.rows)) for start in range(0, spec.rows, step)]
    return rows, [TensorSpec(spec.name, spec.kind, run.stop - run.start, spec.cols) for run in rows]


def _empty(spec: TensorSpec, fmt: Format, group_size: int) -> QuantizedTensor:
    """A tensor whose arrays are still to be filled."""

    def array(cols: int, dtype: Any) -> NDArray[Any]:
        return np.empty((spec.rows, cols), dtype)

    groups = group_count(spec.cols, group_size)
    scales = array(groups, np.float16) if fmt in (Format.W4, Format.W8) else None
    zeros = array(groups, np.uint8) if fmt is Format.W4 else None
    return QuantizedTensor(spec, fmt, array(spec.cols, _CODE_TYPES[fmt]), scales, zeros)
