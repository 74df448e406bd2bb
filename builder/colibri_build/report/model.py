"""What a report says. The JSON format is these dataclasses, field by field (docs/reports.md); times are microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field

FORMAT, VERSION = "colibri-trace-report", 1
OTHER = "other"  # the part of a token that no stage measured
STAGE_ORDER = ("embedding", "attention", "router", "experts", "expert", "head", OTHER)


@dataclass(frozen=True)
class Build:
    """The build that the trace is said to be of, as far as the caller knows it."""

    board: str
    toolchain: str
    context: int
    token_texts: tuple[str, ...] = field(default=(), repr=False)  # by token id; for the page's tooltips


@dataclass(frozen=True)
class Model:
    """What the trace's INFO says, and the most experts that it saw chosen at once (0: no routing recorded)."""

    digest: str
    n_layers: int
    n_experts: int
    top_k: int


@dataclass(frozen=True)
class SourceFile:
    """One trace file."""

    name: str
    bytes: int
    sha256: str
    encoding: str


@dataclass(frozen=True)
class RunSpan:
    """One prompt and its answer."""

    source: int
    tokens: int
    prefill: int
    decode: int
    first_position: int
    last_position: int


@dataclass(frozen=True)
class Histogram:
    """`counts[i]` values v with edges_us[i] <= v < edges_us[i + 1]; the last bin holds its upper edge, too."""

    scale: str  # of the edges: linear or log
    edges_us: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Figures:
    """One set of durations. `std_us` is the population's; `p99_us` interpolates linearly between two values."""

    count: int
    total_us: float
    mean_us: float
    median_us: float
    p99_us: float
    min_us: float
    max_us: float
    std_us: float
    histogram: Histogram


@dataclass(frozen=True)
class StageFigures:
    """One stage; each duration is that of one layer (or one expert, head, embedding, or the rest of one token)."""

    stage: str
    share: float | None  # of the time of all timed tokens; None for `expert`, which lies within `experts`
    figures: Figures


@dataclass(frozen=True)
class LayerStage:
    """One stage in one layer."""

    stage: str
    layer: int
    count: int
    median_us: float
    p99_us: float


@dataclass(frozen=True)
class LayerUse:
    """Routing of one layer. `effective_experts`: 2 to the entropy of its choices; n_experts if all are used alike."""

    layer: int
    decisions: int  # tokens whose routing was recorded
    effective_experts: float


@dataclass(frozen=True)
class ExpertUse:
    """One expert. `share` = tokens / decisions of its layer; `mean_weight` over the tokens that chose it."""

    layer: int
    expert: int
    tokens: int
    share: float
    mean_weight: float
    median_us: float | None  # of its FFN, all threads' time added up


@dataclass(frozen=True)
class Pair:
    """Two experts, a < b, that one layer chose for the same token. `lift`: how much more often than by chance."""

    layer: int
    a: int
    b: int
    tokens: int
    lift: float


@dataclass(frozen=True)
class Placed:
    """The weights of one expert in memory."""

    layer: int
    expert: int
    address: int
    bytes: int


@dataclass(frozen=True)
class Hole:
    """Bytes between two experts that belong to neither; negative: they overlap."""

    address: int
    bytes: int


@dataclass(frozen=True)
class MemoryMap:
    """Experts by address."""

    experts: tuple[Placed, ...]
    holes: tuple[Hole, ...]
    total_bytes: int
    span_bytes: int  # from the first byte to the last


@dataclass(frozen=True)
class TokenTime:
    """One token; `us` is None where timing was not recorded."""

    run: int
    position: int
    id: int
    phase: str
    us: float | None
    is_whole: bool


@dataclass(frozen=True)
class Change:
    """Median durations of both traces; `change` = this / other - 1."""

    what: str
    this_us: float
    other_us: float
    this_p99_us: float
    other_p99_us: float
    change: float


@dataclass(frozen=True)
class LayerDivergence:
    """Jensen-Shannon divergence (bits, 0..1) of a layer's expert use; the expert whose share differs most."""

    layer: int
    divergence_bits: float
    expert: int
    this_share: float
    other_share: float


@dataclass(frozen=True)
class Difference:
    """The first token or routing decision that differs. `layer` is None for a token id."""

    run: int
    position: int
    layer: int | None
    this: tuple[int, ...]
    other: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """This trace against another one of the same model; runs are compared in their order, tokens by position."""

    sources: tuple[SourceFile, ...]
    tokens: int
    losses: dict[str, int]
    changes: tuple[Change, ...]
    divergences: tuple[LayerDivergence, ...]
    compared_tokens: int
    different_tokens: int
    first_token: Difference | None
    compared_decisions: int
    different_decisions: int
    first_decision: Difference | None


@dataclass(frozen=True)
class Report:
    """Everything that a report says."""

    model: Model
    build: Build | None
    clock_hz: int
    has_starts: bool
    sources: tuple[SourceFile, ...]
    records: dict[str, int]
    losses: dict[str, int]  # trace_events.Losses; all 0: the trace is whole
    runs: tuple[RunSpan, ...]
    latency: dict[str, Figures | None]  # of tokens: all, prefill, decode
    stages: tuple[StageFigures, ...]
    layer_stages: tuple[LayerStage, ...]
    layers: tuple[LayerUse, ...]
    experts: tuple[ExpertUse, ...]
    pairs: tuple[Pair, ...]
    memory: MemoryMap | None
    tokens: tuple[TokenTime, ...]
    comparison: Comparison | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known to be lost."""
        return not any(self.losses.values())
