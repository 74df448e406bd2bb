"""One tensor <-> the bytes of its part, with every rule of FORMAT.md checked in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import Format, QuantizedTensor
from colibri_build.errors import PackError
from colibri_build.layout import PartLayout
from colibri_build.pack import p8
from colibri_build.reference.numbers import BLOCK_INPUTS, PANEL_ROWS, ceil_div, group_count

Bytes = NDArray[np.uint8]
_VALUE_TYPES = {Format.F32: "<f4", Format.F16: "<f2"}


def encode_part(tensor: QuantizedTensor, part: PartLayout, group_size: int) -> tuple[bytes, bytes]:
    """(codes, scales) as they are in the file. Raises PackError for a tensor that does not fit its part."""
    check_tensor(tensor, part, group_size)
    if part.format in _VALUE_TYPES:
        return np.ascontiguousarray(tensor.codes, _VALUE_TYPES[part.format]).tobytes(), b""
    assert tensor.scales is not None
    encode = p8.w4_codes_to_bytes if part.format is Format.W4 else p8.w8_codes_to_bytes
    return encode(tensor.codes), p8.scales_to_bytes(tensor.scales, tensor.zeros)


def decode_part(data: Bytes, part: PartLayout, group_size: int) -> QuantizedTensor:
    """The tensor of one part; `data` is the whole file."""
    spec = part.spec
    codes = data[part.offset : part.offset + part.code_bytes].tobytes()
    if part.format in _VALUE_TYPES:
        values = np.frombuffer(codes, _VALUE_TYPES[part.format]).reshape(spec.rows, spec.cols)
        return QuantizedTensor(spec, part.format, values)
    decode = p8.w4_codes_from_bytes if part.format is Format.W4 else p8.w8_codes_from_bytes
    scales, zeros = p8.scales_from_bytes(
        data[part.scale_offset : part.scale_offset + part.scale_bytes].tobytes(),
        spec.rows,
        group_count(spec.cols, group_size),
        with_zeros=part.format is Format.W4,
    )
    return QuantizedTensor(spec, part.format, decode(codes, spec.rows, spec.cols), scales, zeros)


def check_tensor(tensor: QuantizedTensor, part: PartLayout, group_size: int) -> None:
    """Refuse a tensor whose format, shape, type or range is not the one of its part. Raises PackError."""
    spec, name = part.spec, part.spec.name
    if (tensor.spec, tensor.format) != (spec, part.format):
        raise PackError(
            f"tensor {name}: is {tensor.spec.kind} {tensor.spec.rows}x{tensor.spec.cols} in {tensor.format}, "
            f"the model needs {spec.kind} {spec.rows}x{spec.cols} in {part.format}",
            hint="quantize the checkpoint again",
        )
    groups = (spec.rows, group_count(spec.cols, group_size))
    if part.format in _VALUE_TYPES:
        shape = spec.shape if tensor.codes.ndim == 1 else (spec.rows, spec.cols)
        _check_array(name, "values", tensor.codes, _VALUE_TYPES[part.format], shape)
        return
    code_type = np.uint8 if part.format is Format.W4 else np.int8
    _check_array(name, "codes", tensor.codes, code_type, (spec.rows, spec.cols))
    _check_array(name, "scales", tensor.scales, np.float16, groups)
    if part.format is Format.W4:
        _check_array(name, "zero points", tensor.zeros, np.uint8, groups)
        _check_range(name, "codes", tensor.codes, 0, 15)
        _check_range(name, "zero points", tensor.zeros, 0, 15)
    else:
        _check_range(name, "codes", tensor.codes, -127, 127)


def check_padding(data: Bytes, part: PartLayout, group_size: int) -> None:
    """Refuse anything but zeros for rows past the last and inputs past the last. `data` is the whole file."""
    if part.format in _VALUE_TYPES:
        return
    rows, cols = part.spec.rows, part.spec.cols
    panels, blocks = ceil_div(rows, PANEL_ROWS), ceil_div(cols, BLOCK_INPUTS)
    codes = data[part.offset : part.offset + part.code_bytes].reshape(panels, blocks, -1)
    decode: Any = p8.w4_codes_from_bytes if part.format is Format.W4 else p8.w8_codes_from_bytes
    last_panel = decode(codes[-1].tobytes(), PANEL_ROWS, blocks * BLOCK_INPUTS)
    last_block = decode(codes[:, -1].tobytes(), panels * PANEL_ROWS, BLOCK_INPUTS)
    scales, zeros = p8.scales_from_bytes(
        data[part.scale_offset : part.scale_offset + part.scale_bytes].tobytes(),
        panels * PANEL_ROWS,
        group_count(cols, group_size),
        with_zeros=part.format is Format.W4,
    )
    padding = [last_panel[rows - (panels - 1) * PANEL_ROWS :], last_block[:, cols - (blocks - 1) * BLOCK_INPUTS :]]
    padding += [scales.view(np.uint16)[rows:], *([] if zeros is None else [zeros[rows:]])]
    if any(array.any() for array in padding):
        raise PackError(f"tensor {part.spec.name}: rows or inputs past its end are not zero")


def gaps(parts: tuple[PartLayout, ...], file_bytes: int) -> Iterator[tuple[int, int]]:
    """(start, end) of every run of padding bytes between the parts of a file."""
    at = 0
    for part in parts:
        yield at, part.offset
        at = part.offset + part.code_bytes
        if part.scale_bytes:
            yield at, part.scale_offset
            at = part.end
    yield at, file_bytes


def _check_array(name: str, what: str, array: NDArray[Any] | None, dtype: Any, shape: tuple[int, ...]) -> None:
    if array is None:
        raise PackError(f"tensor {name}: has no {what}", hint="quantize the checkpoint again")
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        raise PackError(
            f"tensor {name}: {what} are {array.dtype} {list(array.shape)}, not {np.dtype(dtype)} {list(shape)}",
            hint="quantize the checkpoint again",
        )
    if array.dtype.kind == "f":
        bad = array.size - int(np.count_nonzero(np.isfinite(array)))
        if bad:
            raise PackError(
                f"tensor {name}: {bad} of {array.size} {what} are NaN or infinite",
                hint="check the checkpoint for overflow, or quantize this kind in a larger format",
            )


def _check_range(name: str, what: str, array: NDArray[Any] | None, low: int, high: int) -> None:
    assert array is not None
    least, most = int(array.min()), int(array.max())
    if least < low or most > high:
        raise PackError(f"tensor {name}: {what} reach from {least} to {most}, allowed are {low}..{high}")
