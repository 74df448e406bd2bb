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

from colibri_build.artifacts import F32, GroupScore, ModelConfig, QkNorm, Scoring
from colibri_build.model_constants import LATENT_EPS, attention_scale, rope_frequencies, window_of
from colibri_build.quantize.exact import blas_threads_for, matmul_nt, tree_sum
from colibri_build.reference import numbers
from colibri_build.tensor_specs import layer_tensor_specs

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

    attention_in: F32  # [N, dim], input of q, k and v, or of the latent projections
    attention_out: F32  # [N, out_dim], input of o
    ffn_in: F32  # [N, dim], input of the router and of every gate and up
    chosen: NDArray[np.int64]  # [N, top_k] expert ids, best first; [N, 0] in a dense layer
    dense_hidden: F32 | None  # [N, hidden], input of down in a dense layer or of the shared experts


def linear(x: NDArray[Any], weight: NDArray[Any]) -> F32:
    """x [N, inputs] through a matrix [outputs, inputs]."""
    return matmul_nt(x, weight).astype(np.float32)


def rms_norm(x: F32, weight: F32, eps: float) -> F32:
    """Rows of x [N, dim] scaled to unit mean square, times weight [dim]."""
    mean = tree_sum(np.square(x, dtype=np.float64)) / x.shape[-1]
    return np.asarray((x / np.sqrt(mean + eps)[:, None].astype(np.float32)) * weight, np.float32)


def stream_norm(config: ModelConfig, tensors: Mapping[str, F32], name: str, x: F32) -> F32:
    """A norm of the residual stream over rows of x [N, dim]."""
    if not config.layer_norm:
        return rms_norm(x, tensors[name], config.rms_eps)
    mean = (tree_sum(x.astype(np.float64)) / x.shape[-1])[:, None].astype(np.float32)
    return rms_norm(x - mean, tensors[name], config.rms_eps) + tensors[f"{name}_bias"]


def rotate(x: F32, config: ModelConfig) -> F32:
    """RoPE over x [T, heads, head_dim], positions 0..T-1, as the configuration pairs and scales it."""
    frequencies = rope_frequencies(config).astype(np.float64)
    angles = np.arange(x.shape[0], dtype=np.float64)[:, None] * frequencies
    sine, cosine = (np.asarray(part * np.float32(config.rope_factor))[:, None, :] for part in numbers.sincos(angles))
    return numbers.rotate(x, cosine, sine, interleaved=config.rope_interleaved)


def _visible(length: int, window: int) -> NDArray[np.bool_]:
    """[T, T]: whether position i (row) sees position j (column)."""
    distance = np.arange(length)[:, None] - np.arange(length)
    return (distance >= 0) & ((distance < window) if window else np.True_)


def _attend(config: ModelConfig, window: int, q: F32, k: F32, v: F32, sinks: F32) -> F32:
    """Causal attention of one sequence: q [T, n_heads, head_dim], k and v [T, n_kv_heads, head_dim] -> as q.

    sinks [n_heads]: logits that take a share of their own; -inf: none.
    """
    q, k = rotate(q, config), rotate(k, config)
    visible = _visible(len(q), window)
    scale = np.float32(attention_scale(config))
    shared = config.n_heads // config.n_kv_heads
    out = np.empty((*q.shape[:-1], config.v_head_dim), np.float32)
    for kv in range(config.n_kv_heads):
        heads = slice(kv * shared, (kv + 1) * shared)
        scores = linear(q[:, heads].transpose(1, 0, 2), k[None, :, kv]) * scale
        scores = np.where(visible, scores, np.float32(-np.inf))
        sink = sinks[heads, None, None]
        most = np.maximum(scores.max(axis=-1, keepdims=True), sink)
        weights = np.where(visible, numbers.exp(scores - most), np.float32(0))
        lost = np.where(np.isfinite(sink), numbers.exp(sink - most), np.float32(0))
        weights = weights / (tree_sum(weights)[..., None] + lost).astype(np.float32)
        out[:, heads] = linear(weights, v[None, :, kv].transpose(0, 2, 1)).transpose(1, 0, 2)
    return out


def _heads(config: ModelConfig, layer: Layer, name: str, x: F32) -> F32:
    """Queries, keys or values [N, heads, head_dim] before RoPE."""
    y = _projected(layer, name, x)
    normed = name != "v"
    if config.qk_norm is QkNorm.WHOLE and normed:
        y = rms_norm(y, layer[f"{name}_norm"], config.rms_eps)
    if config.clip_qkv:
        y = np.clip(y, np.float32(-config.clip_qkv), np.float32(config.clip_qkv))
    heads = y.reshape(len(x), -1, config.head_dim)
    if config.qk_norm is QkNorm.HEAD and normed:
        flat = rms_norm(heads.reshape(-1, config.head_dim), layer[f"{name}_norm"], config.rms_eps)
        heads = flat.reshape(heads.shape)
    return heads


def _latent_heads(config: ModelConfig, layer: Layer, x: F32) -> tuple[F32, F32, F32]:
    """Queries, keys and values [N, n_heads, ...] of multi-head latent attention before RoPE."""
    n, heads = len(x), config.n_heads
    q_in = rms_norm(linear(x, layer["q_a"]), layer["q_a_norm"], LATENT_EPS) if config.q_rank else x
    latent = rms_norm(linear(x, layer["kv_a"]), layer["kv_a_norm"], LATENT_EPS)
    turning = np.repeat(linear(x, layer["k_rope"])[:, None, :], heads, axis=1)
    still = linear(latent, layer["k"]).reshape(n, heads, -1)
    keys = np.concatenate([turning, still], axis=-1)
    return linear(q_in, layer["q"]).reshape(n, heads, -1), keys, linear(latent, layer["v"]).reshape(n, heads, -1)


def _attention(config: ModelConfig, index: int, layer: Layer, x: F32, lengths: Sequence[int]) -> F32:
    """Input of the output projection [N, out_dim]."""
    q, k, v = _latent_heads(config, layer, x) if config.kv_rank else (_heads(config, layer, n, x) for n in "qkv")
    out, start = np.empty((len(x), config.n_heads, config.v_head_dim), np.float32), 0
    sinks = layer["sinks"] if config.attention_sinks else np.full(config.n_heads, -np.inf, np.float32)
    for length in lengths:
        part = slice(start, start + length)
        out[part] = _attend(config, window_of(config, index), q[part], k[part], v[part], sinks)
        start += length
    return out.reshape(len(x), -1)


def route(config: ModelConfig, layer: Layer, x: F32) -> tuple[NDArray[np.int64], F32]:
    """Chosen experts [N, top_k], best first, ties to the lower index, and their weights [N, top_k]."""
    logits = _projected(layer, "router", x)
    if config.scoring is Scoring.SPARSEMIXER:
        chosen, shares = _mix_sparsely(logits, config.router_jitter)
        return chosen, np.asarray(shares * config.routed_scale, np.float32)
    if config.scoring is Scoring.SIGMOID:
        shares = numbers.sigmoid(logits)
    else:
        shares = numbers.exp(logits - logits.max(axis=-1, keepdims=True))
    chosen = np.argsort(-_judged(config, layer, shares), axis=-1, kind="stable")[:, : config.top_k]
    weights = np.take_along_axis(shares, chosen, axis=-1).astype(np.float64)
    if config.norm_topk:
        weights = weights / tree_sum(weights)[:, None]
    elif config.scoring is Scoring.SOFTMAX:
        weights = weights / tree_sum(shares)[:, None]
    return chosen.astype(np.int64), np.asarray(weights * config.routed_scale, np.float32)


def _mix_sparsely(logits: F32, jitter: float) -> tuple[NDArray[np.int64], F32]:
    """Two experts [N, 2], each weighed by its softmax share among those that come close to it."""
    left, chosen, weights = logits.copy(), [], []
    for _ in range(2):
        best = left.argmax(axis=-1)[:, None]
        most = np.take_along_axis(left, best, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is close
            far = (most - logits) / np.maximum(np.abs(logits), most) > np.float32(2 * jitter)
        counted = np.isfinite(left) & ~far
        shares = np.where(counted, numbers.exp(left - most), np.float32(0))
        chosen.append(best)
        weights.append(1 / tree_sum(shares)[:, None])
        np.put_along_axis(left, best, np.float32(-np.inf), axis=-1)
    return np.concatenate(chosen, axis=1).astype(np.int64), np.concatenate(weights, axis=1).astype(np.float32)


def _judged(config: ModelConfig, layer: Layer, shares: F32) -> F32:
    """What decides the choice [N, n_experts]; -inf for the experts of groups that are left out."""
    judged = shares + layer["selection_bias"] if config.selection_bias else shares
    if config.top_groups == config.n_groups:
        return judged
    groups = judged.reshape(len(judged), config.n_groups, -1)
    best = -np.sort(-groups, axis=-1)
    scores = best[..., 0] if config.group_score is GroupScore.MAX else best[..., 0] + best[..., 1]
    kept = np.argsort(-scores, axis=-1, kind="stable")[:, : config.top_groups]
    is_kept = np.zeros(scores.shape, np.bool_)
    np.put_along_axis(is_kept, kept, True, axis=-1)
    return np.where(is_kept[..., None], groups, np.float32(-np.inf)).reshape(judged.shape)


def _experts(config: ModelConfig, layer: Layer, x: F32, on_expert: OnExpert | None) -> tuple[F32, NDArray[np.int64]]:
    """Weighted sum of the chosen experts' outputs [N, dim], and the choice."""
    chosen, weights = route(config, layer, x)
    out = np.zeros_like(x)
    for expert in range(config.n_experts):
        tokens, rank = np.nonzero(chosen == expert)
        hidden = _hidden(config, layer, f"experts.{expert}", x[tokens])
        seen = ExpertActivations(expert, tokens, weights[tokens, rank], hidden)
        out[tokens] += seen.weights[:, None] * _projected(layer, f"experts.{expert}.down", hidden)
        if on_expert is not None:
            on_expert(seen)
    return out, chosen


def _projected(layer: Layer, name: str, x: F32) -> F32:
    """x through a matrix, plus its bias where there is one."""
    y = linear(x, layer[name])
    return y + layer[f"{name}_bias"] if f"{name}_bias" in layer else y


def _hidden(config: ModelConfig, layer: Layer, prefix: str, x: F32) -> F32:
    """Input of the down projection."""
    gate, up = _projected(layer, f"{prefix}.gate", x), _projected(layer, f"{prefix}.up", x)
    if config.swiglu_limit:
        return numbers.swiglu_clamped(gate, up, config.swiglu_alpha, config.swiglu_limit)
    return numbers.silu(gate) * up


def _ffn(
    config: ModelConfig, index: int, layer: Layer, x: F32, on_expert: OnExpert | None
) -> tuple[F32, NDArray[np.int64], F32 | None]:
    """What the feed-forward part adds [N, dim], the choice, and the input of the dense or shared down projection."""
    if config.is_dense(index):
        hidden = _hidden(config, layer, "dense", x)
        return linear(hidden, layer["dense.down"]), np.zeros((len(x), 0), np.int64), hidden
    out, chosen = _experts(config, layer, x, on_expert)
    if not config.shared_hidden_dim:
        return out, chosen, None
    hidden = _hidden(config, layer, "shared", x)
    shared = linear(hidden, layer["shared.down"])
    if config.shared_gate:
        shared = numbers.sigmoid(linear(x, layer["shared_gate"])) * shared
    return out + shared, chosen, hidden


def layer_forward(
    config: ModelConfig, index: int, layer: Layer, x: F32, lengths: Sequence[int], on_expert: OnExpert | None = None
) -> tuple[F32, LayerActivations]:
    """Residual stream [N, dim] behind layer `index`, and the inputs of its projections.

    `on_expert` is called for each expert in order, also for one that no token chose (n = 0); never in a dense layer.
    """
    scale = np.float32(config.residual_scale)
    attention_in = stream_norm(config, layer, "attn_norm", x)
    attention_out = _attention(config, index, layer, attention_in, lengths)
    x = x + _projected(layer, "o", attention_out) * scale
    ffn_in = stream_norm(config, layer, "ffn_norm", x)
    added, chosen, hidden = _ffn(config, index, layer, ffn_in, on_expert)
    return x + added * scale, LayerActivations(attention_in, attention_out, ffn_in, chosen, hidden)


def embed(config: ModelConfig, embedding: F32, sequences: Sequence[Sequence[int]]) -> F32:
    """Residual stream [N, dim] at the entrance of the first layer."""
    ids = np.concatenate([np.asarray(sequence, np.int64) for sequence in sequences])
    return np.asarray(embedding[ids] * np.float32(config.embedding_scale), np.float32)


def take_layer(tensors: Mapping[str, F32], config: ModelConfig, index: int) -> dict[str, F32]:
    """The tensors of one layer by their short names."""
    prefix = f"layers.{index}."
    names = (spec.name for spec in layer_tensor_specs(config, index))
    return {name.removeprefix(prefix): tensors[name] for name in names}


def forward(config: ModelConfig, tensors: Mapping[str, F32], sequences: Sequence[Sequence[int]]) -> F32:
    """Logits [N, vocab_size] at every position of every sequence; `tensors` by TensorSpec.name."""
    with blas_threads_for(config):
        return _forward(config, tensors, sequences)


def _forward(config: ModelConfig, tensors: Mapping[str, F32], sequences: Sequence[Sequence[int]]) -> F32:
    lengths = [len(sequence) for sequence in sequences]
    x = embed(config, tensors["embedding"], sequences)
    for index in range(config.n_layers):
        x, _ = layer_forward(config, index, take_layer(tensors, config, index), x, lengths)
    head = tensors["embedding" if config.tied_embeddings else "lm_head"]
    logits = linear(stream_norm(config, tensors, "final_norm", x), head)
    logits = logits + tensors["lm_head_bias"] if config.head_bias else logits
    return logits / np.float32(config.logits_divisor)
