"""The GGUF types whose blocks are groups of ours: Q8_0, Q4_0 and Q4_1 as codes, scales and zero points."""

from __future__ import annotations

from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from numpy.typing import NDArray

from colibri_build.artifacts import GroupCodes

GROUP_SIZE = 32  # values of a block of these types
BITS_OF = {GGMLQuantizationType.Q8_0: 8, GGMLQuantizationType.Q4_0: 4, GGMLQuantizationType.Q4_1: 4}
_SCALES_OF = {GGMLQuantizationType.Q8_0: 1, GGMLQuantizationType.Q4_0: 1, GGMLQuantizationType.Q4_1: 2}  # fp16 numbers
_Q4_0_ZERO = 8
_LARGEST_ZERO = 15


def group_codes(stored: NDArray[np.uint8], kind: GGMLQuantizationType) -> GroupCodes | None:
    """Rows of blocks [rows, bytes] of one of these types. None where a code or zero point has no place in ours."""
    size = GGML_QUANT_SIZES[kind][1]
    blocks = stored.reshape(len(stored), -1, size)  # [rows, groups, bytes]
    n_scales = _SCALES_OF[kind]
    numbers = np.ascontiguousarray(blocks[..., : 2 * n_scales]).view("<f2")
    scales, packed = np.ascontiguousarray(numbers[..., 0], np.float16), blocks[..., 2 * n_scales :]
    if kind == GGMLQuantizationType.Q8_0:
        codes = np.ascontiguousarray(packed).view(np.int8).reshape(len(stored), -1)
        return None if (codes == -128).any() else GroupCodes(GROUP_SIZE, codes, scales, None)
    zeros = _constant_zeros(scales) if kind == GGMLQuantizationType.Q4_0 else _exact_zeros(scales, numbers[..., 1])
    return None if zeros is None else GroupCodes(GROUP_SIZE, _nibbles(packed), scales, zeros)


def _nibbles(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A block's lower halves of bytes are its first 16 values, the upper ones its last 16."""
    both = np.concatenate([packed & 15, packed >> 4], axis=-1)
    return both.reshape(len(packed), -1)


def _constant_zeros(scales: NDArray[np.float16]) -> NDArray[np.uint8]:
    return np.full(scales.shape, _Q4_0_ZERO, np.uint8)


def _exact_zeros(scales: NDArray[np.float16], minima: NDArray[Any]) -> NDArray[np.uint8] | None:
    """code * scale + minimum = (code - zero) * scale needs a zero of exactly -minimum / scale, an integer 0..15."""
    scale, minimum = scales.astype(np.float64), minima.astype(np.float64)
    zeros = np.rint(np.divide(-minimum, scale, out=np.zeros_like(scale), where=scale != 0))
    exact = (zeros * scale == -minimum) & (zeros >= 0) & (zeros <= _LARGEST_ZERO)
    return zeros.astype(np.uint8) if exact.all() else None
