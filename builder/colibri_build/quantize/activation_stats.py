"""What the searches need to know about the inputs of a projection, small enough to keep for a whole layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32
from colibri_build.quantize.exact import F64, Fixed, fixed, matmul_nt, total, tree_sum
from colibri_build.reference.numbers import group_count, pad_to_groups

# Up to this many inputs the output error comes from their second moments over all tokens; above, from as many sampled
# tokens, so that neither memory nor time grows with the square of the width.
SAMPLE_TOKENS = 512


class InputStats(NamedTuple):
    """Inputs x of one projection over the calibration tokens, weighted by the router where it is an expert's."""

    tokens: int
    mean_abs: F64  # [inputs], not weighted
    moments: F64  # [n_groups, group_size, group_size]: sum over all tokens of x x^T within each group
    second: Fixed | None  # [inputs, inputs]: sum over all tokens of x x^T; None above SAMPLE_TOKENS inputs
    sample: F32  # [at most SAMPLE_TOKENS, inputs], evenly spread over the tokens


def collect(x: F32, group_size: int, weights: F32 | None = None) -> InputStats:
    """Statistics of x [n, inputs]; `weights` [n] are the router's, by which an error reaches the residual stream."""
    n, inputs = x.shape
    if n == 0:
        moments = np.zeros((group_count(inputs, group_size), group_size, group_size))
        return InputStats(0, np.zeros(inputs), moments, None, x)
    weighted = x if weights is None else x * weights[:, None]
    kept = np.arange(min(n, SAMPLE_TOKENS)) * n // min(n, SAMPLE_TOKENS)
    groups = fixed(pad_to_groups(weighted, group_size).transpose(1, 2, 0))
    second = _second_moments(weighted) if inputs <= SAMPLE_TOKENS else None
    return InputStats(n, tree_sum(np.abs(x), axis=0) / n, matmul_nt(groups, groups), second, weighted[kept])


def _second_moments(x: F32) -> Fixed:
    columns = fixed(x.T)
    return fixed(matmul_nt(columns, columns))


def _value(matrix: Fixed) -> F64:
    return np.asarray(matrix.integers * matrix.units, np.float64)


def output_energy(matrix: NDArray[Any], stats: InputStats) -> float:
    """Sum over tokens (where sampled, extrapolated to all) and outputs of (matrix x)^2; matrix is [outputs, inputs]."""
    if stats.tokens == 0:
        return 0.0
    if stats.second is not None:
        return max(0.0, total(matmul_nt(matrix, stats.second) * matrix))
    return total(np.square(matmul_nt(stats.sample, matrix))) * (stats.tokens / len(stats.sample))


def rescale(stats: InputStats, scale: F32) -> InputStats:
    """Statistics of the inputs divided by `scale` [inputs]."""
    n_groups, group_size, _ = stats.moments.shape
    wide = np.ones(n_groups * group_size)
    wide[: len(scale)] = scale
    groups = wide.reshape(n_groups, group_size)
    moments = stats.moments / (groups[:, :, None] * groups[:, None, :])
    second = None if stats.second is None else fixed(_value(stats.second) / np.outer(scale, scale))
    sample = np.asarray(stats.sample / scale, np.float32)
    return InputStats(stats.tokens, stats.mean_abs / scale, moments, second, sample)
