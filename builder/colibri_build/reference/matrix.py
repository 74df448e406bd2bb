"""Matrix-vector products of the reference, in every storage format."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, Format, QuantizedModel, QuantizedTensor
from colibri_build.reference.numbers import dot, pad_to_groups, quantize_activation

# Codes less zero points of a matrix are held as float32 while it is smaller than this; larger ones are widened each time,
# so many at once.
_CACHED_CODES = 1 << 25
_MOST_BYTES = 1 << 30  # of matrices that are kept
_LOW = 256  # an activation's code is high * _LOW + low, both within -128..127


class ReferenceMatrix:
    """One weight matrix [rows, cols].

    Integer sums are done in float32, where every one of them is exact: a group's sum of products of 8-bit numbers stays
    below 2^24. A 16-bit activation is two of them.
    """

    def __init__(self, tensor: QuantizedTensor, group_size: int) -> None:
        self._format, self._group_size = tensor.format, group_size
        self._tensor: QuantizedTensor | None = tensor  # until its codes are widened for good
        self._groups: F32 | None = None
        codes = tensor.codes
        self._is_cached = tensor.scales is not None and codes.size <= _CACHED_CODES
        self.bytes = 4 * codes.size if self._is_cached else codes.nbytes  # of memory, once the matrix was used
        if tensor.scales is not None:
            self._scales = np.ascontiguousarray(tensor.scales.T, np.float32)  # [n_groups, rows]

    def multiply(self, x: F32, activation_bits: int) -> F32:
        """W x for x [cols]; quantizes x first where W is quantized."""
        if self._format in (Format.F32, Format.F16):
            assert self._tensor is not None
            return dot(self._tensor.codes.astype(np.float32), x[None, :])
        activation = quantize_activation(x, self._group_size, activation_bits)
        y = np.zeros(self._scales.shape[1], np.float32)
        for g, product in enumerate(self._products(activation.codes)):
            y = y + product * (self._scales[g] * activation.scales[g])
        return y

    def _products(self, codes: NDArray[np.int32]) -> F32:
        """[n_groups, rows]: of each group, before scales."""
        if self._groups is not None:
            return _exact_products(self._groups, codes)
        assert self._tensor is not None
        n_rows, cols = self._tensor.codes.shape
        if self._is_cached:
            self._groups, self._tensor = _widened(self._tensor, self._group_size, slice(n_rows)), None
            return _exact_products(self._groups, codes)
        step = max(1, _CACHED_CODES // cols)
        runs = (_widened(self._tensor, self._group_size, slice(at, at + step)) for at in range(0, n_rows, step))
        return np.concatenate([_exact_products(run, codes) for run in runs], axis=1)


def _widened(tensor: QuantizedTensor, group_size: int, rows: slice) -> F32:
    """Codes less zero points of some rows, [n_groups, rows, group_size], zero past the last column."""
    groups = pad_to_groups(tensor.codes[rows], group_size).transpose(1, 0, 2).astype(np.float32, order="C")
    if tensor.zeros is not None:
        groups -= tensor.zeros[rows].T[:, :, None]
        past = groups.shape[0] * group_size - tensor.codes.shape[1]
        groups[-1, :, group_size - past :] = 0
    return groups


def _exact_products(weights: F32, codes: NDArray[np.int32]) -> F32:
    """[n_groups, rows]: of each group weights [n_groups, rows, group_size] times codes [n_groups, group_size]."""
    high = (codes + _LOW // 2) // _LOW
    parts = np.stack([high, codes - high * _LOW], axis=-1).astype(np.float32)
    sums = np.matmul(weights, parts).astype(np.float64)
    return np.asarray(sums[..., 0] * _LOW + sums[..., 1], np.float32)


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
