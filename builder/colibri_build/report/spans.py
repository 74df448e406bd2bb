"""The time records of one token as spans with a start: what the time line and Perfetto draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from colibri_build.trace_events import Stage, Time, TokenTrace


class Span(NamedTuple):
    """One stage of one token. `start`, `length`: where it is drawn, in ticks since the token's start; `ticks`: as recorded."""

    stage: Stage
    layer: int
    expert: int
    start: int
    length: int
    ticks: int


def spans_of(token: TokenTrace) -> list[Span]:
    """Return the spans of a token in the order of their records; those of one stage never overlap.

    A text trace has no starts: its stages are put one behind the other. The experts of a layer, whose ticks are those of all
    threads added up, share the time of their block one behind the other, in proportion to them.
    """
    spans: list[Span] = []
    now = 0
    waiting: list[Time] = []  # experts whose block ends with a later record
    for event in token.times:
        if event.stage is Stage.EXPERT:
            waiting.append(event)
            continue
        start = now if event.start is None else event.start
        now = start + event.ticks
        if event.stage is Stage.EXPERTS:
            spans += _experts(waiting, start, event.ticks)
            waiting.clear()
        spans.append(Span(event.stage, event.layer, event.expert, start, event.ticks, event.ticks))
    return spans + list(_experts(waiting, now, sum(event.ticks for event in waiting)))


def _experts(experts: list[Time], start: int, block_ticks: int) -> Iterator[Span]:
    total = sum(event.ticks for event in experts)
    for event in experts:
        length = event.ticks if total <= block_ticks else event.ticks * block_ticks // total
        yield Span(event.stage, event.layer, event.expert, start, length, event.ticks)
        start += length


def length_of(token: TokenTrace, spans: list[Span]) -> int:
    """Ticks of a token; without its own figure, up to the end of its last stage."""
    if token.token.ticks is not None:
        return token.token.ticks
    return max((span.start + span.length for span in spans), default=0)
