"""Number formats and elementary functions, bit for bit as docs/numerics.md defines them.

Arrays are NumPy float32 unless a name says otherwise; NumPy's elementwise float32 operations are single IEEE
operations, so no result here depends on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

BLOCK_INPUTS = 32
PANEL_ROWS = 8
LANES = 8
ACTIVATION_MAX = {8: 127, 16: 32512}
ZERO_GROUP = np.float32(1e-30)  # a group whose largest magnitude is below this is all zero
_MAGIC = np.float32(12582912.0)  # 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer
_EXP_COEFFICIENTS = (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)


def ceil_div(a: int, b: int) -> int:
    """Smallest integer not below a / b."""
    return -(-a // b)


def group_count(cols: int, group_size: int) -> int:
    """Groups that share a scale in a row of `cols` inputs; the last one may be short."""
    return ceil_div(cols, group_size)


def pad_to_groups(x: NDArray[Any], group_size: int) -> NDArray[Any]:
    """[..., cols] -> [..., n_groups, group_size], zeros after the end; a view where there are none."""
    return _padded(x, group_size).reshape(*x.shape[:-1], group_count(x.shape[-1], group_size), group_size)


def _padded(x: NDArray[Any], multiple: int) -> NDArray[Any]:
    """x with zeros after the end of its last axis, up to a multiple."""
    missing = -x.shape[-1] % multiple
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing else x


@dataclass(frozen=True)
class QuantizedActivation:
    """An input vector in groups: integer codes [n_groups, group_size] (zero past the end), scales [n_groups]."""

    codes: NDArray[np.int32]
    scales: F32


def quantize_activation(x: F32, group_size: int, bits: int) -> QuantizedActivation:
    """Quantize a vector [n] symmetrically by group; bits is 8 or 16 (the activation class).

    A group that holds NaN or infinity gets codes 0 and the scale NaN, so that every product with it is NaN.
    """
    groups = pad_to_groups(x.astype(np.float32), group_size)
    amax = np.max(np.abs(groups), axis=-1)
    live = np.isfinite(amax) & (amax >= ZERO_GROUP)
    largest = np.float32(ACTIVATION_MAX[bits])
    inverse = largest / np.where(live, amax, np.float32(1))
    codes = np.rint(np.where(live[:, None], groups, np.float32(0)) * inverse[:, None]).astype(np.int32)
    scales = np.where(live, amax / largest, np.where(np.isfinite(amax), np.float32(0), np.float32(np.nan)))
    return QuantizedActivation(codes, scales.astype(np.float32))


def lane_sum(terms: F32, axis: int = -1) -> F32:
    """Sum over `axis` with 8 virtual lanes: term i goes to lane i mod 8, i ascending, then a fixed tree."""
    moved = np.moveaxis(terms, axis, -1)
    rows = _padded(moved, LANES).reshape(*moved.shape[:-1], -1, LANES)
    lanes = np.zeros((*moved.shape[:-1], LANES), np.float32)
    for i in range(rows.shape[-2]):
        lanes = lanes + rows[..., i, :]
    four = lanes[..., :4] + lanes[..., 4:]
    two = four[..., :2] + four[..., 2:]
    return np.asarray(two[..., 0] + two[..., 1], np.float32)


def dot(a: F32, b: F32) -> F32:
    """Lane sum of the products over the last axis."""
    return lane_sum((a * b).astype(np.float32))


def exp(x: F32) -> F32:
    """e^x by Cody-Waite reduction and a degree-5 polynomial (Cephes' coefficients), at most 1 ulp off."""
    x = np.clip(x, np.float32(-87), np.float32(88)).astype(np.float32)
    t = x * np.float32(1.44269504) + _MAGIC
    n = t - _MAGIC
    r = x - n * np.float32(0.693359375)
    r = r - n * np.float32(-2.12194440e-4)
    p = np.full_like(x, np.float32(1.9875691500e-4))
    for coefficient in _EXP_COEFFICIENTS:
        p = p * r + np.float32(coefficient)
    p = p * (r * r) + r
    p = p + np.float32(1)
    power = ((t.view(np.int32) - _MAGIC.view(np.int32) + 127) << 23).astype(np.int32)
    return np.asarray(p * power.view(np.float32), np.float32)


def sigmoid(x: F32) -> F32:
    """1 / (1 + exp(-x))."""
    return np.asarray(np.float32(1) / (np.float32(1) + exp(-x)), np.float32)


def silu(x: F32) -> F32:
    """x / (1 + exp(-x))."""
    return np.asarray(x / (np.float32(1) + exp(-x)), np.float32)


def rms_norm(x: F32, weight: F32, eps: float) -> F32:
    """(x * 1/sqrt(mean(x^2) + eps)) * weight over a vector [n]."""
    mean = dot(x, x) / np.float32(x.shape[-1])
    scale = np.float32(1) / np.sqrt(mean + np.float32(eps))
    return np.asarray((x * scale) * weight, np.float32)


def layer_norm(x: F32, weight: F32, bias: F32, eps: float) -> F32:
    """RMSNorm of x less its mean, plus bias, over a vector [n]."""
    mean = lane_sum(x) / np.float32(x.shape[-1])
    return np.asarray(rms_norm(np.asarray(x - mean, np.float32), weight, eps) + bias, np.float32)


def swiglu_clamped(gate: F32, up: F32, alpha: float, limit: float) -> F32:
    """(up + 1) * gate / (1 + exp(-(alpha*gate))), gate up to the limit and up within +-limit."""
    g = np.minimum(gate, np.float32(limit))
    u = np.clip(up, -np.float32(limit), np.float32(limit))
    return np.asarray((u + np.float32(1)) * (g / (np.float32(1) + exp(-(np.float32(alpha) * g)))), np.float32)


def rotate(heads: F32, cos: F32, sin: F32, *, interleaved: bool) -> F32:
    """RoPE: turn the first rotary_dim elements of heads [..., head_dim] by angles of cos and sin [..., rotary_dim / 2].

    Pair i is (i, i + rotary_dim/2), or (2i, 2i + 1) where interleaved.
    """
    half = cos.shape[-1]
    pairs = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(half), slice(half, 2 * half))
    first, second = heads[..., pairs[0]], heads[..., pairs[1]]
    out = heads.copy()
    out[..., pairs[0]] = first * cos - second * sin
    out[..., pairs[1]] = second * cos + first * sin
    return out


def sincos(angle: NDArray[np.float64]) -> tuple[F32, F32]:
    """Sine and cosine of |angle| < 1e6, in binary64 with fixed operations (fdlibm's kernels), rounded to float32."""
    magic = np.float64(6755399441055744.0)
    n = (angle * np.float64(0.63661977236758134308) + magic) - magic
    r = angle - n * np.float64(1.57079632673412561417e00)
    r = r - n * np.float64(6.07710050650619224932e-11)
    z = r * r
    sine = _horner(
        z,
        (
            1.58969099521155010221e-10,
            -2.50507602534068634195e-08,
            2.75573137070700676789e-06,
            -1.98412698298579493134e-04,
            8.33333333332248946124e-03,
            -1.66666666666666324348e-01,
        ),
    )
    cosine = _horner(
        z,
        (
            -1.13596475577881948265e-11,
            2.08757232129817482790e-09,
            -2.75573143513906633035e-07,
            2.48015872894767294178e-05,
            -1.38888888888741095749e-03,
            4.16666666666666019037e-02,
        ),
    )
    s = r + r * z * sine
    c = 1.0 - (0.5 * z - z * z * cosine)
    quadrant = n.astype(np.int64) & 3
    swapped = (quadrant & 1) == 1
    out_s = np.where(swapped, c, s) * np.where(quadrant >= 2, -1.0, 1.0)
    out_c = np.where(swapped, s, c) * np.where((quadrant == 1) | (quadrant == 2), -1.0, 1.0)
    return out_s.astype(np.float32), out_c.astype(np.float32)


def _horner(x: NDArray[np.float64], coefficients: tuple[float, ...]) -> NDArray[np.float64]:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value
