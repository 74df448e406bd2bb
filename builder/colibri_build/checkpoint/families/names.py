"""Where a family keeps its tensors: our name -> the stored tensor, and our part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import ModelConfig, TensorSpec
from colibri_build.checkpoint.stored import Index

TOP_NAMES = {
    "embedding": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "final_norm_bias": "model.norm.bias",
    "lm_head": "lm_head.weight",
    "lm_head_bias": "lm_head.bias",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm.weight",
    "attn_norm_bias": "input_layernorm.bias",
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
    "q_bias": "self_attn.q_proj.bias",
    "k_bias": "self_attn.k_proj.bias",
    "v_bias": "self_attn.v_proj.bias",
    "o_bias": "self_attn.o_proj.bias",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "ffn_norm": "post_attention_layernorm.weight",
    "ffn_norm_bias": "post_attention_layernorm.bias",
    "router": "mlp.gate.weight",
}
W123 = {"gate": "w1", "up": "w3", "down": "w2"}  # the names of Mixtral's experts
PROJECTIONS = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
_HALVES = {"gate": 0, "up": 1}


@dataclass(frozen=True)
class Stored:
    """One tensor of ours inside a stored one: `index` picks it from a tensor of `shape`."""

    name: str
    shape: tuple[int, ...]
    index: Index = ()


@dataclass(frozen=True)
class Names:
    """The names of one family, in the words of its checkpoints. All but `TOP_NAMES` stand below model.layers.N.

    `experts` and `dense` and `shared` are prefixes of {gate,up,down} projections. transformers 5 may save all experts
    of a layer as two tensors, `fused` + gate_up_proj [n_experts, 2 * hidden_dim, dim] and down_proj; where it also
    renames the router, `fused_router` says how. `joined` families publish gate and up as one tensor.
    """

    experts: str = "mlp.experts"
    expert_parts: Mapping[str, str] = field(default_factory=lambda: PROJECTIONS)
    dense: str = "mlp"
    shared: str = "mlp.shared_experts"
    layer: Mapping[str, str] = field(default_factory=dict)  # beside and before LAYER_NAMES
    fused: str = "mlp.experts"
    fused_router: str | None = None
    joined: bool = False
    alternating: bool = (
        False  # the fused tensors are the only ones, gate and up alternate in them, and they have biases
    )

    def places(self, spec: TensorSpec, config: ModelConfig) -> Iterator[Stored]:
        """Every place where a tensor may be; a checkpoint has it in exactly one."""
        if spec.name in TOP_NAMES:
            yield Stored(TOP_NAMES[spec.name], spec.shape)
            return
        _, layer, *rest = spec.name.split(".")
        for place in self._below_layer(rest, spec, config):
            yield Stored(f"model.layers.{layer}.{place.name}", place.shape, place.index)

    def _below_layer(self, rest: list[str], spec: TensorSpec, config: ModelConfig) -> Iterator[Stored]:
        if rest[0] == "experts":
            yield from self._expert(int(rest[1]), rest[2], spec, config)
        elif rest[0] == "shared" and self.joined:
            yield from _joined(f"{self.shared}.", rest[1], spec)
        elif rest[0] in ("dense", "shared"):
            prefix = self.dense if rest[0] == "dense" else self.shared
            yield Stored(f"{prefix}.{PROJECTIONS[rest[1]]}.weight", spec.shape)
        elif config.kv_rank and rest[0] in LATENT:
            yield LATENT[rest[0]](spec, config)
        else:
            name = rest[0]
            yield Stored(self.layer.get(name) or LAYER_NAMES[name], spec.shape)
            if name == "router" and self.fused_router:
                yield Stored(self.fused_router, spec.shape)

    def _expert(self, expert: int, part: str, spec: TensorSpec, config: ModelConfig) -> Iterator[Stored]:
        if self.alternating:
            yield _alternating(self.fused, part, spec, (config.n_experts, expert))
            return
        if self.joined:
            yield from _joined(f"{self.experts}.", part, spec, (config.n_experts, expert))
        else:
            yield Stored(f"{self.experts}.{expert}.{self.expert_parts[part]}.weight", spec.shape)
        if part == "down":
            yield Stored(f"{self.fused}.down_proj", (config.n_experts, *spec.shape), (expert,))
        else:
            shape = (config.n_experts, 2 * spec.rows, spec.cols)
            yield Stored(f"{self.fused}.gate_up_proj", shape, (expert, _half(part, spec)))


def _head_rows(n_heads: int, size: int, parts: tuple[slice, ...]) -> NDArray[np.int64]:
    """Rows of `parts` of each head, in their order, of heads of `size` rows."""
    rows = np.arange(n_heads * size).reshape(n_heads, size)
    return np.concatenate([rows[:, part] for part in parts], axis=1).ravel()


def _latent_query(spec: TensorSpec, config: ModelConfig) -> Stored:
    """Published heads have the part that turns behind the other one."""
    still = config.head_dim - config.rotary_dim
    rows = _head_rows(config.n_heads, config.head_dim, (slice(still, None), slice(still)))
    return Stored(f"self_attn.{'q_b_proj' if config.q_rank else 'q_proj'}.weight", spec.shape, (rows,))


def _latent_keys_and_values(spec: TensorSpec, config: ModelConfig) -> Stored:
    """One matrix up to keys and values: each head's keys, which do not turn, then its values."""
    still = config.head_dim - config.rotary_dim
    size = still + config.v_head_dim
    part = slice(still) if spec.name.endswith(".k") else slice(still, None)
    shape = (config.n_heads * size, config.kv_rank)
    return Stored("self_attn.kv_b_proj.weight", shape, (_head_rows(config.n_heads, size, (part,)),))


def _latent_down(spec: TensorSpec, config: ModelConfig) -> Stored:
    """One matrix down to the latent vector and to the part of the keys that turns."""
    rows = slice(config.kv_rank) if spec.name.endswith(".kv_a") else slice(config.kv_rank, None)
    shape = (config.kv_rank + config.rotary_dim, config.dim)
    return Stored("self_attn.kv_a_proj_with_mqa.weight", shape, (rows,))


LATENT: Mapping[str, Callable[[TensorSpec, ModelConfig], Stored]] = {
    "q_a": lambda spec, config: Stored("self_attn.q_a_proj.weight", spec.shape),
    "q_a_norm": lambda spec, config: Stored("self_attn.q_a_layernorm.weight", spec.shape),
    "q": _latent_query,
    "kv_a": _latent_down,
    "k_rope": _latent_down,
    "kv_a_norm": lambda spec, config: Stored("self_attn.kv_a_layernorm.weight", spec.shape),
    "k": _latent_keys_and_values,
    "v": _latent_keys_and_values,
}


def _half(part: str, spec: TensorSpec) -> slice:
    """Rows of gate or up, where gate's lie before up's."""
    start = _HALVES[part] * spec.rows
    return slice(start, start + spec.rows)


def _alternating(prefix: str, part: str, spec: TensorSpec, expert: tuple[int, int]) -> Stored:
    """A part of an expert, or a part's bias, where the rows of gate and up take turns; `expert`: (n_experts, expert)."""
    part, _, bias = part.partition("_")
    end = "_bias" if bias else ""
    if part == "down":
        return Stored(f"{prefix}.down_proj{end}", (expert[0], *spec.shape), (expert[1],))
    shape = (expert[0], 2 * spec.shape[0], *spec.shape[1:])
    return Stored(f"{prefix}.gate_up_proj{end}", shape, (expert[1], slice(_HALVES[part], None, 2)))


def _joined(prefix: str, part: str, spec: TensorSpec, expert: tuple[int, int] | None = None) -> Iterator[Stored]:
    """input_linear holds gate and up, output_linear down; with a first axis of experts for (n_experts, expert)."""
    first, index = ((expert[0],), (expert[1],)) if expert else ((), ())
    if part == "down":
        yield Stored(f"{prefix}output_linear.weight", (*first, *spec.shape), index)
    else:
        shape = (*first, 2 * spec.rows, spec.cols)
        yield Stored(f"{prefix}input_linear.weight", shape, (*index, _half(part, spec)))
