"""Figures of raw runs: medians, and ratios of runs that were made one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from suite.places import Json

Rows = Mapping[str, Sequence[Json]]  # engine -> the row of each round


@dataclass(frozen=True)
class Ratio:
    """Of paired runs: their median, and the quartiles around it."""

    median: float
    low: float
    high: float
    against: str  # the engine it is a ratio to


def middle(rows: Iterable[Json], name: str) -> float:
    """Median of one figure over the rounds. Raises StatisticsError for no rows."""
    return float(median(row[name] for row in rows))


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Lower and upper one; of a single value that value."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def best(rows: Rows, name: str, members: Sequence[str], *, least: bool = False) -> str:
    """Of the members, the engine whose median is highest, or lowest."""
    medians = {member: middle(rows[member], name) for member in members}
    choose = min if least else max
    return choose(medians, key=lambda member: medians[member])


def paired(rows: Rows, name: str, ours: str, other: str) -> Ratio:
    """Ours divided by the other, round by round."""
    ratios = [mine[name] / theirs[name] for mine, theirs in zip(rows[ours], rows[other], strict=True)]
    low, high = quartiles(ratios)
    return Ratio(float(median(ratios)), low, high, other)


def spread(counts: Sequence[Sequence[float]]) -> float:
    """Largest relative difference between sequences at the same place: (highest - lowest) / lowest."""
    places = list(zip(*counts, strict=False))
    return float(max((max(place) - min(place)) / min(place) for place in places))


def further_faults(row: Json) -> float:
    """Page faults of each token that a longer run decodes beyond a shorter one."""
    return float(row["faults"][1] - row["faults"][0]) / float(row["tokens"][1] - row["tokens"][0])
