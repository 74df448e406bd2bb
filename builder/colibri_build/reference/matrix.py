"""Matrix-vector products of the reference, in every storage format."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, Format, QuantizedModel, QuantizedTensor
from colibri_build.reference.numbers import dot, pad_to_groups, quantize_activation

# Codes of a matrix are held as float64 while it is smaller than this; larger ones are widened group by group.
_CACHED_CODES = 1 << 22
_MOST_BYTES = 1 << 30  # of matrices that are kept


class ReferenceMatrix:
    """One weight matrix [rows, cols]. Integer sums are done in float64, where every one of them is exact (< 2^31)."""

    def __init__(self, tensor: QuantizedTensor, group_size: int) -> None:
        self._tensor = tensor
        self._group_size = group_size
        self._groups: list[NDArray[np.float64]] | None = None

    @property
    def bytes(self) -> int:
        """Memory that the matrix takes once it was used: its codes, and its widened codes where they are kept."""
        codes = self._tensor.codes
        is_widened = self._tensor.scales is not None and codes.size <= _CACHED_CODES
        return codes.nbytes + (8 * codes.size if is_widened else 0)

    def multiply(self, x: F32, activation_bits: int) -> F32:
        """W x for x [cols]; quantizes x first where W is quantized."""
        if self._tensor.format in (Format.F32, Format.F16):
            return dot(self._tensor.codes.astype(np.float32), x[None, :])
        assert self._tensor.scales is not None
        activation = quantize_activation(x, self._group_size, activation_bits)
        scales = self._tensor.scales.astype(np.float32)
        y = np.zeros(self._tensor.spec.rows, np.float32)
        for g, codes in enumerate(activation.codes.astype(np.float64)):
            d = (self._weights_of_group(g) @ codes).astype(np.float32)
            y = y + d * (scales[:, g] * activation.scales[g])
        return y

    def _weights_of_group(self, g: int) -> NDArray[np.float64]:
        """Codes less zero points of group g, [rows, group_size], zero past the last column."""
        if self._tensor.codes.size > _CACHED_CODES:
            return self._widen(g)
        if self._groups is None:
            n_groups = pad_to_groups(self._tensor.codes[:1], self._group_size).shape[1]
            self._groups = [self._widen(i) for i in range(n_groups)]
        return self._groups[g]

    def _widen(self, g: int) -> NDArray[np.float64]:
        start = g * self._group_size
        codes = self._tensor.codes[:, start : start + self._group_size].astype(np.float64)
        if self._tensor.zeros is not None:
            codes -= self._tensor.zeros[:, g : g + 1]
        return np.pad(codes, ((0, 0), (0, self._group_size - codes.shape[1])))


class MatrixCache:
    """The matrices of a model that were used last, as many as `_MOST_BYTES` hold: a model may be larger than memory."""

    def __init__(self, model: QuantizedModel) -> None:
        self._model = model
        self._matrices: dict[str, ReferenceMatrix] = {}  # the one that was not used for longest comes first
        self._bytes = 0

    def __getitem__(self, name: str) -> ReferenceMatrix:
        """The matrix of a tensor; decoded again where it had to go."""
        matrix = self._matrices.pop(name, None)
        if matrix is None:
            matrix = ReferenceMatrix(self._model.tensors[name], self._model.group_size)
            self._bytes += matrix.bytes
        self._matrices[name] = matrix
        while self._bytes > _MOST_BYTES and len(self._matrices) > 1:
            oldest = next(iter(self._matrices))
            self._bytes -= self._matrices.pop(oldest).bytes
        return matrix


def embedding_row(tensor: QuantizedTensor, group_size: int, token: int) -> F32:
    """Row `token` of the embedding: the fp16 values, or code * scale."""
    row: F32 = tensor.codes[token].astype(np.float32)
    if tensor.scales is None:
        return row
    scales = np.repeat(tensor.scales[token].astype(np.float32), group_size)[: row.size]
    return np.asarray(row * scales, np.float32)
