"""The decoder in NumPy: one token at a time, bit for bit what the firmware computes (docs/numerics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, ModelConfig, QuantizedModel, RoutingStep
from colibri_build.errors import ColibriError
from colibri_build.reference.matrix import ReferenceMatrix, embedding_row
from colibri_build.reference.numbers import dot, exp, lane_sum, rms_norm, silu, sincos
from colibri_build.reference.router import route


class NotFiniteError(ColibriError):
    """NaN or infinity in router logits, logits or the cache."""

    exit_code = 1


def inverse_frequencies(config: ModelConfig) -> F32:
    """RoPE frequencies [head_dim / 2], computed in binary64 and rounded once."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    return (1.0 / np.power(np.float64(config.rope_theta), exponents)).astype(np.float32)


def rotate(heads: F32, cos: F32, sin: F32) -> F32:
    """Rotate heads [n, head_dim]: element i pairs with i + head_dim/2; cos and sin are [head_dim / 2]."""
    half = heads.shape[-1] // 2
    first, second = heads[:, :half], heads[:, half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


@dataclass
class Step:
    """What one token gave: logits [vocab_size] if asked for, and the routing of each layer."""

    logits: F32 | None
    routing: list[RoutingStep] = field(default_factory=list)


class ReferenceModel:
    """A decoder with its KV cache. `activation_bits` is 8 or 16; `context` bounds the positions."""

    def __init__(self, model: QuantizedModel, *, activation_bits: int = 16, context: int | None = None) -> None:
        self.config = model.config
        self.context = context or model.config.max_context
        self._model = model
        self._bits = activation_bits
        self._inv_freq = inverse_frequencies(model.config)
        self._scale = np.float32(1.0 / np.sqrt(np.float64(model.config.head_dim)))
        self._matrices: dict[str, ReferenceMatrix] = {}
        self.reset()

    def reset(self) -> None:
        """Start a new sequence at position 0."""
        c = self.config
        shape = (c.n_layers, c.n_kv_heads, self.context, c.head_dim)
        self._keys = np.zeros(shape, np.float16)
        self._values = np.zeros(shape, np.float16)
        self.position = 0

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is reported once, where it is checked
    def step(self, token: int, *, want_logits: bool = True) -> Step:
        """Feed one token. Raises NotFiniteError, and ValueError for a token or position out of range."""
        if not 0 <= token < self.config.vocab_size or self.position >= self.context:
            raise ValueError(f"token {token} at position {self.position} of {self.context}")
        step = Step(None)
        x = embedding_row(self._model.tensors["embedding"], self._model.group_size, token)
        for layer in range(self.config.n_layers):
            x = x + self._attention(layer, self._norm(x, f"layers.{layer}.attn_norm"))
            x = x + self._experts(layer, self._norm(x, f"layers.{layer}.ffn_norm"), step)
        if want_logits:
            head = "embedding" if self.config.tied_embeddings else "lm_head"
            step.logits = self._product(head, self._norm(x, "final_norm"))
            _require_finite(step.logits, "the logits")
        self.position += 1
        return step

    def _norm(self, x: F32, name: str) -> F32:
        weight = self._model.tensors[name].codes.reshape(-1)
        return rms_norm(x, weight, self.config.rms_eps)

    def _product(self, name: str, x: F32) -> F32:
        if name not in self._matrices:
            self._matrices[name] = ReferenceMatrix(self._model.tensors[name], self._model.group_size)
        return self._matrices[name].multiply(x, self._bits)

    def _attention(self, layer: int, h: F32) -> F32:
        c, pos, prefix = self.config, self.position, f"layers.{layer}"
        sin, cos = sincos((np.float32(pos) * self._inv_freq).astype(np.float64))
        q = rotate(self._product(f"{prefix}.q", h).reshape(c.n_heads, c.head_dim), cos, sin)
        k = rotate(self._product(f"{prefix}.k", h).reshape(c.n_kv_heads, c.head_dim), cos, sin)
        v = self._product(f"{prefix}.v", h).reshape(c.n_kv_heads, c.head_dim)
        self._keys[layer, :, pos] = k.astype(np.float16)
        self._values[layer, :, pos] = v.astype(np.float16)
        _require_finite(self._keys[layer, :, pos], f"the key cache of layer {layer}")
        _require_finite(self._values[layer, :, pos], f"the value cache of layer {layer}")
        mixed = [self._attend(layer, head, q[head]) for head in range(c.n_heads)]
        return self._product(f"{prefix}.o", np.concatenate(mixed))

    def _attend(self, layer: int, head: int, q: F32) -> F32:
        c, pos = self.config, self.position
        first = max(0, pos - c.sliding_window + 1) if c.sliding_window else 0
        kv_head = head // (c.n_heads // c.n_kv_heads)
        keys = self._keys[layer, kv_head, first : pos + 1].astype(np.float32)
        values = self._values[layer, kv_head, first : pos + 1].astype(np.float32)
        scores = dot(q[None, :], keys) * self._scale
        e = exp(scores - np.max(scores))
        mixed = np.zeros(c.head_dim, np.float32)
        for weight, value in zip(e, values, strict=True):
            mixed = mixed + weight * value
        return np.asarray(mixed / lane_sum(e), np.float32)

    def _experts(self, layer: int, h: F32, step: Step) -> F32:
        logits = self._product(f"layers.{layer}.router", h)
        _require_finite(logits, f"the router of layer {layer}")
        chosen = route(logits, self.config.top_k, self.config.norm_topk)
        step.routing.append(chosen)
        y = np.zeros(self.config.dim, np.float32)
        for expert, weight in zip(chosen.experts, chosen.weights, strict=True):
            prefix = f"layers.{layer}.experts.{expert}"
            hidden = silu(self._product(f"{prefix}.gate", h)) * self._product(f"{prefix}.up", h)
            y = y + np.float32(weight) * self._product(f"{prefix}.down", hidden)
        return y


def _require_finite(values: NDArray[np.floating], where: str) -> None:
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise NotFiniteError(
            f"{bad} of {values.size} values in {where} are not finite",
            hint="check the checkpoint's weights for overflow, or quantize with larger formats",
        )


def forward(reference: ReferenceModel, ids: Sequence[int]) -> tuple[F32, list[list[RoutingStep]]]:
    """Teacher-forced pass from position 0: logits [len(ids), vocab_size] and routing [len(ids)][n_layers]."""
    reference.reset()
    steps = [reference.step(token) for token in ids]
    logits = np.stack([step.logits for step in steps if step.logits is not None])
    return logits, [step.routing for step in steps]
