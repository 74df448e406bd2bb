"""Writes safetensors files straight from their published format, also ones that the library would refuse to write."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Entry = tuple[str, tuple[int, ...], bytes]  # (dtype as the file spells it, shape, little-endian values)


def to_bf16(values: NDArray[Any]) -> NDArray[np.uint16]:
    """float32 -> bfloat16 bits, round to nearest even. Finite values only."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """bfloat16 bits -> the same values as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def entry(values: NDArray[Any], dtype: str = "F32") -> Entry:
    """`values` as F32, F16 or BF16."""
    if dtype == "BF16":
        data = to_bf16(values).astype("<u2").tobytes()
    else:
        data = np.ascontiguousarray(values, {"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()
    return dtype, values.shape, data


def stored_values(values: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    """What a reader must find, as float32, after `entry(values, dtype)` was written."""
    if dtype == "BF16":
        return from_bf16(to_bf16(values)).reshape(values.shape)
    return values.astype({"F32": np.float32, "F16": np.float16}[dtype]).astype(np.float32)


def write_safetensors(path: Path, entries: Mapping[str, Entry] | Iterable[tuple[str, Entry]]) -> None:
    """8 bytes header length, JSON header, data. Pairs instead of a mapping can carry one name twice."""
    pairs = list(entries.items() if isinstance(entries, Mapping) else entries)
    fields, offset = ['"__metadata__":{"format":"pt"}'], 0
    for name, (dtype, shape, data) in pairs:
        described = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        fields.append(f"{json.dumps(name)}:{json.dumps(described)}")
        offset += len(data)
    header = ("{" + ",".join(fields) + "}").encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for _, (_, _, data) in pairs:
            file.write(data)
