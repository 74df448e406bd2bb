"""What a trace says (runtime_c/trace/TRACE.md), in either encoding: stage `trace` makes it, `report` reads it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, fields


class Stage(enum.IntEnum):
    """What a TIME record measured. The values are those of the record's byte."""

    ATTENTION = 1
    ROUTER = 2
    EXPERT = 3  # FFN of one expert, the ticks of all threads added up
    HEAD = 4
    EMBEDDING = 5
    EXPERTS = 6  # the whole block of a layer, as the clock on the wall has it


class Phase(enum.IntEnum):
    """Why a token was fed."""

    PREFILL = 0
    DECODE = 1


@dataclass(frozen=True, slots=True)
class Info:
    """The model and the clock of what follows. `digest`: 16 hexadecimal digits."""

    digest: str
    n_layers: int
    n_experts: int
    clock_hz: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class Token:
    """The end of a token. `ticks`: the whole of it; None if unknown (no timing recorded, or 2^32 - 1 and more).

    `lost`: records of it that the ring dropped; 65535: so many or more.
    """

    phase: Phase
    position: int
    id: int
    ticks: int | None
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Routing:
    """Chosen experts of one layer and their weights (0..1), by rank from `first_rank` on: 1 to 4 a record."""

    layer: int
    first_rank: int
    experts: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the weights of one expert lie."""

    layer: int
    expert: int
    size: int
    address: int


@dataclass(frozen=True, slots=True)
class Time:
    """How long a stage took. `start`: ticks since the token's start; None in the text encoding, which leaves it out."""

    stage: Stage
    layer: int
    expert: int
    start: int | None
    ticks: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """The ring was full: `total` records were dropped since the firmware's start."""

    total: int


@dataclass(frozen=True, slots=True)
class Gap:
    """`frames` trace frames were lost on the way, as their sequence numbers say."""

    frames: int


@dataclass(frozen=True, slots=True)
class ConsoleText:
    """Bytes of the console that are no part of the trace."""

    data: bytes


Event = Info | Token | Routing | Memory | Time | Dropped | Gap


@dataclass(slots=True)
class Losses:
    """What a trace lacks, and what could not be read in it. Everything 0: the trace is whole."""

    dropped_records: int = 0  # by the ring, as the firmware says
    bad_frames: int = 0  # CRC, stuffing or escape wrong
    partial_records: int = 0  # frames or text lines cut off by the end of the file
    gaps: int = 0  # places where trace frames are missing
    lost_frames: int = 0  # in those gaps
    malformed_frames: int = 0  # good CRC, but no trace frame of version 1
    unknown_records: int = 0  # of a kind, stage or version that we do not know
    malformed_lines: int = 0  # begin as a text record and go on differently
    missing_tokens: int = 0  # positions without a TOKEN record, between two that have one
    incomplete_tokens: int = 0  # that lack records: dropped, lost, or of some layers only
    cut_tokens: int = 0  # records behind the last TOKEN: a token that was cut off

    def items(self) -> Iterator[tuple[str, int]]:
        """Each count by name, in the order above."""
        return ((field.name, getattr(self, field.name)) for field in fields(self))

    def __add__(self, other: Losses) -> Losses:
        """The counts of two traces together."""
        return Losses(**{name: count + getattr(other, name) for name, count in self.items()})


@dataclass(frozen=True)
class Source:
    """One trace file. `encoding`: binary, text or mixed."""

    name: str
    bytes: int
    sha256: str
    encoding: str


@dataclass(frozen=True)
class TokenTrace:
    """One token: its TOKEN record and the records before it, in their order."""

    run: int  # index of the run
    token: Token
    routing: tuple[Routing, ...]
    times: tuple[Time, ...]
    is_whole: bool  # nothing was dropped, no gap lies in it, and what was recorded of one layer was recorded of all


@dataclass(frozen=True)
class Run:
    """Tokens of rising positions: a prompt and its answer."""

    source: int  # index of the source
    tokens: tuple[TokenTrace, ...]


@dataclass(frozen=True)
class Trace:
    """One or more trace files of one model, read and checked. Every layer and expert in it exists in the model."""

    info: Info
    sources: tuple[Source, ...]
    runs: tuple[Run, ...]
    memory: tuple[Memory, ...]  # the last word on each expert, in the order of layers and experts
    losses: Losses
    counts: dict[str, int]  # records read, by kind in capitals
    has_starts: bool  # TIME records say when they started

    @property
    def tokens(self) -> Iterator[TokenTrace]:
        """Every token of every run."""
        return (token for run in self.runs for token in run.tokens)
