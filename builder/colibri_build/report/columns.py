"""A trace as columns of numbers: what the figures are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colibri_build.trace_events import Stage, TokenTrace, Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Times:
    """All TIME records, one row each: int64 [n_times]."""

    token: Ints  # index of the token in the trace
    stage: Ints
    layer: Ints
    expert: Ints
    ticks: Ints


@dataclass(frozen=True)
class Decision:
    """The experts that one layer chose for one token, by rank, and their weights."""

    layer: int
    experts: tuple[int, ...]
    weights: tuple[float, ...]


def times_of(trace: Trace) -> Times:
    """Collect the TIME records of a trace."""
    rows = [
        (index, event.stage, event.layer, event.expert, event.ticks)
        for index, token in enumerate(trace.tokens)
        for event in token.times
    ]
    return Times(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


def decisions_of(token: TokenTrace) -> Iterator[Decision]:
    """Join the ROUTING records of a token: ranks from 4 on come in records of their own."""
    experts: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    layer = -1
    for event in token.routing:
        if experts and (event.layer != layer or event.first_rank != len(experts)):
            yield Decision(layer, experts, weights)
            experts, weights = (), ()
        layer, experts, weights = event.layer, experts + event.experts, weights + event.weights
    if experts:
        yield Decision(layer, experts, weights)


def tick_us(trace: Trace) -> float:
    """Microseconds of one tick; 0 where nothing was timed."""
    return 1e6 / trace.info.clock_hz if trace.info.clock_hz else 0.0


def wall_stages(times: Times) -> tuple[Stage, ...]:
    """Return the stages that follow one another in a token: a trace without EXPERTS counts each EXPERT instead."""
    block = Stage.EXPERTS if (times.stage == Stage.EXPERTS).any() else Stage.EXPERT
    return (Stage.EMBEDDING, Stage.ATTENTION, Stage.ROUTER, block, Stage.HEAD)
