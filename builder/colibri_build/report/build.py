"""Trace -> Report."""

from __future__ import annotations

from colibri_build.report.columns import times_of
from colibri_build.report.compare import compare, source_files
from colibri_build.report.experts import expert_pairs, expert_use, expert_uses, layer_uses
from colibri_build.report.latency import layer_stages, stage_figures, token_latency, token_times
from colibri_build.report.memory_map import memory_map
from colibri_build.report.model import Build, Model, Report, RunSpan
from colibri_build.trace_events import Phase, Run, Trace


def make_report(trace: Trace, build: Build | None = None, other: Trace | None = None) -> Report:
    """Compute every figure of a trace, and the comparison with `other`. Raises TraceError if that is of another model."""
    times, use = times_of(trace), expert_use(trace)
    return Report(
        model=Model(trace.info.digest, trace.info.n_layers, trace.info.n_experts, use.top_k),
        build=build,
        clock_hz=trace.info.clock_hz,
        has_starts=trace.has_starts,
        sources=source_files(trace),
        records=trace.counts,
        losses=dict(trace.losses.items()),
        runs=tuple(map(_span, trace.runs)),
        latency=token_latency(trace),
        stages=stage_figures(trace, times),
        layer_stages=layer_stages(trace, times),
        layers=layer_uses(use),
        experts=expert_uses(trace, use, times),
        pairs=expert_pairs(use),
        memory=memory_map(trace),
        tokens=token_times(trace),
        comparison=compare(trace, other) if other else None,
    )


def _span(run: Run) -> RunSpan:
    prefill = sum(item.token.phase is Phase.PREFILL for item in run.tokens)
    return RunSpan(
        source=run.source,
        tokens=len(run.tokens),
        prefill=prefill,
        decode=len(run.tokens) - prefill,
        first_position=run.tokens[0].token.position,
        last_position=run.tokens[-1].token.position,
    )
