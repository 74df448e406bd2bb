"""The decoder in NumPy: one token at a time, bit for bit what the firmware computes (docs/numerics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, QkNorm, QuantizedModel, RoutingStep
from colibri_build.errors import ColibriError
from colibri_build.model_constants import LATENT_EPS, attention_scale, rope_frequencies, window_of
from colibri_build.reference.matrix import MatrixCache, embedding_row
from colibri_build.reference.numbers import (
    dot,
    exp,
    lane_sum,
    layer_norm,
    rms_norm,
    rotate,
    sigmoid,
    silu,
    sincos,
    swiglu_clamped,
)
from colibri_build.reference.router import route


class NotFiniteError(ColibriError):
    """NaN or infinity in router logits, logits or the cache."""

    exit_code = 1


@dataclass
class Step:
    """What one token gave: logits [vocab_size] if asked for, and the routing of each layer with experts."""

    logits: F32 | None
    routing: list[RoutingStep] = field(default_factory=list)


class ReferenceModel:
    """A decoder with its KV cache. `activation_bits` is 8 or 16; `context` bounds the positions."""

    def __init__(self, model: QuantizedModel, *, activation_bits: int = 16, context: int | None = None) -> None:
        self.config = model.config
        self.context = context or model.config.max_context
        self._model = model
        self._bits = activation_bits
        self._inv_freq = rope_frequencies(model.config)
        self._scale = np.float32(attention_scale(model.config))
        self._matrices = MatrixCache(model)
        self.reset()

    def reset(self) -> None:
        """Start a new sequence at position 0."""
        c = self.config
        shape = (c.n_layers, c.n_kv_heads, self.context)
        self._keys = np.zeros((*shape, c.head_dim), np.float16)
        self._values = np.zeros((*shape, c.v_head_dim), np.float16)
        self.position = 0

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is reported once, where it is checked
    def step(self, token: int, *, want_logits: bool = True) -> Step:
        """Feed one token. Raises NotFiniteError, and ValueError for a token or position out of range."""
        c = self.config
        if not 0 <= token < c.vocab_size or self.position >= self.context:
            raise ValueError(f"token {token} at position {self.position} of {self.context}")
        step = Step(None)
        x = _scaled(embedding_row(self._model.tensors["embedding"], self._model.group_size, token), c.embedding_scale)
        for layer in range(c.n_layers):
            attention = self._attention(layer, self._norm(x, f"layers.{layer}.attn_norm"))
            x = x + _scaled(attention, c.residual_scale)
            x = x + _scaled(self._ffn(layer, self._norm(x, f"layers.{layer}.ffn_norm"), step), c.residual_scale)
        if want_logits:
            logits = self._product("embedding" if c.tied_embeddings else "lm_head", self._norm(x, "final_norm"))
            logits = logits + self._vector("lm_head_bias") if c.head_bias else logits
            step.logits = logits if c.logits_divisor == 1.0 else logits / np.float32(c.logits_divisor)
            _require_finite(step.logits, "the logits")
        self.position += 1
        return step

    def _vector(self, name: str) -> F32:
        return np.asarray(self._model.tensors[name].codes.reshape(-1), np.float32)

    def _norm(self, x: F32, name: str) -> F32:
        """A norm of the residual stream."""
        weight, eps = self._vector(name), self.config.rms_eps
        if self.config.layer_norm:
            return layer_norm(x, weight, self._vector(f"{name}_bias"), eps)
        return rms_norm(x, weight, eps)

    def _product(self, name: str, x: F32) -> F32:
        return self._matrices[name].multiply(x, self._bits)

    def _attention(self, layer: int, h: F32) -> F32:
        c, pos, prefix = self.config, self.position, f"layers.{layer}"
        sin, cos = sincos((np.float32(pos) * self._inv_freq).astype(np.float64))
        sin, cos = _scaled(sin, c.rope_factor), _scaled(cos, c.rope_factor)
        q, k, v = self._latent_heads(prefix, h) if c.kv_rank else (self._heads(f"{prefix}.{x}", h) for x in "qkv")
        q = rotate(q, cos, sin, interleaved=c.rope_interleaved)
        k = rotate(k, cos, sin, interleaved=c.rope_interleaved)
        self._keys[layer, :, pos] = k.astype(np.float16)
        self._values[layer, :, pos] = v.astype(np.float16)
        _require_finite(self._keys[layer, :, pos], f"the key cache of layer {layer}")
        _require_finite(self._values[layer, :, pos], f"the value cache of layer {layer}")
        out = self._product(f"{prefix}.o", self._attend(layer, q))
        return out + self._vector(f"{prefix}.o_bias") if c.o_bias else out

    def _latent_heads(self, prefix: str, h: F32) -> tuple[F32, F32, F32]:
        """Queries, keys and values [n_heads, ...] of multi-head latent attention before RoPE."""
        c = self.config
        if c.q_rank:
            q_latent = rms_norm(self._product(f"{prefix}.q_a", h), self._vector(f"{prefix}.q_a_norm"), LATENT_EPS)
        q = self._product(f"{prefix}.q", q_latent if c.q_rank else h)
        latent = rms_norm(self._product(f"{prefix}.kv_a", h), self._vector(f"{prefix}.kv_a_norm"), LATENT_EPS)
        turning = np.tile(self._product(f"{prefix}.k_rope", h), (c.n_heads, 1))
        still = self._product(f"{prefix}.k", latent).reshape(c.n_heads, -1)
        values = self._product(f"{prefix}.v", latent).reshape(c.n_heads, -1)
        return q.reshape(c.n_heads, -1), np.concatenate([turning, still], axis=1), values

    def _heads(self, name: str, h: F32) -> F32:
        """Queries, keys or values [heads, head_dim] before RoPE: projected, then bias, norm and clamp as configured."""
        c, part = self.config, name[-1]
        y = self._product(name, h)
        if c.qkv_bias:
            y = y + self._vector(f"{name}_bias")
        if c.qk_norm is QkNorm.WHOLE and part in "qk":
            y = rms_norm(y, self._vector(f"{name}_norm"), c.rms_eps)
        if c.clip_qkv:
            y = np.clip(y, -np.float32(c.clip_qkv), np.float32(c.clip_qkv))
        heads = y.reshape(-1, c.head_dim)
        if c.qk_norm is QkNorm.HEAD and part in "qk":
            heads = np.stack([rms_norm(head, self._vector(f"{name}_norm"), c.rms_eps) for head in heads])
        return heads

    def _attend(self, layer: int, q: F32) -> F32:
        """Of all heads, one after the other: what queries [n_heads, head_dim] find in the cache."""
        c, pos = self.config, self.position
        window = window_of(c, layer)
        seen = slice(max(0, pos - window + 1) if window else 0, pos + 1)
        sharing = c.n_heads // c.n_kv_heads  # query heads of a key-value head
        keys = np.repeat(self._keys[layer, :, seen].astype(np.float32), sharing, axis=0)
        values = np.repeat(self._values[layer, :, seen].astype(np.float32), sharing, axis=0)
        scores = dot(q[:, None, :], keys) * self._scale
        sinks = self._vector(f"layers.{layer}.sinks")[:, None] if c.attention_sinks else scores[:, :0]
        most = np.max(np.concatenate([scores, sinks], axis=1), axis=1, keepdims=True)
        e = exp(scores - most)
        mixed = np.zeros((c.n_heads, c.v_head_dim), np.float32)
        for weight, value in zip(e.T, values.transpose(1, 0, 2), strict=True):
            mixed = mixed + weight[:, None] * value
        total = lane_sum(e) + exp(sinks - most)[:, 0] if c.attention_sinks else lane_sum(e)
        return np.asarray(mixed / total[:, None], np.float32).reshape(-1)

    def _ffn(self, layer: int, h: F32, step: Step) -> F32:
        """What the feed-forward part of a layer adds: one dense part, or the chosen and the shared experts."""
        c, prefix = self.config, f"layers.{layer}"
        if c.is_dense(layer):
            return self._projections(f"{prefix}.dense", h)
        y = self._experts(layer, h, step)
        if c.shared_hidden_dim:
            shared = self._projections(f"{prefix}.shared", h)
            y = y + (sigmoid(self._product(f"{prefix}.shared_gate", h)) * shared if c.shared_gate else shared)
        return y

    def _experts(self, layer: int, h: F32, step: Step) -> F32:
        c, prefix = self.config, f"layers.{layer}"
        logits = self._product(f"{prefix}.router", h)
        logits = logits + self._vector(f"{prefix}.router_bias") if c.router_bias else logits
        _require_finite(logits, f"the router of layer {layer}")
        bias = self._vector(f"{prefix}.selection_bias") if c.selection_bias else None
        chosen = route(logits, c, bias)
        step.routing.append(chosen)
        y = np.zeros(c.dim, np.float32)
        for expert, weight in zip(chosen.experts, chosen.weights, strict=True):
            y = y + np.float32(weight) * self._projections(f"{prefix}.experts.{expert}", h, biased=c.expert_bias)
        return y

    def _projections(self, prefix: str, h: F32, *, biased: bool = False) -> F32:
        """down(silu(gate h) * (up h)), or with the clamped SwiGLU."""
        c = self.config

        def projected(part: str, x: F32) -> F32:
            y = self._product(f"{prefix}.{part}", x)
            return y + self._vector(f"{prefix}.{part}_bias") if biased else y

        gate, up = projected("gate", h), projected("up", h)
        hidden = swiglu_clamped(gate, up, c.swiglu_alpha, c.swiglu_limit) if c.swiglu_limit else silu(gate) * up
        return projected("down", hidden)


def _scaled(x: F32, factor: float) -> F32:
    return x if factor == 1.0 else np.asarray(x * np.float32(factor), np.float32)


def _require_finite(values: NDArray[np.floating], where: str) -> None:
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise NotFiniteError(
            f"{bad} of {values.size} values in {where} are not finite",
            hint="check the checkpoint's weights for overflow, or quantize with larger formats",
        )


def forward(reference: ReferenceModel, ids: Sequence[int]) -> tuple[F32, list[list[RoutingStep]]]:
    """Teacher-forced pass from position 0: logits [len(ids), vocab_size] and routing [len(ids)][layers with experts]."""
    reference.reset()
    steps = [reference.step(token) for token in ids]
    logits = np.stack([step.logits for step in steps if step.logits is not None])
    return logits, [step.routing for step in steps]
