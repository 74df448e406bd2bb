"""The live view of the monitor: what a trace says so far, as figures, and as a page of the terminal."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from colibri_build.trace_events import Event, Info, Losses, Phase, Routing, Stage, Time, Token

_LATENCIES = 1000  # tokens that median and p99 look at
_RATE_S = 10.0  # of wall clock that tokens/s looks at
_TEXT_LINES = 8
_SPARKS = " ▁▂▃▄▅▆▇█"
_SHADES = " ·░▒▓█"
_SHADE_STYLES = ("", "blue", "cyan", "green", "yellow", "red")
_SPARK_TOKENS = 60


@dataclass
class LiveFigures:
    """What a trace has said so far. Latencies are seconds of the board's clock, of decoded tokens only."""

    info: Info | None = None
    uses: Counter[tuple[int, int]] = field(default_factory=Counter)  # (layer, expert) -> times chosen
    weights: Counter[tuple[int, int]] = field(default_factory=Counter)  # -> sum of the router's weights, in 1/1000
    stage_ticks: Counter[Stage] = field(default_factory=Counter)
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))
    arrivals: deque[float] = field(default_factory=deque)  # time.monotonic of the last tokens
    n_prefill: int = 0
    n_decode: int = 0

    def take(self, event: Event) -> None:
        """Count an event."""
        match event:
            case Info():
                self.info = event
            case Routing():
                for expert, weight in zip(event.experts, event.weights, strict=True):
                    self.uses[event.layer, expert] += 1
                    self.weights[event.layer, expert] += round(1000 * weight)
            case Time():
                self.stage_ticks[event.stage] += event.ticks
            case Token():
                self._take_token(event)
            case _:
                pass

    def _take_token(self, token: Token) -> None:
        if token.phase is Phase.PREFILL:
            self.n_prefill += 1
            return
        self.n_decode += 1
        self.arrivals.append(time.monotonic())
        if token.ticks is not None and self.info is not None:
            self.latencies.append(token.ticks / max(1, self.info.clock_hz))

    @property
    def n_tokens(self) -> int:
        """Tokens of either phase."""
        return self.n_prefill + self.n_decode

    def tokens_per_s(self) -> float:
        """Decoded tokens a second over the last 10 s of our clock; 0 with less than two."""
        now = time.monotonic()
        while self.arrivals and now - self.arrivals[0] > _RATE_S:
            self.arrivals.popleft()
        span = self.arrivals[-1] - self.arrivals[0] if len(self.arrivals) > 1 else 0.0
        return (len(self.arrivals) - 1) / span if span > 0 else 0.0

    def latency(self, share: float) -> float | None:
        """The latency below or at which this share (0..1] of the tokens is; None without any."""
        ordered = sorted(self.latencies)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None

    def shape(self) -> tuple[int, int]:
        """Layers and experts: as INFO says, else as far as they were seen."""
        if self.info is not None:
            return self.info.n_layers, self.info.n_experts
        layers, experts = (max((key[i] for key in self.uses), default=-1) + 1 for i in (0, 1))
        return layers, experts


@dataclass(frozen=True)
class LiveState:
    """What the page shows beside the figures."""

    title: str
    losses: Losses
    bad_frames: int
    text: str  # the end of the console's text
    typed: str  # a line that is being typed


def live_page(figures: LiveFigures, state: LiveState, width: int) -> RenderableType:
    """Return the whole page, at most `width` columns wide."""
    parts: list[RenderableType] = [Text(state.title, style="bold"), _figures_line(figures), _loss_line(state)]
    parts += [_stages_line(figures)] if figures.stage_ticks else []
    parts += [Text(f"latency {sparkline(list(figures.latencies)[-_SPARK_TOKENS:])}")] if figures.latencies else []
    parts += [heat_grid(figures, width)]
    lines = state.text.splitlines()[-_TEXT_LINES:]
    parts += [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
    parts += [Text(f"> {state.typed}")]
    return Group(*parts)


def _figures_line(figures: LiveFigures) -> Text:
    median, worst = figures.latency(0.5), figures.latency(0.99)
    timing = (
        "no timing" if median is None or worst is None else f"median {median * 1e3:.2f} ms  p99 {worst * 1e3:.2f} ms"
    )
    counts = f"{figures.n_decode} tokens (+{figures.n_prefill} of prompts)"
    return Text(f"{counts}  {figures.tokens_per_s():.1f} tokens/s  {timing}")


def _loss_line(state: LiveState) -> Text:
    losses = state.losses
    text = (
        f"{losses.dropped_records} records dropped by the board  {losses.lost_frames} trace frames lost"
        f"  {state.bad_frames} bad frames"
    )
    is_whole = losses.dropped_records + losses.lost_frames + state.bad_frames == 0
    return Text(text, style="green" if is_whole else "bold red")


def _stages_line(figures: LiveFigures) -> Text:
    total = sum(ticks for stage, ticks in figures.stage_ticks.items() if stage is not Stage.EXPERT) or 1
    shares = [
        f"{stage.name.lower()} {figures.stage_ticks[stage] / total:.0%}"
        for stage in Stage
        if stage is not Stage.EXPERT and figures.stage_ticks[stage]
    ]
    return Text("time: " + "  ".join(shares))


def sparkline(values: Sequence[float]) -> str:
    """One block a value, the largest one full height."""
    most = max(values, default=0.0)
    return "".join(_SPARKS[round(value / most * (len(_SPARKS) - 1))] if most > 0 else " " for value in values)


def heat_grid(figures: LiveFigures, width: int) -> Table:
    """Layers x experts: how often each was chosen, shaded by its share of the layer's busiest one."""
    n_layers, n_experts = figures.shape()
    table = Table.grid(padding=0)
    label = len(f"layer {n_layers}") + 2
    cells = 2 if label + 2 * n_experts <= width else 1
    fold = -(-n_experts * cells // max(1, width - label - 12)) or 1  # experts that share a cell of a narrow page
    for layer in range(n_layers):
        counts = [figures.uses[layer, expert] for expert in range(n_experts)]
        folded = [max(counts[at : at + fold]) for at in range(0, n_experts, fold)]
        busiest = counts.index(max(counts)) if any(counts) else 0
        share = max(counts) / sum(counts) if any(counts) else 0.0
        row = Text(f"layer {layer}".ljust(label))
        row.append_text(_shaded(folded, cells))
        row.append(f"  {busiest}: {share:.0%}" if any(counts) else "")
        table.add_row(row)
    return table


def _shaded(counts: Iterable[int], cells: int) -> Text:
    row = Text()
    values = list(counts)
    most = max(values, default=0)
    for value in values:
        level = -(-value * (len(_SHADES) - 1) // most) if most else 0  # one that was chosen once is not blank
        row.append(_SHADES[level] * cells, style=_SHADE_STYLES[level])
    return row
