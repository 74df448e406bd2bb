"""The router in fixed point (docs/numerics.md, "Router"): top-k by logit, weights from integers."""

from __future__ import annotations

import numpy as np

from colibri_build.artifacts import F32, RoutingStep

_LOG2_E_Q20 = np.float32(1512775.3951951856)  # log2(e) * 2^20
_LN2_Q30 = 744261118
_ONE_Q30 = 1 << 30
EXP2_TABLE = tuple(round(2.0 ** (30 - i / 64)) for i in range(64))  # Q30 of 2^(-i/64)


def exp2_negative(t: int) -> int:
    """Q30 of 2^-t for t in Q12.20, t >= 0."""
    n, i, f = t >> 20, (t >> 14) & 63, t & 16383
    if n > 30:
        return 0
    y = (f * _LN2_Q30) >> 20
    y2 = (y * y) >> 31
    y3 = ((y2 * y) // 3) >> 30
    m = _ONE_Q30 - y + y2 - y3
    e = (EXP2_TABLE[i] * m + (1 << 29)) >> 30
    rounded: int = (e + ((1 << n) >> 1)) >> n
    return rounded


def _distance(maximum: np.float32, logit: np.float32) -> int:
    """Distance to the maximum in Q12.20, in units of log2."""
    d = np.float32(maximum - logit)
    if d > np.float32(24):
        return 0x7FFFFFFF
    return int(np.float32(d * _LOG2_E_Q20) + np.float32(0.5))


def choose_top_k(logits: F32, top_k: int) -> list[int]:
    """Indices of the k largest logits, largest first; ties take the lower index."""
    return [int(i) for i in np.argsort(-logits, kind="stable")[:top_k]]


def route(logits: F32, top_k: int, norm_topk: bool) -> RoutingStep:
    """Choose experts for finite logits [n_experts] and weight them."""
    chosen = choose_top_k(logits, top_k)
    maximum = np.max(logits)
    e = [exp2_negative(_distance(maximum, logit)) for logit in logits]
    total = sum(e[i] for i in chosen) if norm_topk else sum(e)
    probabilities = [((e[i] << 30) + total // 2) // total for i in chosen]
    weights = tuple(float(np.float32(p) * np.float32(2.0**-30)) for p in probabilities)
    return RoutingStep(tuple(chosen), weights)
