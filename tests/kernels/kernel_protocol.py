"""Cases for kernel_harness.c: what goes in, what has to come out, and the two binary files between.

A case in the file: int32 operation, int32 ints[8], float32 floats[2], int32 n_buffers; then for each buffer int32
bytes, int32 alignment, the bytes padded to 4. A result: every buffer again, padded to 4, then int32 status, float32 result.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

OPERATIONS = (  # the position is the number
    *("quantize_activation", "matvec_w4", "matvec_w8", "matvec_f32", "matvec_f16"),
    *("rms_norm", "rms_norm_in_place", "swiglu", "add_scaled", "add", "exp_shifted", "to_f16"),
    *("attention_scores", "attention_mix", "scalar", "matmul_w4", "matmul_w8", "maximum"),
    *("write_before_buffer", "write_past_page"),
)
SENTINEL = 0xA5  # bytes of an output buffer before the call


def untouched(count: int, dtype: Any) -> Array:
    """An output buffer as the kernel finds it."""
    return np.full(count * np.dtype(dtype).itemsize, SENTINEL, np.uint8).view(dtype)


@dataclass(frozen=True)
class Case:
    """One kernel call. Buffers missing from `expected` have to come back unchanged."""

    name: str
    operation: str
    buffers: list[Array]
    expected: dict[int, Array]
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()
    status: int = 0
    result: float = 0.0
    aligned: frozenset[int] = field(default_factory=frozenset)  # buffers that start at a multiple of 64

    def encode(self) -> bytes:
        """The case as the harness reads it."""
        ints = list(self.ints) + [0] * (8 - len(self.ints))
        floats = list(self.floats) + [0.0] * (2 - len(self.floats))
        parts = [struct.pack("<9i2fi", OPERATIONS.index(self.operation), *ints, *floats, len(self.buffers))]
        for index, buffer in enumerate(self.buffers):
            data = buffer.tobytes()
            alignment = 64 if index in self.aligned else buffer.dtype.itemsize
            parts.append(struct.pack("<2i", len(data), alignment) + data + bytes(-len(data) % 4))
        return b"".join(parts)


def encode_cases(cases: list[Case]) -> bytes:
    """The case file."""
    return b"".join(case.encode() for case in cases)


def differences(cases: list[Case], results: bytes) -> list[str]:
    """One line for each case whose result is not the expected bits."""
    lines = []
    offset = 0
    for case in cases:
        for index, buffer in enumerate(case.buffers):
            got = np.frombuffer(results, buffer.dtype, buffer.size, offset)
            offset += buffer.nbytes + -buffer.nbytes % 4
            wrong = _unequal(got, case.expected.get(index, buffer))
            if wrong.size:
                first = wrong[0]
                want = case.expected.get(index, buffer)[first]
                lines.append(
                    f"{case.name}: buffer {index}: {wrong.size} wrong, first [{first}]: {got[first]} != {want}"
                )
        status, result = struct.unpack_from("<if", results, offset)
        offset += 8
        returned, wanted = (np.array([value], np.float32) for value in (result, case.result))
        if status != case.status or _unequal(returned, wanted).size:
            lines.append(f"{case.name}: returned {status}, {result!r}, not {case.status}, {case.result!r}")
    if offset != len(results):
        lines.append(f"{len(results)} bytes of results, {offset} expected")
    return lines


def _unequal(got: Array, want: Array) -> Array:
    """Indices where the bits differ; any NaN equals any other (payloads are not part of the arithmetic)."""
    if got.dtype != want.dtype or got.shape != want.shape:
        raise ValueError(f"expected {want.dtype}{want.shape}, the buffer is {got.dtype}{got.shape}")
    bits = f"u{got.dtype.itemsize}"
    different = got.view(bits) != want.view(bits)
    if got.dtype.kind == "f":
        different &= ~(np.isnan(got) & np.isnan(want))
    return np.asarray(np.flatnonzero(different))
