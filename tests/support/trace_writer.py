"""Writes traces as runtime_c/trace/TRACE.md states them, in both encodings, without the code under test."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass, field

MODEL = "2f6c0a5de1b94c77"
STAGES = {"attention": 1, "router": 2, "expert": 3, "head": 4, "embedding": 5, "experts": 6}
ADDRESS = 0x7F8A3C000000
EXPERT_BYTES = 1245184


@dataclass
class TraceWriter:
    """Records in the order of the firmware, kept as (16 bytes, text line)."""

    layers: int = 4
    experts: int = 8
    clock: int = 62_500_000
    model: str = MODEL
    records: list[tuple[bytes, str]] = field(default_factory=list)

    def _add(self, record: bytes, line: str) -> None:
        assert len(record) == 16
        self.records.append((record, line))

    def _spent(self, ticks: int) -> str:
        return f"{ticks} ticks ({ticks * 1e6 / self.clock:.1f}us @ {self.clock / 1e6:g}MHz)"

    def info(self) -> None:
        head = struct.pack("<BBBBI", 1, 1, self.layers, self.experts - 1, self.clock)
        line = f"[INFO] model={self.model} layers={self.layers} experts={self.experts} clock={self.clock}Hz"
        self._add(head + bytes.fromhex(self.model), line)

    def token(self, phase: str, position: int, token_id: int, ticks: int | None, lost: int = 0) -> None:
        number = 0xFFFFFFFF if ticks is None else ticks
        record = struct.pack("<BBHIII", 2, phase == "decode", lost, position, token_id, number)
        spent = "" if ticks is None else f": {self._spent(ticks)}"
        self._add(record, f"[TOKEN] {phase} position={position} id={token_id}{spent}")

    def routing(self, layer: int, experts: list[int], weights: list[float]) -> None:
        for first in range(0, len(experts), 4):
            ids, parts = experts[first : first + 4], weights[first : first + 4]
            pad = [0] * (4 - len(ids))
            words = [round(w * 65535) for w in parts]
            record = struct.pack("<BBBB4B4H", 3, layer, first, len(ids), *ids, *pad, *words, *pad)
            scores = ",".join(f"{w:.3f}" for w in parts)
            self._add(record, f"[ROUTING] layer={layer}, top_k=[{','.join(map(str, ids))}], scores=[{scores}]")

    def memory(self, layer: int, expert: int, address: int, size: int = EXPERT_BYTES) -> None:
        record = struct.pack("<BBBBIQ", 4, layer, expert, 0, size, address)
        self._add(record, f"[MEMORY] expert_{layer}_{expert} @ 0x{address:x} (size={size})")

    def time(self, stage: str, layer: int, expert: int, start: int, ticks: int) -> None:
        record = struct.pack("<BBBBIII", 5, layer, expert, STAGES[stage], start, ticks, 0)
        names = {"expert": f"expert_{layer}_{expert} FFN", "head": "head", "embedding": "embedding"}
        self._add(record, f"[TIME] {names.get(stage, f'layer_{layer} {stage}')}: {self._spent(ticks)}")

    def text(self) -> bytes:
        return "".join(line + "\r\n" for _, line in self.records).encode()

    def bodies(self, per_frame: int = 14, dropped: int = 0) -> list[bytes]:
        parts = [self.records[at : at + per_frame] for at in range(0, len(self.records), per_frame)]
        return [
            struct.pack("<BHxI", 0x54, number % 65536, dropped) + b"".join(record for record, _ in part)
            for number, part in enumerate(parts)
        ]

    def binary(self) -> bytes:
        return b"".join(map(frame, self.bodies()))


def frame(body: bytes) -> bytes:
    """00 escaped(COBS(body, crc)) 00, written from PROTOCOL.md."""
    packet = body + struct.pack("<I", zlib.crc32(body))
    stuffed = b"".join(bytes((len(run) + 1,)) + run for run in packet.split(b"\0"))
    assert len(stuffed) == len(packet) + 1 <= 254, "no run of 254 bytes without a zero in these traces"
    escaped = b"".join(bytes((0x7D, b ^ 0x20)) if b in b"\n\r\x11\x13\x7d" else bytes((b,)) for b in stuffed)
    return b"\0" + escaped + b"\0"


def write_run(
    writer: TraceWriter, prefill: int = 5, decode: int = 20, top_k: int = 2, seed: int = 1, slow: float = 1.0
) -> None:
    """One prompt and its answer: skewed routing, stages that add up, every 16th token slow."""
    rng = random.Random(seed)
    favourites = [[rng.random() ** 2 + 0.05 for _ in range(writer.experts)] for _ in range(writer.layers)]
    writer.info()
    for position in range(prefill + decode):
        if position and position % 64 == 0:
            writer.info()
        now = _stage(writer, "embedding", 0, 0, rng, 200)
        for layer in range(writer.layers):
            now = _layer(writer, layer, now, rng, favourites[layer], top_k, slow, 40 * position)
        if position >= prefill - 1:
            now = _stage(writer, "head", 0, now, rng, 9000)
        now += rng.randrange(100, 400) + (60_000 if position % 16 == 9 else 0)
        writer.token("prefill" if position < prefill else "decode", position, rng.randrange(512), now)


def write_memory(writer: TraceWriter, gap: int = 4096) -> None:
    """All experts one behind the other, with a gap before each layer."""
    address = ADDRESS
    for layer in range(writer.layers):
        for expert in range(writer.experts):
            writer.memory(layer, expert, address)
            address += EXPERT_BYTES
        address += gap


def _stage(writer: TraceWriter, name: str, layer: int, start: int, rng: random.Random, about: int) -> int:
    ticks = int(about * rng.uniform(0.9, 1.2))
    writer.time(name, layer, 0, start, ticks)
    return start + ticks


def _layer(
    writer: TraceWriter,
    layer: int,
    now: int,
    rng: random.Random,
    favourites: list[float],
    top_k: int,
    slow: float,
    context: int,
) -> int:
    now = _stage(writer, "attention", layer, now, rng, int((1500 + context) * slow))
    now = _stage(writer, "router", layer, now, rng, 150)
    scores = sorted(((weight * rng.random(), expert) for expert, weight in enumerate(favourites)), reverse=True)[:top_k]
    total = sum(score for score, _ in scores)
    chosen, weights = [expert for _, expert in scores], [score / total for score, _ in scores]
    writer.routing(layer, chosen, weights)
    start = now
    for expert in chosen:
        ticks = int(2450 * rng.uniform(0.9, 1.3) * slow)
        writer.time("expert", layer, expert, now, ticks)
        now += ticks
    writer.time("experts", layer, 0, start, now - start)
    return now


def example(prefill: int = 5, decode: int = 20, **options: float) -> TraceWriter:
    """A writer with memory and one run."""
    writer = TraceWriter()
    writer.info()
    write_memory(writer)
    write_run(writer, prefill, decode, **options)  # type: ignore[arg-type]
    return writer
