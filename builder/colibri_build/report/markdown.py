"""A report as Markdown tables, for an issue or a CI summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from colibri_build.report.model import Comparison, Difference, ExpertUse, Figures, Report

_MOST_LAYERS = 64  # rows of the expert table; a larger model is for the page and JSON
_MOST_COLUMNS = 16
_MOST_PAIRS = 10


def report_to_markdown(report: Report) -> str:
    """Return the report's main figures; losses come first."""
    parts: list[Iterable[str]] = [_head(report), _latency(report), _stages(report), _experts(report), _pairs(report)]
    parts.append(_memory(report))
    if report.comparison:
        parts.append(_comparison(report.comparison))
    return "\n".join(line for part in parts for line in part) + "\n"


def losses_text(losses: dict[str, int]) -> str:
    """Return what a trace lacks as words: `3 bad frames, 17 dropped records`; nothing if it is whole."""
    return ", ".join(f"{count} {loss_name(name, count)}" for name, count in losses.items() if count)


def loss_name(name: str, count: int) -> str:
    """Return the name of one of trace_events.Losses for a person: `bad frames`, or `bad frame` if it is one."""
    words = name.replace("_", " ")
    return words.removesuffix("s") if count == 1 else words


def _head(report: Report) -> Iterator[str]:
    model = report.model
    yield "# Trace report"
    yield ""
    yield f"Model `{model.digest}`: {model.n_layers} layers, {model.n_experts} experts, {model.top_k} a token."
    if report.build:
        yield f"Board {report.build.board}, toolchain {report.build.toolchain}, context {report.build.context}."
    yield f"Clock {report.clock_hz / 1e6:g} MHz. Sources:"
    yield ""
    yield from (f"* `{s.name}`: {s.bytes} bytes, {s.encoding}, SHA-256 `{s.sha256}`" for s in report.sources)
    yield ""
    lost = losses_text(report.losses)
    yield f"**The trace is not whole: {lost}.** Figures are of what is left." if lost else "The trace is whole."
    yield ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "|".join(" --- " if not index else " ---: " for index in range(len(columns))) + "|"
    yield from ("| " + " | ".join(map(str, row)) + " |" for row in rows)
    yield ""


_FIGURES = ("count", "median µs", "p99 µs", "max µs", "std µs")


def _figures(figures: Figures) -> tuple[object, ...]:
    times = (figures.median_us, figures.p99_us, figures.max_us, figures.std_us)
    return figures.count, *(f"{time:.1f}" for time in times)


def _latency(report: Report) -> Iterator[str]:
    runs = f"{len(report.runs)} run" + ("s" if len(report.runs) > 1 else "")
    yield f"## Latency per token ({len(report.tokens)} tokens, {runs})"
    yield ""
    rows = [(phase, *_figures(figures)) for phase, figures in report.latency.items() if figures]
    yield from _table(("tokens", *_FIGURES), rows) if rows else ["Timing was not recorded.", ""]


def _stages(report: Report) -> Iterator[str]:
    if report.stages:
        yield "## Latency per stage"
        yield ""
        yield from _table(
            ("stage", "share", *_FIGURES), ((s.stage, _percent(s.share), *_figures(s.figures)) for s in report.stages)
        )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _experts(report: Report) -> Iterator[str]:
    if not report.layers:
        return
    yield "## Experts: share of tokens"
    yield ""
    n = report.model.n_experts
    columns = [str(expert) for expert in range(n)] if n <= _MOST_COLUMNS else ["most used"]
    rows = []
    for layer in report.layers[:_MOST_LAYERS]:
        uses = report.experts[layer.layer * n : (layer.layer + 1) * n]
        rows.append((layer.layer, layer.decisions, layer.effective_experts, *_shares(uses)))
    yield from _table(("layer", "tokens", "effective experts", *columns), rows)
    if len(report.layers) > _MOST_LAYERS:
        yield f"The first {_MOST_LAYERS} of {len(report.layers)} layers."
        yield ""


def _shares(uses: Sequence[ExpertUse]) -> list[str]:
    """The share of every expert, or the most used ones by name where they are too many for columns."""
    if len(uses) <= _MOST_COLUMNS:
        return [_percent(use.share) for use in uses]
    top = sorted(uses, key=lambda use: (-use.tokens, use.expert))[:_MOST_COLUMNS]
    return [", ".join(f"{use.expert} ({_percent(use.share)})" for use in top)]


def _pairs(report: Report) -> Iterator[str]:
    top = sorted(report.pairs, key=lambda pair: (-pair.tokens, pair.layer, pair.a, pair.b))[:_MOST_PAIRS]
    if top:
        yield "## Pairs of experts chosen together most often"
        yield ""
        rows = ((f"layer {p.layer}", f"{p.a}, {p.b}", p.tokens, p.lift) for p in top)
        yield from _table(("where", "experts", "tokens", "times chance"), rows)


def _memory(report: Report) -> Iterator[str]:
    if report.memory:
        memory = report.memory
        yield "## Memory"
        yield ""
        yield (
            f"{len(memory.experts)} experts, {memory.total_bytes} bytes in {memory.span_bytes} from "
            f"`0x{memory.experts[0].address:x}` on; {len(memory.holes)} gaps."
        )
        yield ""


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield f"## Compared with {', '.join(f'`{source.name}`' for source in comparison.sources)}"
    yield ""
    lost = losses_text(comparison.losses)
    if lost:
        yield f"**The other trace is not whole: {lost}.**"
        yield ""
    yield from _table(
        ("median", "this µs", "other µs", "change"),
        ((c.what, f"{c.this_us:.1f}", f"{c.other_us:.1f}", f"{c.change:+.1%}") for c in comparison.changes),
    )
    yield from _table(
        ("layer", "divergence of expert use (bits)", "expert that differs most", "this", "other"),
        (
            (d.layer, f"{d.divergence_bits:.4f}", d.expert, f"{d.this_share:.1%}", f"{d.other_share:.1%}")
            for d in comparison.divergences
        ),
    )
    yield f"* {_verdict('token ids', comparison.different_tokens, comparison.compared_tokens, comparison.first_token)}"
    counts = comparison.different_decisions, comparison.compared_decisions
    yield f"* {_verdict('routing decisions', *counts, comparison.first_decision)}"


def _verdict(what: str, different: int, compared: int, first: Difference | None) -> str:
    if not first:
        return f"All {compared} {what} are equal." if compared else f"No {what} to compare."
    where = f"run {first.run}, position {first.position}" + (
        f", layer {first.layer}" if first.layer is not None else ""
    )
    these, those = (", ".join(map(str, chosen)) for chosen in (first.this, first.other))
    return f"{different} of {compared} {what} differ, first at {where}: {these} here, {those} there."
