"""The text encoding: one line a record (runtime_c/trace/TRACE.md), read and written."""

from __future__ import annotations

import re
from collections.abc import Callable

from colibri_build.trace_events import Dropped, Event, Gap, Info, Memory, Phase, Routing, Stage, Time, Token

TAG = re.compile(rb"\[(?:INFO|TOKEN|ROUTING|MEMORY|TIME|DROPPED)\] ")
_TICKS = r"(?P<ticks>\d{1,10}) ticks \((?P<us>\d+(?:\.\d+)?)us @ (?P<mhz>\d+(?:\.\d+)?)MHz\)"
_LAYER_STAGES = {"attention": Stage.ATTENTION, "router": Stage.ROUTER, "experts": Stage.EXPERTS}
_TOKEN_STAGES = {"head": Stage.HEAD, "embedding": Stage.EMBEDDING}
_UNIQUE = {stage: name for name, stage in (_LAYER_STAGES | _TOKEN_STAGES).items()}


def read_line(line: str) -> Event | None:
    """Return the event of a line from its `[TAG]` on, None if it is malformed.

    A ROUTING line does not say its first rank: 0 stands for it (see TraceDecoder).
    """
    for pattern, read in _READERS:
        if found := pattern.fullmatch(line.rstrip()):
            return read(found)
    return None


def _info(found: re.Match[str]) -> Event:
    return Info(found["model"], int(found["layers"]), int(found["experts"]), int(found["clock"]))


def _token(found: re.Match[str]) -> Event:
    ticks = None if found["ticks"] is None else int(found["ticks"])
    return Token(Phase[found["phase"].upper()], int(found["position"]), int(found["id"]), ticks)


def _routing(found: re.Match[str]) -> Event | None:
    experts = tuple(int(word) for word in found["experts"].split(","))
    weights = tuple(float(word) for word in found["weights"].split(","))
    return Routing(int(found["layer"]), 0, experts, weights) if len(experts) == len(weights) else None


def _memory(found: re.Match[str]) -> Event:
    return Memory(int(found["layer"]), int(found["expert"]), int(found["size"]), int(found["address"], 16))


def _expert_time(found: re.Match[str]) -> Event:
    return Time(Stage.EXPERT, int(found["layer"]), int(found["expert"]), None, int(found["ticks"]))


def _layer_time(found: re.Match[str]) -> Event:
    return Time(_LAYER_STAGES[found["stage"]], int(found["layer"]), 0, None, int(found["ticks"]))


def _token_time(found: re.Match[str]) -> Event:
    return Time(_TOKEN_STAGES[found["stage"]], 0, 0, None, int(found["ticks"]))


_READERS: list[tuple[re.Pattern[str], Callable[[re.Match[str]], Event | None]]] = [
    (re.compile(pattern), read)
    for pattern, read in (
        (
            r"\[ROUTING\] layer=(?P<layer>\d{1,3}), top_k=\[(?P<experts>\d{1,3}(?:,\d{1,3})*)\], "
            r"scores=\[(?P<weights>\d\.\d+(?:,\d\.\d+)*)\]",
            _routing,
        ),
        (rf"\[TIME\] expert_(?P<layer>\d{{1,3}})_(?P<expert>\d{{1,3}}) FFN: {_TICKS}", _expert_time),
        (rf"\[TIME\] layer_(?P<layer>\d{{1,3}}) (?P<stage>attention|router|experts): {_TICKS}", _layer_time),
        (rf"\[TIME\] (?P<stage>head|embedding): {_TICKS}", _token_time),
        (
            rf"\[TOKEN\] (?P<phase>prefill|decode) position=(?P<position>\d{{1,10}}) id=(?P<id>\d{{1,10}})(?:: {_TICKS})?",
            _token,
        ),
        (
            r"\[MEMORY\] expert_(?P<layer>\d{1,3})_(?P<expert>\d{1,3}) @ 0x(?P<address>[0-9a-f]{1,16}) "
            r"\(size=(?P<size>\d{1,10})\)",
            _memory,
        ),
        (
            r"\[INFO\] model=(?P<model>[0-9a-f]{16}) layers=(?P<layers>\d{1,3}) experts=(?P<experts>\d{1,3}) "
            r"clock=(?P<clock>\d{1,10})Hz",
            _info,
        ),
        (r"\[DROPPED\] (?P<total>\d{1,10}) records", lambda found: Dropped(int(found["total"]))),
    )
]


def format_record(event: Event, clock_hz: int) -> str:
    """Return the text line of an event, without line end, as the firmware writes it. Raises ValueError for a Gap."""
    match event:
        case Info():
            return f"[INFO] model={event.digest} layers={event.n_layers} experts={event.n_experts} clock={event.clock_hz}Hz"
        case Routing():
            experts = ",".join(map(str, event.experts))
            weights = ",".join(f"{weight:.3f}" for weight in event.weights)
            return f"[ROUTING] layer={event.layer}, top_k=[{experts}], scores=[{weights}]"
        case Memory():
            return f"[MEMORY] expert_{event.layer}_{event.expert} @ 0x{event.address:x} (size={event.size})"
        case Time():
            return f"[TIME] {_time_name(event)}: {_ticks(event.ticks, clock_hz)}"
        case Token():
            timed = "" if event.ticks is None else f": {_ticks(event.ticks, clock_hz)}"
            return f"[TOKEN] {event.phase.name.lower()} position={event.position} id={event.id}{timed}"
        case Dropped():
            return f"[DROPPED] {event.total} records"
        case Gap():
            raise ValueError("a gap is no record")


def _time_name(event: Time) -> str:
    if event.stage is Stage.EXPERT:
        return f"expert_{event.layer}_{event.expert} FFN"
    name = _UNIQUE[event.stage]
    return f"layer_{event.layer} {name}" if name in _LAYER_STAGES else name


def _ticks(ticks: int, clock_hz: int) -> str:
    hz = max(clock_hz, 1)
    tenths = (ticks * 10_000_000 + hz // 2) // hz
    megahertz = f"{hz // 1_000_000}.{hz % 1_000_000:06}".rstrip("0").rstrip(".")
    return f"{ticks} ticks ({tenths // 10}.{tenths % 10}us @ {megahertz}MHz)"
