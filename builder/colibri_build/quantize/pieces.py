"""One tensor, quantized in runs of rows by all cores: rows do not depend on each other, so the result is the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, Format, QuantizedTensor, TensorSpec
from colibri_build.quantize.report import PieceError, piece_error
from colibri_build.quantize.rtn import dequantize_tensor, quantize_tensor

_WEIGHTS = 1 << 20  # of a piece: bounds the temporaries of a thread to some tens of MB


class PieceWorkers:
    """The threads that quantize; NumPy leaves the interpreter to the others while it computes."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self._executor = executor

    def quantize(
        self, spec: TensorSpec, values: F32, fmt: Format, group_size: int, shrink: F32 | None
    ) -> tuple[QuantizedTensor, list[PieceError]]:
        """`values` in the shape of `spec` -> the tensor, and its error by piece. Raises as `quantize_tensor` does."""
        matrix = values.reshape(spec.rows, spec.cols)

        def piece(rows: slice, part: TensorSpec) -> tuple[QuantizedTensor, PieceError]:
            clip = None if shrink is None else shrink[rows]
            tensor = quantize_tensor(part, matrix[rows], fmt, group_size, clip)
            stored = dequantize_tensor(tensor, group_size).reshape(matrix[rows].shape)
            return tensor, piece_error(matrix[rows], stored)

        pieces = list(self._executor.map(piece, *_pieces_of(spec)))
        tensors = [tensor for tensor, _ in pieces]
        codes = np.concatenate([tensor.codes for tensor in tensors])
        scales = _joined([tensor.scales for tensor in tensors])
        zeros = _joined([tensor.zeros for tensor in tensors])
        return QuantizedTensor(spec, fmt, codes, scales, zeros), [error for _, error in pieces]

    def compare(self, tensor: QuantizedTensor, values: F32, group_size: int) -> list[PieceError]:
        """How far a tensor that is stored already is from `values`, in the shape of its spec, by piece."""
        spec = tensor.spec
        matrix = values.reshape(spec.rows, spec.cols)

        def piece(rows: slice, part: TensorSpec) -> PieceError:
            scales = None if tensor.scales is None else tensor.scales[rows]
            zeros = None if tensor.zeros is None else tensor.zeros[rows]
            part_tensor = QuantizedTensor(part, tensor.format, tensor.codes[rows], scales, zeros)
            stored = dequantize_tensor(part_tensor, group_size)
            return piece_error(matrix[rows], stored.reshape(matrix[rows].shape))

        return list(self._executor.map(piece, *_pieces_of(spec)))


@contextmanager
def piece_workers() -> Iterator[PieceWorkers]:
    """As many threads as there are cores."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as executor:
        yield PieceWorkers(executor)


def _pieces_of(spec: TensorSpec) -> tuple[list[slice], list[TensorSpec]]:
    """Which rows each piece has, and what it would be as a tensor of its own."""
    step = max(1, _WEIGHTS // spec.cols)
    rows = [slice(start, min(start + step, spec.rows)) for start in range(0, spec.rows, step)]
    return rows, [TensorSpec(spec.name, spec.kind, run.stop - run.start, spec.cols) for run in rows]


def _joined(arrays: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if present else None
