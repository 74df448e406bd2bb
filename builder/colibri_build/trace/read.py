"""Trace files -> one checked Trace: decoded, cut into tokens and runs, of one model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TypeVar

from colibri_build.errors import TraceError
from colibri_build.trace.decode import TraceDecoder
from colibri_build.trace_events import (
    ConsoleText,
    Event,
    Gap,
    Info,
    Losses,
    Memory,
    Routing,
    Run,
    Source,
    Stage,
    Time,
    Token,
    TokenTrace,
    Trace,
)

_CHUNK = 1 << 16
Kind = TypeVar("Kind", bound=Event)
_LAYERLESS = (Stage.HEAD, Stage.EMBEDDING)


def read_traces(paths: Sequence[Path]) -> Trace:
    """Read one or more trace files of one model, in either encoding, in the order given.

    Raises TraceError: a file that cannot be read, is empty, or holds no record, no INFO or no whole token; a record of
    a layer or expert that the model lacks; two files, or two parts of one, of different models or clocks.
    """
    files = [_read_file(path) for path in paths]
    info = _one_info([(file.source.name, info) for file in files for info in file.infos])
    runs: list[Run] = []
    for index, file in enumerate(files):
        _check_range(file, info)
        runs += file.cut(index, len(runs), info.n_layers)
    if not runs:
        records = sum(file.counts.total() for file in files)
        raise TraceError(
            f"{_names(file.source.name for file in files)}: {records} records, but no whole token (no TOKEN)",
            hint="let the firmware end, or answer one more token, while it is recorded",
        )
    memory = {(event.layer, event.expert): event for file in files for event in file.of(Memory)}
    times = [event for file in files for event in file.of(Time)]
    if info.clock_hz == 0 and (times or any(token.token.ticks for run in runs for token in run.tokens)):
        raise TraceError(f"{files[0].source.name}: INFO says 0 ticks a second", hint="record the trace again")
    return Trace(
        info=info,
        sources=tuple(file.source for file in files),
        runs=tuple(runs),
        memory=tuple(memory[key] for key in sorted(memory)),
        losses=reduce(add, (file.losses for file in files)),
        counts=dict(sorted(reduce(add, (file.counts for file in files)).items())),
        has_starts=all(event.start is not None for event in times),
    )


class _File:
    """The events of one file, and what can be said without the others."""

    def __init__(self, source: Source, events: list[Event], losses: Losses) -> None:
        self.source, self.events, self.losses = source, events, losses
        self.infos = list(dict.fromkeys(self.of(Info)))
        self.counts = Counter(type(event).__name__.upper() for event in events if not isinstance(event, Gap))

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def cut(self, source: int, first_run: int, n_layers: int) -> list[Run]:
        """Cut the events into tokens, and those into runs: one ends where the position does not rise."""
        runs: list[list[TokenTrace]] = []
        routing: list[Routing] = []
        times: list[Time] = []
        has_gap = False
        for event in self.events:
            match event:
                case Routing():
                    routing.append(event)
                case Time():
                    times.append(event)
                case Gap():
                    has_gap = True
                case Token():
                    self._place(runs, event.position)
                    is_whole = not (has_gap or event.lost) and _has_all_layers(routing, times, n_layers)
                    self.losses.incomplete_tokens += not is_whole
                    run = first_run + len(runs) - 1
                    runs[-1].append(TokenTrace(run, event, tuple(routing), tuple(times), is_whole))
                    routing, times, has_gap = [], [], False
        self.losses.cut_tokens += bool(routing or times)
        return [Run(source, tuple(tokens)) for tokens in runs]

    def _place(self, runs: list[list[TokenTrace]], position: int) -> None:
        """Start a run where this position is no later one; else count the positions left out."""
        missing = position - runs[-1][-1].token.position - 1 if runs else -1
        if missing < 0:
            runs.append([])
        else:
            self.losses.missing_tokens += missing


def _has_all_layers(routing: Sequence[Routing], times: Sequence[Time], n_layers: int) -> bool:
    """Whether each kind of record that the token has is there for every layer."""
    layers = {"routing": {event.layer for event in routing}}
    for event in times:
        if event.stage not in _LAYERLESS:
            layers.setdefault(event.stage.name, set()).add(event.layer)
    return all(len(seen) in (0, n_layers) for seen in layers.values())


def _read_file(path: Path) -> _File:
    decoder, digest, size = TraceDecoder(), hashlib.sha256(), 0
    events: list[Event] = []

    def keep(found: Iterable[Event | ConsoleText]) -> None:
        events.extend(event for event in found if not isinstance(event, ConsoleText))

    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                keep(decoder.feed(chunk))
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}", hint="check the path") from error
    keep(decoder.finish())
    if not events:
        raise _nothing_in(path, size, decoder.losses)
    if not any(isinstance(event, Info) for event in events):
        raise TraceError(
            f"{path}: {len(events)} records, but no INFO: model, shape and clock are unknown",
            hint="record from the firmware's start, or at least 64 tokens",
        )
    encoding = "mixed" if decoder.n_frames and decoder.n_lines else "binary" if decoder.n_frames else "text"
    return _File(Source(path.name, size, digest.hexdigest(), encoding), events, decoder.losses)


def _nothing_in(path: Path, size: int, losses: Losses) -> TraceError:
    if not size:
        return TraceError(f"{path} is empty", hint="a firmware built with --debug routing,memory,timing writes traces")
    bad = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in losses.items() if count)
    return TraceError(
        f"{path}: no trace record in {size} bytes" + (f" ({bad})" if bad else ""),
        hint="record the trace of a firmware built with --debug, with its line ends and zero bytes as they are",
    )


def _one_info(infos: Sequence[tuple[str, Info]]) -> Info:
    """Return what all agree on. Raises TraceError, naming the two that do not."""
    name, first = infos[0]
    for other_name, other in infos[1:]:
        if other.digest != first.digest:
            raise TraceError(
                f"{other_name} is of model {other.digest}, {name} of model {first.digest}",
                hint="report the traces of each model by themselves",
            )
        if other != first:
            raise TraceError(f"{other_name} and {name} differ in {_difference(first, other)}", hint="report them apart")
    return first


def _difference(first: Info, other: Info) -> str:
    for what, get in _INFO_PARTS:
        if get(first) != get(other):
            return f"{what}: {get(other)} and {get(first)}"
    return "INFO"


_INFO_PARTS: tuple[tuple[str, Callable[[Info], int]], ...] = (
    ("layers", lambda info: info.n_layers),
    ("experts", lambda info: info.n_experts),
    ("ticks a second", lambda info: info.clock_hz),
)


def _check_range(file: _File, info: Info) -> None:
    for index, event in enumerate(file.events):
        match event:
            case Routing():
                layer, expert = event.layer, max(event.experts)
            case Time() | Memory():
                layer, expert = event.layer, event.expert
            case _:
                continue
        if layer >= info.n_layers or expert >= info.n_experts:
            name = type(event).__name__.upper()
            raise TraceError(
                f"{file.source.name}: event {index} ({name}) is of layer {layer}, expert {expert}; "
                f"the model has {info.n_layers} layers of {info.n_experts} experts",
                hint="record the trace again, in the binary encoding if it was text",
            )


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)
