"""Which values of a GGUF tensor are NaN or infinite, without multiplying them out where the block's scales tell."""

from __future__ import annotations

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from colibri_build.checkpoint.stored import MAPPED, bad_numbers

Kind = GGMLQuantizationType
# (byte, count) of a block's fp16 scales: all of its values are finite if these are, and none otherwise.
_SCALES: dict[Kind, tuple[int, int]] = {
    **dict.fromkeys((Kind.Q8_0, Kind.Q4_0, Kind.Q5_0, Kind.IQ4_NL, Kind.IQ4_XS), (0, 1)),
    **dict.fromkeys((Kind.IQ2_XXS, Kind.IQ2_XS, Kind.IQ2_S, Kind.IQ3_XXS, Kind.IQ3_S, Kind.IQ1_S), (0, 1)),
    **dict.fromkeys((Kind.Q4_1, Kind.Q5_1, Kind.Q4_K, Kind.Q5_K), (0, 2)),
    Kind.Q2_K: (80, 2),
    Kind.Q3_K: (108, 1),
    Kind.Q6_K: (208, 1),
}
_PLAIN = (Kind.F32, Kind.F16, Kind.BF16)


def bad_values(stored: NDArray[np.uint8], kind: Kind) -> NDArray[np.bool_]:
    """Rows as they lie in the file [rows, bytes] -> which of their values, in order, are not finite."""
    if kind in _PLAIN:
        return bad_numbers(np.ascontiguousarray(stored).reshape(-1).view(MAPPED[kind.name]), kind.name)
    if kind not in _SCALES:
        return np.asarray(~np.isfinite(dequantize(stored, kind)).reshape(-1))
    block, size = GGML_QUANT_SIZES[kind]
    at, count = _SCALES[kind]
    scales = np.ascontiguousarray(stored.reshape(-1, size)[:, at : at + 2 * count]).view("<f2")
    return np.repeat(~np.isfinite(scales).all(axis=1), block)
