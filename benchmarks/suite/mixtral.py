"""Random checkpoints with the shape of Mixtral: seeded, so that every machine makes the same."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from suite.places import Json
from suite.tensors import F32, Checkpoint, Tensor, as_bf16

# Standard deviation of a matrix times the root of its inputs. Those that write to the residual stream are divided by the
# root of twice the layers, as trained models are initialised; the head's makes the most likely token clear.
GAINS = {"q": 1.5, "k": 1.5, "v": 1.0, "router": 1.5, "up": 1.4, "head": 3.0, "residual": 2.0}


@dataclass(frozen=True)
class Shape:
    """Of a Mixtral; dim is a multiple of heads, heads of kv_heads."""

    dim: int
    hidden: int
    experts: int
    top_k: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    context: int

    def config(self, tied: bool = False) -> Json:
        """config.json in transformers' words."""
        return {
            "architectures": ["MixtralForCausalLM"],
            "model_type": "mixtral",
            "hidden_size": self.dim,
            "intermediate_size": self.hidden,
            "num_local_experts": self.experts,
            "num_experts_per_tok": self.top_k,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "vocab_size": self.vocab,
            "max_position_embeddings": self.context,
            "rms_norm_eps": 1e-05,
            "rope_theta": 1000000.0,
            "hidden_act": "silu",
            "sliding_window": None,
            "tie_word_embeddings": tied,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "torch_dtype": "bfloat16",
        }

    def active_weights(self) -> int:
        """Weights that a token multiplies: matrices of attention, router, top_k experts and head."""
        kv = self.dim // self.heads * self.kv_heads
        attention = 2 * self.dim * self.dim + 2 * self.dim * kv
        ffn = self.top_k * 3 * self.dim * self.hidden + self.experts * self.dim
        return self.layers * (attention + ffn) + self.vocab * self.dim


def random_checkpoint(shape: Shape, seed: int, tokenizer: str) -> Checkpoint:
    """Normally distributed weights, rounded to bf16, each tensor from its own name and the seed."""
    tensors = [_random(name, size, gain, seed) for name, size, gain in _tensors(shape)]
    return Checkpoint(shape.config(), tensors, tokenizer)


def _random(name: str, size: tuple[int, ...], gain: float, seed: int) -> Tensor:
    def make() -> F32:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        values = rng.standard_normal(size, np.float32)
        return as_bf16(1 + np.float32(0.1) * values if len(size) == 1 else np.float32(gain) * values)

    return Tensor(name, size, make)


def _tensors(shape: Shape) -> Iterator[tuple[str, tuple[int, ...], float]]:
    yield "model.embed_tokens.weight", (shape.vocab, shape.dim), 1.0
    for layer in range(shape.layers):
        yield from _layer(shape, f"model.layers.{layer}.")
    yield "model.norm.weight", (shape.dim,), 0.0
    yield "lm_head.weight", (shape.vocab, shape.dim), GAINS["head"] / math.sqrt(shape.dim)


def _layer(shape: Shape, prefix: str) -> Iterator[tuple[str, tuple[int, ...], float]]:
    dim, hidden = shape.dim, shape.hidden
    kv = dim // shape.heads * shape.kv_heads
    by_dim = 1 / math.sqrt(dim)
    residual = GAINS["residual"] / math.sqrt(2 * shape.layers)
    yield f"{prefix}input_layernorm.weight", (dim,), 0.0
    yield f"{prefix}post_attention_layernorm.weight", (dim,), 0.0
    for name, rows in (("q", dim), ("k", kv), ("v", kv)):
        yield f"{prefix}self_attn.{name}_proj.weight", (rows, dim), GAINS[name] * by_dim
    yield f"{prefix}self_attn.o_proj.weight", (dim, dim), residual * by_dim
    yield f"{prefix}block_sparse_moe.gate.weight", (shape.experts, dim), GAINS["router"] * by_dim
    for expert in range(shape.experts):
        inner = f"{prefix}block_sparse_moe.experts.{expert}."
        yield f"{inner}w1.weight", (hidden, dim), GAINS["up"] * by_dim
        yield f"{inner}w3.weight", (hidden, dim), GAINS["up"] * by_dim
        yield f"{inner}w2.weight", (dim, hidden), residual / math.sqrt(hidden)
