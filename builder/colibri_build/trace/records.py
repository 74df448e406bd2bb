"""The binary encoding: frame bodies and their 16-byte records (runtime_c/trace/TRACE.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from colibri_build.trace_events import Event, Info, Memory, Phase, Routing, Stage, Time, Token

TRACE_KIND = 0x54
RECORD_BYTES = 16
VERSION = 1
UNKNOWN_TICKS = 0xFFFFFFFF
HEADER = struct.Struct("<BHxI")  # kind, sequence number, dropped
_INFO = struct.Struct("<xBBBI8s")
_TOKEN = struct.Struct("<xBHIII")
_ROUTING = struct.Struct("<xBBB4B4H")
_MEMORY = struct.Struct("<xBBxIQ")
_TIME = struct.Struct("<xBBBIIxxxx")
_WEIGHT_ONE = 65535
_RANKS = 4


def split_body(body: bytes) -> tuple[int, int, list[bytes]] | None:
    """Return sequence number, drop count and records of a trace frame's body, None if it is none."""
    n_records, rest = divmod(len(body) - HEADER.size, RECORD_BYTES)
    if n_records < 1 or rest or body[0] != TRACE_KIND:
        return None
    _, sequence, dropped = HEADER.unpack_from(body)
    return sequence, dropped, list(_pieces(body))


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[at : at + RECORD_BYTES] for at in range(HEADER.size, len(body), RECORD_BYTES))


def read_record(record: bytes) -> Event | None:
    """Return the event of one record of 16 bytes, None if its kind, stage, phase or version is unknown."""
    read = _READERS.get(record[0])
    return read(record) if read else None


def _info(record: bytes) -> Event | None:
    version, n_layers, last_expert, clock_hz, digest = _INFO.unpack(record)
    if version != VERSION:
        return None
    return Info(digest.hex(), n_layers, last_expert + 1, clock_hz, version)


def _token(record: bytes) -> Event | None:
    phase, lost, position, token_id, ticks = _TOKEN.unpack(record)
    if phase > Phase.DECODE:
        return None
    return Token(Phase(phase), position, token_id, None if ticks == UNKNOWN_TICKS else ticks, lost)


def _routing(record: bytes) -> Event | None:
    layer, first_rank, n, *numbers = _ROUTING.unpack(record)
    if not 1 <= n <= _RANKS:
        return None
    experts, weights = numbers[:n], numbers[_RANKS : _RANKS + n]
    return Routing(layer, first_rank, tuple(experts), tuple(weight / _WEIGHT_ONE for weight in weights))


def _memory(record: bytes) -> Event | None:
    return Memory(*_MEMORY.unpack(record))


def _time(record: bytes) -> Event | None:
    layer, expert, stage, start, ticks = _TIME.unpack(record)
    if stage not in _STAGES:
        return None
    return Time(Stage(stage), layer, expert, start, ticks)


_STAGES = frozenset(Stage)
_READERS = {1: _info, 2: _token, 3: _routing, 4: _memory, 5: _time}
