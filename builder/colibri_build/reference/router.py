"""The router (docs/numerics.md, "Router"): top-k by score; the weights of a softmax come from integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, GroupScore, ModelConfig, RoutingStep, Scoring
from colibri_build.reference.numbers import sigmoid

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


def choose_top_k(scores: F32, top_k: int) -> list[int]:
    """Indices of the k largest scores, largest first; ties take the lower index."""
    return [int(i) for i in np.argsort(-scores, kind="stable")[:top_k]]


def allowed_experts(scores: F32, config: ModelConfig) -> NDArray[np.bool_]:
    """[n_experts]: whether an expert belongs to one of the `top_groups` best groups."""
    groups = scores.reshape(config.n_groups, -1)
    best = -np.sort(-groups, axis=1)
    judged = best[:, 0] if config.group_score is GroupScore.MAX else (best[:, 0] + best[:, 1]).astype(np.float32)
    chosen = np.isin(np.arange(config.n_groups), choose_top_k(judged, config.top_groups))
    return np.repeat(chosen, groups.shape[1])


def route(logits: F32, config: ModelConfig, selection_bias: F32 | None = None) -> RoutingStep:
    """Choose experts for finite logits [n_experts] and weigh them. `selection_bias` [n_experts] moves the choice alone."""
    scores = sigmoid(logits) if config.scoring is Scoring.SIGMOID else logits
    judged = scores if selection_bias is None else (scores + selection_bias).astype(np.float32)
    if config.top_groups < config.n_groups:
        judged = np.where(allowed_experts(judged, config), judged, np.float32(-np.inf))
    chosen = choose_top_k(judged, config.top_k)
    if config.scoring is Scoring.SPARSEMIXER:
        weights = _mixer_weights(logits, chosen, config.router_jitter)
    elif config.scoring is Scoring.SIGMOID:
        weights = _sigmoid_weights(scores, chosen, config.norm_topk)
    else:
        weights = _softmax_weights(logits, chosen, config.norm_topk)
    if config.routed_scale != 1.0:
        weights = [np.float32(w * np.float32(config.routed_scale)) for w in weights]
    return RoutingStep(tuple(chosen), tuple(float(w) for w in weights))


def _softmax_weights(logits: F32, chosen: list[int], norm_topk: bool) -> list[np.float32]:
    return _shares(logits, chosen, chosen if norm_topk else list(range(len(logits))))


def _shares(logits: F32, chosen: list[int], over: list[int]) -> list[np.float32]:
    """Softmax weights of the chosen experts, normalised over the experts `over`."""
    maximum = np.max(logits[over])
    e = {i: exp2_negative(_distance(maximum, logits[i])) for i in {*over, *chosen}}
    total = sum(e[i] for i in over)
    return [np.float32(np.float32(((e[i] << 30) + total // 2) // total) * np.float32(2.0**-30)) for i in chosen]


def _mixer_weights(logits: F32, chosen: list[int], jitter: float) -> list[np.float32]:
    """Each expert's share among those that are not chosen before it and come close to it."""
    weights = []
    for rank, expert in enumerate(chosen):
        close = ~_is_far(logits, logits[expert], jitter)
        close[chosen[:rank]] = False
        weights += _shares(logits, [expert], [int(i) for i in np.flatnonzero(close)])
    return weights


def _is_far(logits: F32, best: np.float32, jitter: float) -> NDArray[np.bool_]:
    """[n_experts]: whether a logit falls short of the best one by too large a part of the larger magnitude."""
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is not far
        short = (best - logits) / np.maximum(np.abs(logits), best)
    return np.asarray(short > np.float32(2 * jitter))


def _sigmoid_weights(scores: F32, chosen: list[int], norm_topk: bool) -> list[np.float32]:
    if not norm_topk:
        return [scores[i] for i in chosen]
    total = np.float32(0)
    for i in chosen:
        total = np.float32(total + scores[i])
    total = np.float32(total + np.float32(1e-20))
    return [np.float32(scores[i] / total) for i in chosen]
