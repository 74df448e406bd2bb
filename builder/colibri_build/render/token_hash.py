"""A hash table without probing over the texts of tokens: one pilot, one slot, one comparison for each look-up.

Every key of a bucket has the slot ((low + pilot * middle) * slots) >> 32 of its hash; the pilot of a bucket is the first
number with which its keys meet neither each other nor those of the buckets before. runtime_c/tokenizer/vocabulary.c
computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colibri_build.errors import RenderError

LOAD = 0.91
KEYS_A_BUCKET = 2
PILOTS = 256
SEEDS = 16
MULTIPLIER = 0x9E3779B97F4A7C15
_LENGTH_MULTIPLIER = 0xD1B54A32D192ED03
_M32 = 0xFFFFFFFF
_U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class TokenHash:
    """The finished table. `slots` holds the id of each slot's token, 0 where there is none."""

    seed: int
    pilots: NDArray[np.uint8]
    slots: NDArray[np.uint32]


def hash_texts(texts: Sequence[bytes], seed: int) -> _U64:
    """64-bit hash of each text; none of them is empty."""
    hashes = np.zeros(len(texts), np.uint64)
    by_length: dict[int, list[int]] = {}
    for index, text in enumerate(texts):
        by_length.setdefault(len(text), []).append(index)
    for length, indices in by_length.items():
        rows = np.frombuffer(b"".join(texts[index] for index in indices), np.uint8).reshape(len(indices), length)
        hashes[indices] = _hash_rows(rows.astype(np.uint64), seed)
    return hashes


def _little_endian(columns: _U64) -> _U64:
    shifts = np.arange(columns.shape[1], dtype=np.uint64) * np.uint64(8)
    values: _U64 = np.bitwise_or.reduce(columns << shifts, axis=1)
    return values


def _hash_rows(rows: _U64, seed: int) -> _U64:
    n = rows.shape[1]
    state = np.full(len(rows), (n * _LENGTH_MULTIPLIER + seed) % 2**64, np.uint64)
    whole = n - n % 8
    for at in range(0, whole, 8):
        state = _mix(state ^ _little_endian(rows[:, at : at + 8]))
    rest = n - whole
    if rest >= 4:
        tail = _little_endian(rows[:, whole : whole + 4]) | _little_endian(rows[:, n - 4 : n]) << np.uint64(32)
        state = _mix(state ^ tail)
    elif rest > 0:
        state = _mix(state ^ _little_endian(rows[:, [whole, whole + rest // 2, n - 1]]))
    return state


def _mix(state: _U64) -> _U64:
    state = state * np.uint64(MULTIPLIER)
    return state ^ state >> np.uint64(32)


def build_token_hash(ids: Mapping[bytes, int]) -> TokenHash:
    """Build the table of `ids` by text. The same tokens give the same table."""
    texts = list(ids)
    values = np.fromiter(ids.values(), np.uint32, len(texts))
    n_slots = max(2, int(len(texts) / LOAD))
    n_buckets = max(1, len(texts) // KEYS_A_BUCKET)
    for index in range(SEEDS):
        seed = index * MULTIPLIER % 2**64
        table = _build(hash_texts(texts, seed), values, n_slots, n_buckets)
        if table is not None:
            return TokenHash(seed, *table)
    raise RenderError(
        f"tokenizer: no hash table found for {len(texts)} tokens in {SEEDS} tries",
        hint="report this with the tokenizer.json",
    )


def _build(
    hashes: _U64, values: NDArray[np.uint32], n_slots: int, n_buckets: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint32]] | None:
    buckets = (hashes >> np.uint64(32)) * np.uint64(n_buckets) >> np.uint64(32)
    order = np.argsort(buckets, kind="stable")
    bounds = np.searchsorted(buckets[order], np.arange(n_buckets + 1))
    starts, sizes = bounds.tolist(), np.diff(bounds)
    numbers, ids = hashes[order].tolist(), values[order].tolist()
    taken = bytearray(n_slots)
    pilots, slots = np.zeros(n_buckets, np.uint8), np.zeros(n_slots, np.uint32)
    for bucket in np.argsort(-sizes, kind="stable").tolist():
        first, end = starts[bucket], starts[bucket + 1]
        found = _find_pilot([(number & _M32, number >> 16 & _M32) for number in numbers[first:end]], taken)
        if found is None:
            return None
        pilots[bucket], places = found
        for place, token in zip(places, ids[first:end], strict=True):
            taken[place] = True
            slots[place] = token
    return pilots, slots


def _find_pilot(keys: Sequence[tuple[int, int]], taken: bytearray) -> tuple[int, list[int]] | None:
    """The first pilot that puts the keys (low, middle) into different free slots, and the slots."""
    for pilot in range(PILOTS):
        places: list[int] = []
        for low, middle in keys:
            place = (low + pilot * middle & _M32) * len(taken) >> 32
            if taken[place] or place in places:
                break
            places.append(place)
        else:
            return pilot, places
    return None


def pack_bits(values: NDArray[np.uint32], bits: int) -> bytes:
    """Values of `bits` bits each, lowest bit first; 4 more bytes, so that a 32-bit load may start at the last one."""
    columns = (values[:, None] >> np.arange(bits, dtype=np.uint32) & 1).astype(np.uint8)
    return np.packbits(columns.reshape(-1), bitorder="little").tobytes() + bytes(4)
