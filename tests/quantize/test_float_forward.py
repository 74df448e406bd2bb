"""The batched forward against the same mathematics in plain loops over one token at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from small_models import small_model, token_sequences

from colibri_build.artifacts import Model
from colibri_build.quantize.float_forward import forward

Vector = list[float]


def times(matrix: np.ndarray, x: Vector) -> Vector:
    return [sum(float(w) * v for w, v in zip(row, x, strict=True)) for row in matrix]


def norm(x: Vector, weight: np.ndarray, eps: float) -> Vector:
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + eps)
    return [v * scale * float(w) for v, w in zip(x, weight, strict=True)]


def softmax(values: Sequence[float]) -> Vector:
    powers = [math.exp(v - max(values)) for v in values]
    return [p / sum(powers) for p in powers]


def turned(head: Vector, position: int, theta: float) -> Vector:
    half, out = len(head) // 2, list(head)
    for i in range(half):
        angle = position * theta ** (-2 * i / len(head))
        a, b = head[i], head[i + half]
        out[i] = a * math.cos(angle) - b * math.sin(angle)
        out[i + half] = b * math.cos(angle) + a * math.sin(angle)
    return out


def heads_of(x: Vector, size: int) -> list[Vector]:
    return [x[start : start + size] for start in range(0, len(x), size)]


class SlowModel:
    """Keeps a cache of keys and values per layer and takes one token at a time."""

    def __init__(self, model: Model) -> None:
        self.config, self.tensors = model.config, model.tensors
        self.keys: list[list[list[Vector]]] = [[] for _ in range(model.config.n_layers)]
        self.values: list[list[list[Vector]]] = [[] for _ in range(model.config.n_layers)]

    def attend(self, layer: int, h: Vector, position: int) -> Vector:
        config, prefix = self.config, f"layers.{layer}."
        queries = heads_of(times(self.tensors[prefix + "q"], h), config.head_dim)
        keys = heads_of(times(self.tensors[prefix + "k"], h), config.head_dim)
        self.keys[layer].append([turned(key, position, config.rope_theta) for key in keys])
        self.values[layer].append(heads_of(times(self.tensors[prefix + "v"], h), config.head_dim))
        first = max(0, position - config.sliding_window + 1) if config.sliding_window else 0
        out: Vector = []
        for number, query in enumerate(queries):
            kv = number // (config.n_heads // config.n_kv_heads)
            rotated = turned(query, position, config.rope_theta)
            seen = range(first, position + 1)
            scores = [
                sum(a * b for a, b in zip(rotated, self.keys[layer][p][kv], strict=True)) / math.sqrt(config.head_dim)
                for p in seen
            ]
            weights = softmax(scores)
            out += [
                sum(w * self.values[layer][p][kv][i] for w, p in zip(weights, seen, strict=True))
                for i in range(config.head_dim)
            ]
        return times(self.tensors[prefix + "o"], out)

    def experts(self, layer: int, h: Vector) -> Vector:
        config, prefix = self.config, f"layers.{layer}."
        logits = times(self.tensors[prefix + "router"], h)
        chosen = sorted(range(config.n_experts), key=lambda e: (-logits[e], e))[: config.top_k]
        shares = dict(enumerate(softmax(logits)))
        total = sum(shares[e] for e in chosen) if config.norm_topk else 1.0
        out = [0.0] * config.dim
        for e in chosen:
            gate = times(self.tensors[f"{prefix}experts.{e}.gate"], h)
            up = times(self.tensors[f"{prefix}experts.{e}.up"], h)
            hidden = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)]
            down = times(self.tensors[f"{prefix}experts.{e}.down"], hidden)
            out = [o + shares[e] / total * d for o, d in zip(out, down, strict=True)]
        return out

    def logits(self, token: int, position: int) -> Vector:
        config = self.config
        x = [float(v) for v in self.tensors["embedding"][token]]
        for layer in range(config.n_layers):
            h = norm(x, self.tensors[f"layers.{layer}.attn_norm"], config.rms_eps)
            x = [a + b for a, b in zip(x, self.attend(layer, h, position), strict=True)]
            h = norm(x, self.tensors[f"layers.{layer}.ffn_norm"], config.rms_eps)
            x = [a + b for a, b in zip(x, self.experts(layer, h), strict=True)]
        head = self.tensors["embedding" if config.tied_embeddings else "lm_head"]
        return times(head, norm(x, self.tensors["final_norm"], config.rms_eps))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sliding_window": 3},
        {"n_kv_heads": 1},
        {"n_kv_heads": 4, "head_dim": 8},
        {"norm_topk": False},
        {"top_k": 1, "n_experts": 3},
        {"top_k": 4, "rope_theta": 1e6},
        {"tied_embeddings": True, "rms_eps": 1e-2},
    ],
)
def test_logits_are_those_of_plain_loops(changes: dict[str, Any]) -> None:
    model = small_model(seed=2, **changes)
    sequences = token_sequences(model.config, 2, 7)
    sequences[1] = sequences[1][:4]
    got = forward(model.config, model.tensors, sequences)
    wanted = []
    for sequence in sequences:
        slow = SlowModel(model)
        wanted += [slow.logits(token, position) for position, token in enumerate(sequence)]
    assert got.shape == (11, model.config.vocab_size)
    assert np.abs(got - np.asarray(wanted)).max() <= 2e-5
