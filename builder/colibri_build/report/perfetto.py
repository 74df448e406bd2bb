"""A trace as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from colibri_build.report.columns import tick_us
from colibri_build.report.figures import us
from colibri_build.report.spans import Span, length_of, spans_of
from colibri_build.trace_events import Run, Stage, TokenTrace, Trace

_TOKEN_TRACK = 1
_TRACKS = (Stage.EMBEDDING, Stage.ATTENTION, Stage.ROUTER, Stage.EXPERTS, Stage.HEAD)
_FIRST_EXPERT_TRACK = 10  # one track an expert


def perfetto_trace(trace: Trace) -> dict[str, Any]:
    """Return the JSON object: a process for each run, a track for the tokens, each stage and each expert.

    A trace does not say how long it took from one token to the next: tokens are put one behind the other.
    """
    events: list[dict[str, Any]] = []
    now = 0.0
    for index, run in enumerate(trace.runs):
        events += _names(index + 1, f"run {index} ({trace.sources[run.source].name})", run)
        for token in run.tokens:
            length = length_of(token, spans_of(token)) * tick_us(trace)
            events += _token_events(token, index + 1, now, length, tick_us(trace))
            now += length
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "model": trace.info.digest,
            "clock_hz": str(trace.info.clock_hz),
            "note": "tokens are put one behind the other: the time between them is not recorded",
            "starts": "recorded" if trace.has_starts else "not recorded: stages are put one behind the other",
            **{name: str(count) for name, count in trace.losses.items()},
        },
        "traceEvents": events,
    }


def _names(process: int, name: str, run: Run) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    tracks = {_TOKEN_TRACK: "tokens"} | {_track(stage, 0): stage.name.lower() for stage in _TRACKS}
    experts = {time.expert for token in run.tokens for time in token.times if time.stage is Stage.EXPERT}
    tracks |= {_track(Stage.EXPERT, expert): f"expert {expert}" for expert in sorted(experts)}
    for track, title in tracks.items():
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": {"name": title}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": track, "args": {"sort_index": track}}


def _track(stage: Stage, expert: int) -> int:
    return _FIRST_EXPERT_TRACK + expert if stage is Stage.EXPERT else _TOKEN_TRACK + 1 + _TRACKS.index(stage)


def _token_events(
    token: TokenTrace, process: int, start_us: float, length_us: float, factor: float
) -> Iterator[dict[str, Any]]:
    record = token.token
    yield {
        "ph": "X",
        "cat": "token",
        "name": f"{record.phase.name.lower()} {record.position}",
        "pid": process,
        "tid": _TOKEN_TRACK,
        "ts": us(start_us),
        "dur": us(length_us),
        "args": {"position": record.position, "id": record.id, "whole": token.is_whole},
    }
    for span in spans_of(token):
        yield _span_event(span, process, start_us, factor)


def _span_event(span: Span, process: int, start_us: float, factor: float) -> dict[str, Any]:
    name = span.stage.name.lower() if span.stage in (Stage.HEAD, Stage.EMBEDDING) else f"layer {span.layer}"
    return {
        "ph": "X",
        "cat": span.stage.name.lower(),
        "name": name,
        "pid": process,
        "tid": _track(span.stage, span.expert),
        "ts": us(start_us + span.start * factor),
        "dur": us(span.length * factor),
        "args": {"layer": span.layer, "ticks": span.ticks},
    }
