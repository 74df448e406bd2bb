"""Which experts were used, how much, and together with which."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from colibri_build.report.columns import Times, decisions_of, tick_us
from colibri_build.report.figures import us
from colibri_build.report.model import ExpertUse, LayerUse, Pair
from colibri_build.trace_events import Stage, Trace


@dataclass(frozen=True)
class Use:
    """Counts over all routing decisions of a trace."""

    decisions: NDArray[np.int64]  # [n_layers]
    tokens: NDArray[np.int64]  # [n_layers, n_experts]
    weights: NDArray[np.float64]  # [n_layers, n_experts], sums
    pairs: Counter[tuple[int, int, int]]  # (layer, a, b), a < b
    top_k: int


def expert_use(trace: Trace) -> Use:
    """Count the routing decisions of a trace."""
    shape = trace.info.n_layers, trace.info.n_experts
    decisions, tokens, weights = np.zeros(shape[0], np.int64), np.zeros(shape, np.int64), np.zeros(shape)
    pairs: Counter[tuple[int, int, int]] = Counter()
    top_k = 0
    for token in trace.tokens:
        for decision in decisions_of(token):
            layer, chosen = decision.layer, decision.experts
            top_k = max(top_k, len(chosen))
            decisions[layer] += 1
            for expert, weight in zip(chosen, decision.weights, strict=True):
                tokens[layer, expert] += 1
                weights[layer, expert] += weight
            pairs.update((layer, a, b) for a, b in combinations(sorted(chosen), 2))
    return Use(decisions, tokens, weights, pairs, top_k)


def layer_uses(use: Use) -> tuple[LayerUse, ...]:
    """How evenly each layer uses its experts; nothing without routing."""
    if not use.top_k:
        return ()
    return tuple(
        LayerUse(layer, int(count), round(float(2 ** entropy_bits(use.tokens[layer])), 3))
        for layer, count in enumerate(use.decisions)
    )


def entropy_bits(counts: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Shannon entropy of counts or shares, 0 if there are none."""
    total = counts.sum()
    if not total:
        return 0.0
    shares = counts[counts > 0] / total
    return float(-(shares * np.log2(shares)).sum())


def expert_uses(trace: Trace, use: Use, times: Times) -> tuple[ExpertUse, ...]:
    """Every expert of the model, also those that no token chose."""
    if not use.top_k and not (times.stage == Stage.EXPERT).any():
        return ()
    medians = _expert_medians(trace, times)
    found = []
    for layer, expert in np.ndindex(use.tokens.shape):
        tokens, decisions = int(use.tokens[layer, expert]), int(use.decisions[layer])
        found.append(
            ExpertUse(
                layer=layer,
                expert=expert,
                tokens=tokens,
                share=round(tokens / decisions, 6) if decisions else 0.0,
                mean_weight=round(float(use.weights[layer, expert]) / tokens, 6) if tokens else 0.0,
                median_us=medians.get((layer, expert)),
            )
        )
    return tuple(found)


def _expert_medians(trace: Trace, times: Times) -> dict[tuple[int, int], float]:
    factor = tick_us(trace)
    rows = times.stage == Stage.EXPERT
    keys = times.layer[rows] * trace.info.n_experts + times.expert[rows]
    order = np.argsort(keys, kind="stable")
    unique, starts = np.unique(keys[order], return_index=True)
    groups = np.split(times.ticks[rows][order], starts[1:])
    return {
        divmod(int(key), trace.info.n_experts): us(np.median(group) * factor)
        for key, group in zip(unique, groups, strict=False)
    }


def expert_pairs(use: Use) -> tuple[Pair, ...]:
    """Pairs by layer, the most frequent first. Chance: as if both had been chosen independently of each other."""
    found = []
    for (layer, a, b), tokens in use.pairs.items():
        by_chance = float(use.tokens[layer, a]) * float(use.tokens[layer, b]) / float(use.decisions[layer])
        found.append(Pair(layer, a, b, tokens, round(tokens / by_chance, 3)))
    return tuple(sorted(found, key=lambda pair: (pair.layer, -pair.tokens, pair.a, pair.b)))
