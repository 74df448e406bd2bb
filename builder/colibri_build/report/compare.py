"""One trace against another of the same model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colibri_build.errors import TraceError
from colibri_build.report.columns import decisions_of, times_of
from colibri_build.report.experts import Use, entropy_bits, expert_use
from colibri_build.report.latency import stage_figures, token_latency
from colibri_build.report.model import Change, Comparison, Difference, Figures, LayerDivergence, SourceFile
from colibri_build.trace_events import TokenTrace, Trace

# What one token says of each layer (None: of the token itself), to be held against the other trace.
Choices = Callable[[TokenTrace], Iterator[tuple[int | None, tuple[int, ...]]]]


class _Differences(NamedTuple):
    compared: int
    different: int
    first: Difference | None


def compare(this: Trace, other: Trace) -> Comparison:
    """Compare latency, expert use and routing. Raises TraceError if the traces are of two models."""
    if this.info.digest != other.info.digest:
        names = [", ".join(source.name for source in trace.sources) for trace in (this, other)]
        raise TraceError(
            f"{names[0]} is of model {this.info.digest}, {names[1]} of model {other.info.digest}: nothing to compare",
            hint="compare two traces of one model",
        )
    tokens = _differences(this, other, lambda token: iter([(None, (token.token.id,))]))
    decisions = _differences(this, other, lambda token: ((d.layer, d.experts) for d in decisions_of(token)))
    return Comparison(
        sources=source_files(other),
        tokens=sum(len(run.tokens) for run in other.runs),
        losses=dict(other.losses.items()),
        changes=tuple(_changes(this, other)),
        divergences=tuple(_divergences(expert_use(this), expert_use(other))),
        compared_tokens=tokens.compared,
        different_tokens=tokens.different,
        first_token=tokens.first,
        compared_decisions=decisions.compared,
        different_decisions=decisions.different,
        first_decision=decisions.first,
    )


def source_files(trace: Trace) -> tuple[SourceFile, ...]:
    """The files of a trace, for the report."""
    return tuple(SourceFile(s.name, s.bytes, s.sha256, s.encoding) for s in trace.sources)


def _differences(this: Trace, other: Trace, choices: Choices) -> _Differences:
    """Compare what both traces have of the same run, position and layer."""
    theirs = {
        (token.run, token.token.position, layer): chosen for token in other.tokens for layer, chosen in choices(token)
    }
    compared = different = 0
    first = None
    for token in this.tokens:
        for layer, chosen in choices(token):
            there = theirs.get((token.run, token.token.position, layer))
            compared += there is not None
            if there is not None and there != chosen:
                different += 1
                first = first or Difference(token.run, token.token.position, layer, chosen, there)
    return _Differences(compared, different, first)


def _durations(trace: Trace) -> dict[str, Figures]:
    """The figures to compare, by name."""
    found = {
        f"token ({phase})": figures for phase, figures in token_latency(trace).items() if phase != "all" and figures
    }
    return found | {stage.stage: stage.figures for stage in stage_figures(trace, times_of(trace))}


def _changes(this: Trace, other: Trace) -> Iterator[Change]:
    ours, theirs = _durations(this), _durations(other)
    for what, mine in ours.items():
        if what in theirs and theirs[what].median_us:
            yours = theirs[what]
            change = round(mine.median_us / yours.median_us - 1, 6)
            yield Change(what, mine.median_us, yours.median_us, mine.p99_us, yours.p99_us, change)


def _divergences(this: Use, other: Use) -> Iterator[LayerDivergence]:
    for layer in range(len(this.decisions)):
        if not this.decisions[layer] or not other.decisions[layer]:
            continue
        ours = this.tokens[layer] / this.decisions[layer]
        theirs = other.tokens[layer] / other.decisions[layer]
        expert = int(np.abs(ours - theirs).argmax())
        yield LayerDivergence(
            layer=layer,
            divergence_bits=round(_jensen_shannon(this.tokens[layer], other.tokens[layer]), 6),
            expert=expert,
            this_share=round(float(ours[expert]), 6),
            other_share=round(float(theirs[expert]), 6),
        )


def _jensen_shannon(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    """0: the same distribution; 1: no expert in common."""
    mean = ours / ours.sum() + theirs / theirs.sum()
    return max(0.0, entropy_bits(mean) - (entropy_bits(ours) + entropy_bits(theirs)) / 2)
