"""Typed access to the metadata of one architecture, and the keys that all architectures have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.errors import CheckpointError

Values = dict[str, Any]  # of config.json
SOFTMAX, SIGMOID, SOFTMAX_OF_CHOSEN = 1, 2, 3  # expert_gating_func
_DEFAULT_THETA = 1e4


@dataclass(frozen=True)
class Metadata:
    """The keys of `architecture`, without that prefix. `keys` has them with it. All methods raise CheckpointError."""

    keys: ConfigKeys
    architecture: str

    def has(self, name: str) -> bool:
        """Whether the key is there."""
        return self.keys.has(self._key(name))

    def size(self, name: str, default: int | None = None, low: int = 1) -> int:
        """An integer; of a list with one value for each layer, the one that all have."""
        value = self.keys.take(self._key(name))
        if isinstance(value, list) and value and value.count(value[0]) == len(value):
            return ConfigKeys({self._key(name): value[0]}, self.keys.where).size(self._key(name), low=low)
        return self.keys.size(self._key(name), default=default, low=low)

    def number(self, name: str, default: float | None = None) -> float:
        """A number above 0."""
        if default is None and not self.has(name):
            raise CheckpointError(f'{self.keys.where}: "{self._key(name)}" is missing', hint="convert the model again")
        return self.keys.positive(self._key(name), default or 0.0)

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        return self.keys.flag(self._key(name), default)

    def take(self, name: str) -> Any:
        """The raw value, or None."""
        return self.keys.take(self._key(name))

    def only(self, name: str, *supported: Any) -> None:
        """Refuse any value but these."""
        self.keys.only(self._key(name), *supported)

    def refused(self, name: str, supported: str) -> CheckpointError:
        """The error for a value that is not supported."""
        return self.keys.refused(self._key(name), self.take(name), supported)

    def finish(self) -> None:
        """Refuse the first key that nobody took."""
        self.keys.finish()

    def _key(self, name: str) -> str:
        return f"{self.architecture}.{name}"


def common_values(data: Metadata, facts: Mapping[str, Any]) -> Values:
    """What every architecture says, in the words of config.json; head_dim and RoPE are those of plain attention."""
    data.only("attention.causal", True)
    data.only("use_parallel_residual", False)
    data.only("vocab_size", facts["vocab_size"])
    n_heads = data.size("attention.head_count")
    return {
        "hidden_size": data.size("embedding_length"),
        "num_hidden_layers": data.size("block_count"),
        "num_attention_heads": n_heads,
        "num_key_value_heads": data.size("attention.head_count_kv", n_heads),
        "max_position_embeddings": data.size("context_length"),
        "rms_norm_eps": data.number("attention.layer_norm_rms_epsilon"),
        "vocab_size": facts["vocab_size"],
        "tie_word_embeddings": facts["tied"],
    }


def head_size(data: Metadata, values: Mapping[str, Any]) -> int:
    """Elements of a head, the same for queries, keys and values."""
    dim, n_heads = values["hidden_size"], values["num_attention_heads"]
    size = data.size("attention.key_length", dim // n_heads)
    data.only("attention.value_length", size)
    return size


def expert_values(data: Metadata, count: str, gating: int, *, scaled: bool = False) -> Values:
    """Number of the experts, as `count`, and of those that are used; `scaled`: their weights may have a factor."""
    data.only("expert_gating_func", gating)
    values = {count: data.size("expert_count"), "num_experts_per_tok": data.size("expert_used_count")}
    if not scaled:
        data.only("expert_weights_scale", 0.0, 1.0)
        data.only("expert_group_count", 0, 1)
        data.only("expert_group_used_count", 0, 1)
        return values
    scale = data.take("expert_weights_scale")  # 0: none
    return {**values, "routed_scaling_factor": data.number("expert_weights_scale", 1.0) if scale else 1.0}


def shared_values(data: Metadata) -> Values:
    """Shared experts and dense first layers, as DeepSeek has them."""
    return {
        "intermediate_size": data.size("feed_forward_length"),
        "moe_intermediate_size": data.size("expert_feed_forward_length"),
        "n_shared_experts": data.size("expert_shared_count", 0, low=0),
        "first_k_dense_replace": data.size("leading_dense_block_count", 0, low=0),
    }


def rope_values(data: Metadata, facts: Mapping[str, Any], rotary_dim: int, max_context: int) -> Values:
    """rope_parameters of a RoPE that turns `rotary_dim` elements of a head."""
    data.only("rope.dimension_count", rotary_dim)
    rope = {"rope_theta": data.number("rope.freq_base", _DEFAULT_THETA), **_scaling(data)}
    factors = facts["rope_factors"]
    if factors is not None:
        if rope.get("rope_type", "default") != "default":
            raise data.refused("rope.scaling.type", '"none" where the file has rope_freqs.weight')
        rope |= _listed_factors(factors, max_context)
    return {"rope_parameters": {"rope_type": "default", **rope}}


def _listed_factors(factors: list[float], max_context: int) -> Values:
    """Llama 3's scaling, as one factor for each frequency: what longrope computes within its original context."""
    return {
        "rope_type": "longrope",
        "short_factor": factors,
        "long_factor": factors,
        "attention_factor": 1.0,
        "original_max_position_embeddings": max_context,
    }


def _scaling(data: Metadata) -> Values:
    data.take("rope.scaling.finetuned")  # tells whether the model was trained with it
    kind = data.take("rope.scaling.type")
    if data.has("rope.scale_linear"):  # as files of 2023 have it
        return {"rope_type": "linear", "factor": data.number("rope.scale_linear")}
    factor, original = data.number("rope.scaling.factor", 1.0), data.take("rope.scaling.original_context_length")
    if kind is None or kind == "none":
        if factor != 1.0:
            raise data.refused("rope.scaling.factor", '1 without "rope.scaling.type"')
        return {}
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind != "yarn":
        raise data.refused("rope.scaling.type", '"none", "linear" or "yarn"')
    yarn = {"rope_type": "yarn", "factor": factor}
    yarn |= {"original_max_position_embeddings": original} if original is not None else {}
    for name, key in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
        yarn |= {key: data.number(f"rope.scaling.{name}")} if data.has(f"rope.scaling.{name}") else {}
    data.only("rope.scaling.yarn_ext_factor", 1.0)
    data.only("rope.scaling.yarn_attn_factor", 1.0)
    data.only("rope.scaling.attn_factor", 1.0)
    return yarn
