"""AWQ's search for per-input-channel scales, and its search for clipped ranges (Lin et al., 2023).

A projection y = W x keeps its function when a column of W is multiplied by s and that input divided by s. Columns
whose inputs are large then get finer steps relative to their values. Candidates are s = mean|x|^ratio for 20 ratios,
centred so that the largest and the smallest are reciprocal; the one with the least output error wins, ties to the
smaller ratio. Ratio 0 is no scaling, so the result is never worse than round-to-nearest on the calibration sample.

Scales are powers of 2^(1/8), found with integers: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, Format
from colibri_build.quantize.activation_stats import InputStats, output_energy, rescale
from colibri_build.quantize.exact import F64, fixed, matmul_nt, tree_sum
from colibri_build.quantize.rtn import round_trip
from colibri_build.reference.numbers import group_count, pad_to_groups

I64 = NDArray[np.int64]
T = TypeVar("T")
R = TypeVar("R")

RATIOS = 20
SHRINKS = tuple(1 - i / 20 for i in range(10))  # 1, 0.95 ... 0.55
_LEVELS = 64  # steps an octave in which mean|x| is measured
_STEPS = 8  # steps an octave of a scale
_MOST_STEPS = 8 * _STEPS  # scales stay within 2^-8 .. 2^8
_BOUNDS = np.asarray([2.0 ** ((i + 0.5) / _LEVELS - 1) for i in range(_LEVELS)])
_FRACTIONS = np.asarray([2.0 ** (i / _STEPS) for i in range(_STEPS)])


class Projection(NamedTuple):
    """A matrix [outputs, inputs], and the statistics of its inputs; both are got when they are needed, and not kept."""

    name: str  # within its layer
    label: str  # TensorSpec.name, for messages
    weights: Callable[[], F32]
    stats: Callable[[], InputStats]


class ScaleChoice(NamedTuple):
    """The best scale [n_channels], its ratio, the summed output errors without and with it, and the outputs' energy."""

    scale: F32
    ratio: float
    error_rtn: float
    error_scaled: float
    energy: float


class Workers(Protocol):
    """What runs steps that do not depend on each other, and gives their results in order."""

    def map(self, step: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """As Python's `map`."""


class _OneByOne:
    def map(self, step: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        return map(step, items)


ONE_BY_ONE: Workers = _OneByOne()


def channel_levels(mean_abs: F64) -> I64:
    """log2(mean|x|) in 64ths, rounded. A channel that is always 0 counts as the smallest that is not."""
    mantissa, exponent = np.frexp(mean_abs)
    levels = (exponent.astype(np.int64) - 1) * _LEVELS + np.searchsorted(_BOUNDS, mantissa, side="right")
    alive = levels[mean_abs > 0]
    return np.where(mean_abs > 0, levels, alive.min() if len(alive) else 0).astype(np.int64)


def candidate(levels: I64, ratio_index: int) -> F32:
    """Scales mean|x|^(ratio_index / 20) [n_channels], centred, as powers of 2^(1/8)."""
    centred = 2 * levels - (levels.max() + levels.min())  # in 128ths of an octave
    steps = np.rint(centred * ratio_index / (2 * _LEVELS * RATIOS / _STEPS)).astype(np.int64)
    steps = np.clip(steps, -_MOST_STEPS, _MOST_STEPS)
    return np.asarray(np.ldexp(_FRACTIONS[steps % _STEPS], steps // _STEPS), np.float32)


def _scaled_error(label: str, weights: F32, stats: InputStats, wide: F32, fmt: Format, group_size: int) -> float:
    stored = round_trip(weights * wide, fmt, group_size, name=label)
    return output_energy(weights - stored / wide, stats)


def search_scale(
    projections: Sequence[Projection],
    mean_abs: F64,
    channels: I64,
    fmt: Format,
    group_size: int,
    workers: Workers = ONE_BY_ONE,
) -> ScaleChoice:
    """The best common scale of projections that share their input, one of which is held at a time.

    mean_abs [n_channels]; `channels` [inputs] names the channel of each input (several inputs may share one).
    """
    levels = channel_levels(mean_abs)
    scales = [candidate(levels, index) for index in range(RATIOS if levels.min() < levels.max() else 1)]
    errors, energy = [0.0] * len(scales), 0.0
    for projection in projections:
        weights, stats = projection.weights(), projection.stats()
        error_of = partial(_scaled_error, projection.label, weights, stats, fmt=fmt, group_size=group_size)
        found = workers.map(error_of, [scale[channels] for scale in scales])
        errors = [error + more for error, more in zip(errors, found, strict=True)]
        energy += output_energy(weights, stats)
    best = min(range(len(scales)), key=errors.__getitem__)
    return ScaleChoice(scales[best], best / RATIOS, errors[0], errors[best], energy)


def search_clip(weights: F32, stats: InputStats, fmt: Format, group_size: int, workers: Workers = ONE_BY_ONE) -> F32:
    """How far to narrow the range of each group [rows, n_groups], by the group's own output error.

    Ties go to the wider range.
    """
    shape = (weights.shape[0], group_count(weights.shape[1], group_size))
    best: F32 = np.ones(shape, np.float32)
    best_error = np.full(shape, np.inf)
    moments = fixed(stats.moments)

    def error_of(shrink: float) -> F64:
        narrowed = np.full(shape, shrink, np.float32)
        difference = pad_to_groups(weights - round_trip(weights, fmt, group_size, narrowed), group_size)
        by_group = difference.transpose(1, 0, 2)
        return tree_sum(matmul_nt(by_group, moments) * by_group).T

    for shrink, error in zip(SHRINKS, workers.map(error_of, SHRINKS), strict=True):
        better = error < best_error
        best_error, best = np.where(better, error, best_error), np.where(better, np.float32(shrink), best)
    return best


def final_error(weights: F32, scale: F32, stats: InputStats, fmt: Format, group_size: int, shrink: F32 | None) -> float:
    """Output error of scaled weights as they are stored."""
    return output_energy(weights - round_trip(weights, fmt, group_size, shrink), rescale(stats, scale))
