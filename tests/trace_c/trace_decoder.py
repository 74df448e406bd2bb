"""Reads the binary encoding of TRACE.md with the cobs package and zlib, and says what line a record is in text."""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass

from cobs import cobs

INFO, TOKEN, ROUTING, MEMORY, TIME = range(1, 6)
ATTENTION, ROUTER, EXPERT, HEAD, EMBEDDING, EXPERTS = range(1, 7)
UNKNOWN = 0xFFFFFFFF
_ESCAPED = re.compile(rb"\x7d(.)", re.DOTALL)
_NAMES = {ATTENTION: "attention", ROUTER: "router", EXPERTS: "experts"}


@dataclass(frozen=True)
class Frame:
    sequence: int
    dropped: int
    records: list[bytes]


def frames_of(data: bytes) -> list[Frame]:
    """Every frame between 00 and 00; anything that is not one fails."""
    assert data.startswith(b"\0") and data.endswith(b"\0")
    frames = []
    for wire in data.split(b"\0"):
        if not wire:
            continue
        assert not set(wire) & set(b"\n\r\x11\x13"), "a terminal would change this"
        raw = cobs.decode(_ESCAPED.sub(lambda found: bytes([found[1][0] ^ 0x20]), wire))
        body, crc = raw[:-4], int.from_bytes(raw[-4:], "little")
        assert zlib.crc32(body) == crc
        kind, sequence, zero, dropped = struct.unpack_from("<BHBI", body)
        assert (kind, zero, (len(body) - 8) % 16) == (0x54, 0, 0)
        assert 1 <= (len(body) - 8) // 16 <= 14
        frames.append(Frame(sequence, dropped, [body[at : at + 16] for at in range(8, len(body), 16)]))
    return frames


def records_of(data: bytes) -> list[bytes]:
    """The records of frames that follow each other without a gap."""
    frames = frames_of(data)
    assert [frame.sequence for frame in frames] == list(range(len(frames)))
    return [record for frame in frames for record in frame.records]


def tokens_of(records: list[bytes]) -> list[list[bytes]]:
    """Records by token, each list ending with its TOKEN; INFO and MEMORY left out."""
    tokens: list[list[bytes]] = [[]]
    for record in records:
        if record[0] not in (INFO, MEMORY):
            tokens[-1].append(record)
        if record[0] == TOKEN:
            tokens.append([])
    assert tokens.pop() == []
    return tokens


def routing_of(record: bytes) -> tuple[int, int, list[int], list[int]]:
    """Layer, first rank, experts, weights * 65535; what is not used is 0."""
    layer, first, n, *numbers = struct.unpack("<xBBB4B4H", record)
    assert not any(numbers[n:4] + numbers[4 + n :])
    return layer, first, numbers[:n], numbers[4 : 4 + n]


def time_of(record: bytes) -> tuple[int, int, int, int, int]:
    """Stage, layer, expert, start, ticks."""
    layer, expert, stage, start, ticks, zero = struct.unpack("<xBBBIII", record)
    assert zero == 0
    return stage, layer, expert, start, ticks


def line_of(record: bytes, hz: int) -> str:
    """The text of a record, from the words of TRACE.md; `hz` is the clock's."""
    kind = record[0]
    if kind == INFO:
        version, layers, last, clock = struct.unpack("<xBBBI8x", record)
        assert version == 1
        return f"[INFO] model={record[8:].hex()} layers={layers} experts={last + 1} clock={clock}Hz"
    if kind == TOKEN:
        phase, _, position, token, ticks = struct.unpack("<xBHIII", record)
        spent = "" if ticks == UNKNOWN else f": {_spent(ticks, hz)}"
        return f"[TOKEN] {('prefill', 'decode')[phase]} position={position} id={token}{spent}"
    if kind == ROUTING:
        layer, _, experts, weights = routing_of(record)
        scores = ",".join(f"{weight / 65535:.3f}" for weight in weights)
        return f"[ROUTING] layer={layer}, top_k=[{','.join(map(str, experts))}], scores=[{scores}]"
    if kind == MEMORY:
        layer, expert, zero, size, address = struct.unpack("<xBBBIQ", record)
        assert zero == 0
        return f"[MEMORY] expert_{layer}_{expert} @ {address:#x} (size={size})"
    assert kind == TIME
    stage, layer, expert, _, ticks = time_of(record)
    what = {EXPERT: f"expert_{layer}_{expert} FFN", HEAD: "head", EMBEDDING: "embedding"}
    return f"[TIME] {what.get(stage) or f'layer_{layer} {_NAMES[stage]}'}: {_spent(ticks, hz)}"


def _spent(ticks: int, hz: int) -> str:
    tenths = (2 * 10**7 * ticks + hz) // (2 * hz)  # rounded half up
    megahertz = f"{hz / 1e6:.6f}".rstrip("0").rstrip(".")
    return f"{ticks} ticks ({tenths // 10}.{tenths % 10}us @ {megahertz}MHz)"
