"""The decoder in float32 over many tokens at once: the judge of the searches and of the quantization error.

The mathematics of docs/numerics.md, without its activation quantization, fp16 cache and order of summation. Matrix
products are exact (exact.py), so the results do not depend on the machine.

N is the number of tokens of all sequences together, which lie one after the other along axis 0; only attention looks
at their lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, ModelConfig
from colibri_build.quantize.exact import blas_threads_for, matmul_nt, tree_sum
from colibri_build.reference import numbers

Layer = Mapping[str, F32]  # tensors of one layer by name without "layers.{i}."
OnExpert = Callable[["ExpertActivations"], None]


class ExpertActivations(NamedTuple):
    """What one expert saw: token indices [n], their router weights [n], and the input of its down projection."""

    expert: int
    tokens: NDArray[np.int64]
    weights: F32
    hidden: F32  # [n, hidden_dim]


class LayerActivations(NamedTuple):
    """Inputs of the projections of one layer."""

    attention_in: F32  # [N, dim], input of q, k and v
    attention_out: F32  # [N, n_heads * head_dim], input of o
    ffn_in: F32  # [N, dim], input of the router and of every expert's gate and up
    chosen: NDArray[np.int64]  # [N, top_k] expert ids, best first


def linear(x: NDArray[Any], weight: NDArray[Any]) -> F32:
    """x [N, inputs] through a matrix [outputs, inputs]."""
    return matmul_nt(x, weight).astype(np.float32)


def rms_norm(x: F32, weight: F32, eps: float) -> F32:
    """Rows of x [N, dim] scaled to unit mean square, times weight [dim]."""
    mean = tree_sum(np.square(x, dtype=np.float64)) / x.shape[-1]
    return np.asarray((x / np.sqrt(mean + eps)[:, None].astype(np.float32)) * weight, np.float32)


def rotate(x: F32, theta: float) -> F32:
    """RoPE over x [T, heads, head_dim], positions 0..T-1, element i paired with i + head_dim/2."""
    half = x.shape[-1] // 2
    inverse = np.asarray([theta ** (-2.0 * i / x.shape[-1]) for i in range(half)], np.float32)
    sine, cosine = numbers.sincos(np.arange(x.shape[0], dtype=np.float64)[:, None] * inverse.astype(np.float64))
    first, second = x[..., :half], x[..., half:]
    sine, cosine = sine[:, None, :], cosine[:, None, :]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def _visible(length: int, window: int) -> NDArray[np.bool_]:
    """[T, T]: whether position i (row) sees position j (column)."""
    distance = np.arange(length)[:, None] - np.arange(length)
    return (distance >= 0) & ((distance < window) if window else np.True_)


def _attend(config: ModelConfig, q: F32, k: F32, v: F32) -> F32:
    """Causal attention of one sequence: q [T, n_heads, head_dim], k and v [T, n_kv_heads, head_dim] -> as q."""
    q, k = rotate(q, config.rope_theta), rotate(k, config.rope_theta)
    visible = _visible(len(q), config.sliding_window)
    scale = np.float32(1 / np.sqrt(np.float64(config.head_dim)))
    shared = config.n_heads // config.n_kv_heads
    out = np.empty_like(q)
    for kv in range(config.n_kv_heads):
        heads = slice(kv * shared, (kv + 1) * shared)
        scores = linear(q[:, heads].transpose(1, 0, 2), k[None, :, kv]) * scale
        scores = np.where(visible, scores, np.float32(-np.inf))
        weights = np.where(visible, numbers.exp(scores - scores.max(axis=-1, keepdims=True)), np.float32(0))
        weights = weights / tree_sum(weights)[..., None].astype(np.float32)
        out[:, heads] = linear(weights, v[None, :, kv].transpose(0, 2, 1)).transpose(1, 0, 2)
    return out


def _attention(config: ModelConfig, layer: Layer, x: F32, lengths: Sequence[int]) -> F32:
    """Input of the output projection [N, n_heads * head_dim]."""
    q = linear(x, layer["q"]).reshape(len(x), config.n_heads, config.head_dim)
    k = linear(x, layer["k"]).reshape(len(x), config.n_kv_heads, config.head_dim)
    v = linear(x, layer["v"]).reshape(len(x), config.n_kv_heads, config.head_dim)
    out, start = np.empty_like(q), 0
    for length in lengths:
        part = slice(start, start + length)
        out[part] = _attend(config, q[part], k[part], v[part])
        start += length
    return out.reshape(len(x), -1)


def route(config: ModelConfig, router: F32, x: F32) -> tuple[NDArray[np.int64], F32]:
    """Chosen experts [N, top_k], best first, ties to the lower index, and their weights [N, top_k]."""
    logits = linear(x, router)
    chosen = np.argsort(-logits, axis=-1, kind="stable")[:, : config.top_k]
    exponentials = numbers.exp(logits - logits.max(axis=-1, keepdims=True))
    picked = np.take_along_axis(exponentials, chosen, axis=-1)
    total = tree_sum(picked if config.norm_topk else exponentials)
    return chosen.astype(np.int64), (picked / total[:, None]).astype(np.float32)


def _experts(config: ModelConfig, layer: Layer, x: F32, on_expert: OnExpert | None) -> tuple[F32, NDArray[np.int64]]:
    """Weighted sum of the chosen experts' outputs [N, dim], and the choice."""
    chosen, weights = route(config, layer["router"], x)
    out = np.zeros_like(x)
    for expert in range(config.n_experts):
        tokens, rank = np.nonzero(chosen == expert)
        prefix = f"experts.{expert}"
        inputs = x[tokens]
        hidden = numbers.silu(linear(inputs, layer[f"{prefix}.gate"])) * linear(inputs, layer[f"{prefix}.up"])
        seen = ExpertActivations(expert, tokens, weights[tokens, rank], hidden)
        out[tokens] += seen.weights[:, None] * linear(hidden, layer[f"{prefix}.down"])
        if on_expert is not None:
            on_expert(seen)
    return out, chosen


def layer_forward(
    config: ModelConfig, layer: Layer, x: F32, lengths: Sequence[int], on_expert: OnExpert | None = None
) -> tuple[F32, LayerActivations]:
    """Residual stream [N, dim] behind one layer, and the inputs of its projections.

    `on_expert` is called for each expert in order, also for one that no token chose (n = 0).
    """
    attention_in = rms_norm(x, layer["attn_norm"], config.rms_eps)
    attention_out = _attention(config, layer, attention_in, lengths)
    x = x + linear(attention_out, layer["o"])
    ffn_in = rms_norm(x, layer["ffn_norm"], config.rms_eps)
    moe, chosen = _experts(config, layer, ffn_in, on_expert)
    return x + moe, LayerActivations(attention_in, attention_out, ffn_in, chosen)


def embed(embedding: F32, sequences: Sequence[Sequence[int]]) -> F32:
    """Residual stream [N, dim] at the entrance of the first layer."""
    ids = np.concatenate([np.asarray(sequence, np.int64) for sequence in sequences])
    return np.asarray(embedding[ids], np.float32)


def take_layer(tensors: Mapping[str, F32], config: ModelConfig, index: int) -> dict[str, F32]:
    """The tensors of one layer by their short names."""
    names = ["attn_norm", "q", "k", "v", "o", "ffn_norm", "router"]
    names += [f"experts.{expert}.{part}" for expert in range(config.n_experts) for part in ("gate", "up", "down")]
    return {name: tensors[f"layers.{index}.{name}"] for name in names}


def forward(config: ModelConfig, tensors: Mapping[str, F32], sequences: Sequence[Sequence[int]]) -> F32:
    """Logits [N, vocab_size] at every position of every sequence; `tensors` by TensorSpec.name."""
    with blas_threads_for(config):
        return _forward(config, tensors, sequences)


def _forward(config: ModelConfig, tensors: Mapping[str, F32], sequences: Sequence[Sequence[int]]) -> F32:
    lengths = [len(sequence) for sequence in sequences]
    x = embed(tensors["embedding"], sequences)
    for index in range(config.n_layers):
        x, _ = layer_forward(config, take_layer(tensors, config, index), x, lengths)
    head = tensors["embedding" if config.tied_embeddings else "lm_head"]
    return linear(rms_norm(x, tensors["final_norm"], config.rms_eps), head)
