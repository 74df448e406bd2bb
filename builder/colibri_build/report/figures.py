"""Durations -> median, p99 and so on, with a histogram."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from colibri_build.report.model import Figures, Histogram

_BINS = 24
_LOG_FROM = 10  # largest / smallest from which on equal bins would put nearly all into the first


def figures(durations_us: ArrayLike) -> Figures | None:
    """Return the figures of durations in microseconds, None if there are none."""
    values = np.asarray(durations_us, dtype=np.float64)
    if not values.size:
        return None
    return Figures(
        count=int(values.size),
        total_us=us(values.sum()),
        mean_us=us(values.mean()),
        median_us=us(np.median(values)),
        p99_us=us(np.percentile(values, 99)),
        min_us=us(values.min()),
        max_us=us(values.max()),
        std_us=us(values.std()),
        histogram=_histogram(values),
    )


def us(value: float) -> float:
    """Round to a nanosecond: finer than any board's clock."""
    return round(float(value), 3)


def _histogram(values: np.ndarray) -> Histogram:
    low, high = float(values.min()), float(values.max())
    is_log = low > 0 and high > _LOG_FROM * low
    if low == high:
        edges = np.array([low, high])
    elif is_log:
        edges = np.geomspace(low, high, _BINS + 1)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    # Rounded edges are the ones that count: whoever counts again by the report's edges finds the report's counts.
    edges = np.unique(np.round(edges, 3))
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
    counts = [values.size] if edges.size == 1 else np.histogram(values, edges)[0].tolist()
    shown = edges.tolist() if edges.size > 1 else [low, high]
    return Histogram("log" if is_log else "linear", tuple(shown), tuple(map(int, counts)))
