"""Latency per token, per stage, and per stage and layer."""

from __future__ import annotations

import numpy as np

from colibri_build.report.columns import Times, tick_us, wall_stages
from colibri_build.report.figures import figures, us
from colibri_build.report.model import OTHER, STAGE_ORDER, Figures, LayerStage, StageFigures, TokenTime
from colibri_build.trace_events import Phase, Stage, Trace


def token_times(trace: Trace) -> tuple[TokenTime, ...]:
    """Every token with its whole time."""
    factor = tick_us(trace)
    return tuple(
        TokenTime(
            run=item.run,
            position=item.token.position,
            id=item.token.id,
            phase=item.token.phase.name.lower(),
            us=None if item.token.ticks is None else us(item.token.ticks * factor),
            is_whole=item.is_whole,
        )
        for item in trace.tokens
    )


def token_latency(trace: Trace) -> dict[str, Figures | None]:
    """Figures of all tokens, and of each phase; None without timed tokens."""
    factor = tick_us(trace)
    timed = [(item.token.phase, item.token.ticks * factor) for item in trace.tokens if item.token.ticks is not None]
    by_phase = {phase.name.lower(): figures([t for p, t in timed if p is phase]) for phase in Phase}
    return {"all": figures([t for _, t in timed]), **by_phase}


def stage_figures(trace: Trace, times: Times) -> tuple[StageFigures, ...]:
    """Figures of each stage that was recorded, in the order of the computation, and of what no stage measured."""
    factor = tick_us(trace)
    total = sum(item.token.ticks or 0 for item in trace.tokens)
    in_token = wall_stages(times)
    found: dict[str, StageFigures] = {}
    for stage in Stage:
        ticks = times.ticks[times.stage == stage]
        result = figures(ticks * factor)
        if result:
            share = float(ticks.sum() / total) if stage in in_token and total else None
            name = stage.name.lower()
            found[name] = StageFigures(name, None if share is None else round(share, 6), result)
    rest = _unmeasured(trace, times)
    other = figures(rest * factor)
    if other and found:
        found[OTHER] = StageFigures(OTHER, round(float(rest.sum() / total), 6) if total else None, other)
    return tuple(found[name] for name in STAGE_ORDER if name in found)


def _unmeasured(trace: Trace, times: Times) -> np.ndarray:
    """Ticks of each whole, timed token that none of its stages has. Without a stage at all there is nothing to compare."""
    measured = np.zeros(sum(len(run.tokens) for run in trace.runs), dtype=np.int64)
    rows = np.isin(times.stage, wall_stages(times))
    np.add.at(measured, times.token[rows], times.ticks[rows])
    rest = [
        item.token.ticks - int(measured[index])
        for index, item in enumerate(trace.tokens)
        if item.token.ticks is not None and item.is_whole and measured[index]
    ]
    return np.maximum(np.array(rest, dtype=np.int64), 0)


def layer_stages(trace: Trace, times: Times) -> tuple[LayerStage, ...]:
    """Median and p99 of the stages that every layer has."""
    factor = tick_us(trace)
    found = []
    for stage in (Stage.ATTENTION, Stage.ROUTER, Stage.EXPERTS):
        of_stage = times.stage == stage
        for layer in range(trace.info.n_layers):
            ticks = times.ticks[of_stage & (times.layer == layer)] * factor
            if ticks.size:
                median, p99 = us(np.median(ticks)), us(np.percentile(ticks, 99))
                found.append(LayerStage(stage.name.lower(), layer, int(ticks.size), median, p99))
    return tuple(found)
