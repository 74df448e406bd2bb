"""Round-to-nearest quantization of matrices in groups of consecutive inputs (formats w4 and w8 of FORMAT.md).

A group's scale is rounded to fp16 before its codes are computed, so the codes are the nearest for the scale that is
stored. All arithmetic is elementwise float32: the result does not depend on the machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, Format, QuantizedTensor, TensorSpec
from colibri_build.errors import QuantizeError
from colibri_build.layout import ALIGNMENT, align, code_bytes, scale_bytes
from colibri_build.reference.numbers import pad_to_groups

F16_MAX = float(np.finfo(np.float16).max)
W4_MAX_CODE = 15
W8_MAX_CODE = 127
_HALF_ULP = np.float32(2.0**-11)  # largest relative rounding error of a normal fp16 number


class Codes(NamedTuple):
    """A matrix in w4 or w8: codes [rows, cols] (uint8 or int8), scales [rows, n_groups], zeros likewise (w4)."""

    codes: NDArray[Any]
    scales: NDArray[np.float16]
    zeros: NDArray[np.uint8] | None


def _fp16_scale(scale: F32, name: str) -> NDArray[np.float16]:
    """The fp16 number nearest to each scale; among subnormals, whose steps are coarse, the next one above.

    Rounding a subnormal scale down could cut a third off the range of its group. Raises QuantizeError where fp16
    overflows.
    """
    largest = float(scale.max(initial=0.0))
    if largest > F16_MAX:
        raise QuantizeError(
            f"{name}: a group needs the scale {largest:.6g}, but fp16 ends at {F16_MAX:.0f}",
            hint="check the checkpoint: weights of this size are damaged or not yet scaled",
        )
    rounded = scale.astype(np.float16)
    too_small = rounded.astype(np.float32) < scale * (1 - _HALF_ULP)
    above = np.nextafter(np.where(too_small, rounded, np.float16(0)), np.float16(np.inf))
    return np.where(too_small, above, rounded).astype(np.float16)


def _steps(groups: F32, scales: NDArray[np.float16]) -> F32:
    """groups [rows, n_groups, G] in units of their scale; 0 where the scale is 0."""
    divisor = np.where(scales > 0, scales, np.float16(1)).astype(np.float32)
    return np.asarray(groups / divisor[..., None], np.float32)


def _ungroup(codes: NDArray[Any], cols: int) -> NDArray[Any]:
    return np.ascontiguousarray(codes.reshape(codes.shape[0], -1)[:, :cols])


def quantize_w4(weights: F32, group_size: int, shrink: F32 | None = None, name: str = "matrix") -> Codes:
    """Asymmetric 4-bit codes: w is about (code - zero) * scale, code and zero in 0..15.

    The range of a group always contains 0, because a zero point in 0..15 cannot express any other; so constant and
    one-sided groups keep their largest value, up to the rounding of the scale. A group of zeros has scale, zero point
    and codes 0. `shrink` [rows, n_groups] in (0, 1] narrows the range of each group; values outside are clipped.
    """
    groups = pad_to_groups(weights, group_size)
    low = np.minimum(groups.min(axis=-1), np.float32(0))
    high = np.maximum(groups.max(axis=-1), np.float32(0))
    if shrink is not None:
        low, high = low * shrink, high * shrink
    scales = _fp16_scale(high / np.float32(W4_MAX_CODE) - low / np.float32(W4_MAX_CODE), name)
    zeros = np.clip(np.rint(-_steps(low[..., None], scales)), 0, W4_MAX_CODE)
    codes = np.clip(np.rint(_steps(groups, scales)) + zeros, 0, W4_MAX_CODE)
    return Codes(_ungroup(codes.astype(np.uint8), weights.shape[1]), scales, zeros[..., 0].astype(np.uint8))


def quantize_w8(weights: F32, group_size: int, shrink: F32 | None = None, name: str = "matrix") -> Codes:
    """Symmetric 8-bit codes: w is about code * scale, code in -127..127. `shrink` as in `quantize_w4`."""
    groups = pad_to_groups(weights, group_size)
    largest = np.abs(groups).max(axis=-1)
    if shrink is not None:
        largest = largest * shrink
    scales = _fp16_scale((largest / np.float32(W8_MAX_CODE)).astype(np.float32), name)
    codes = np.clip(np.rint(_steps(groups, scales)), -W8_MAX_CODE, W8_MAX_CODE)
    return Codes(_ungroup(codes.astype(np.int8), weights.shape[1]), scales, None)


def quantize_matrix(
    weights: F32, fmt: Format, group_size: int, shrink: F32 | None = None, name: str = "matrix"
) -> Codes:
    """Codes of a matrix [rows, cols] in w4 or w8."""
    quantize = {Format.W4: quantize_w4, Format.W8: quantize_w8}[fmt]
    return quantize(weights, group_size, shrink, name)


def dequantize_matrix(codes: Codes, group_size: int) -> F32:
    """The float32 values [rows, cols] that the codes stand for (exact: 8 bits times 11 bits)."""
    rows, cols = codes.codes.shape
    groups = pad_to_groups(codes.codes.astype(np.float32), group_size)
    if codes.zeros is not None:
        groups = groups - codes.zeros.astype(np.float32)[..., None]
    values = groups * codes.scales.astype(np.float32)[..., None]
    return np.ascontiguousarray(values.reshape(rows, -1)[:, :cols])


def round_trip(weights: F32, fmt: Format, group_size: int, shrink: F32 | None = None, name: str = "matrix") -> F32:
    """What a matrix becomes when it is stored in `fmt` and read back. `name` is for the message of an overflow."""
    return dequantize_matrix(quantize_matrix(weights, fmt, group_size, shrink, name), group_size)


def _as_f16(values: F32, name: str) -> NDArray[np.float16]:
    largest = float(np.abs(values).max(initial=0.0))
    if largest > F16_MAX:
        raise QuantizeError(
            f"{name}: the value {largest:.6g} does not fit f16, which ends at {F16_MAX:.0f}",
            hint="store this tensor kind as w8",
        )
    return values.astype(np.float16)


def quantize_tensor(
    spec: TensorSpec, values: F32, fmt: Format, group_size: int, shrink: F32 | None = None
) -> QuantizedTensor:
    """One tensor in its storage format. `values` has the shape of `spec`. Raises QuantizeError on fp16 overflow."""
    matrix = np.ascontiguousarray(values.reshape(spec.rows, spec.cols), np.float32)
    if fmt is Format.F32:
        return QuantizedTensor(spec, fmt, matrix)
    if fmt is Format.F16:
        return QuantizedTensor(spec, fmt, _as_f16(matrix, spec.name))
    return QuantizedTensor(spec, fmt, *quantize_matrix(matrix, fmt, group_size, shrink, spec.name))


def dequantize_tensor(tensor: QuantizedTensor, group_size: int) -> F32:
    """The float32 values of a stored tensor, in the shape of its spec."""
    values = tensor.codes.astype(np.float32)
    if tensor.scales is not None:
        values = dequantize_matrix(Codes(tensor.codes, tensor.scales, tensor.zeros), group_size)
    return values.reshape(tensor.spec.shape)


def stored_bytes(spec: TensorSpec, fmt: Format, group_size: int) -> int:
    """Bytes of a tensor's part in the model folder (FORMAT.md: padded to panels and blocks), without file gaps."""
    codes = code_bytes(spec, fmt)
    scales = scale_bytes(spec, fmt, group_size)
    return align(codes, ALIGNMENT) + scales if scales else codes
