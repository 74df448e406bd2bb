"""What a family is, and what the families' readers of config.json share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from colibri_build.artifacts import ModelConfig
from colibri_build.checkpoint.config_keys import BENIGN_KEYS, ConfigKeys
from colibri_build.checkpoint.families.names import Names
from colibri_build.checkpoint.quantization_config import QUANTIZATION_KEY, read_quantization
from colibri_build.checkpoint.rope import Rope, read_rope
from colibri_build.checkpoint.stored import StoredTensor
from colibri_build.errors import CheckpointError

Fields = dict[str, Any]  # of ModelConfig

# Keys that no family needs, with the only values that mean what the classes compute anyway.
_FIXED: Mapping[str, tuple[Any, ...]] = {
    "hidden_act": ("silu",),
    "is_decoder": (False, True),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "tie_encoder_decoder": (False,),
    "pruned_heads": ({}, None),
    "mlp_bias": (False,),
}
_BUFFER = re.compile(r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq")


@dataclass(frozen=True)
class Defaults:
    """What transformers' class takes where config.json leaves a key out."""

    rms_eps: float = 1e-6
    rope_theta: float = 1e4
    partial_rotary: float = 1.0
    bos_id: int | None = None
    eos_id: int | None = None
    tied_embeddings: bool = False
    kv_heads: int | None = None  # where the key is absent; null always means: as many as heads
    head_dim: int | None = None  # None: dim / n_heads
    rope: Mapping[str, Any] = field(default_factory=dict)  # its scaling
    mscale: bool = False  # a scaled RoPE is a longrope, whose factor is short_mscale
    latent: bool = False  # heads have a part that turns, of qk_rope_head_dim, and one that does not


@dataclass(frozen=True)
class Family:
    """One model_type: its class, its keys, its names.

    `read` takes the keys that belong to the family alone and returns fields of ModelConfig; it may override those that
    all families have. `fixed`: keys with the only values that mean what the runtime computes. `arrange` makes of the
    stored tensors those that `names` speaks of.
    """

    model_type: str
    architecture: str
    read: Callable[[ConfigKeys, Fields], Fields]
    names: Names = field(default_factory=Names)
    defaults: Defaults = field(default_factory=Defaults)
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    also_architectures: tuple[str, ...] = ()  # other names of the same class
    quant_methods: tuple[str, ...] = ()  # of quantization_config, whose tensors `arrange` knows
    arrange: Callable[[Mapping[str, StoredTensor]], Mapping[str, StoredTensor]] = lambda found: found
    ignored: Callable[[str, ModelConfig], bool] = lambda name, config: False

    def read_config(self, keys: ConfigKeys) -> ModelConfig:
        """config.json -> ModelConfig. Every key is honoured, known to be without effect, or refused by name."""
        read_quantization({QUANTIZATION_KEY: keys.take(QUANTIZATION_KEY)}, keys.where, self.quant_methods)
        architectures = keys.take("architectures")
        known = [[name] for name in (self.architecture, *self.also_architectures)]
        if architectures is not None and architectures not in known:
            raise keys.refused("architectures", architectures, f'["{self.architecture}"]')
        keys.only("model_type", self.model_type)
        for key, supported in {**_FIXED, **self.fixed}.items():
            keys.only(key, *supported)
        fields = _common_fields(keys, self.defaults)
        fields |= self.read(keys, fields)
        keys.finish(BENIGN_KEYS)
        return ModelConfig(family=self.model_type, **fields)

    def is_ignored(self, published: str, config: ModelConfig) -> bool:
        """Whether a tensor is not needed: it repeats what config.json says, or belongs to a part that is not run."""
        return _BUFFER.fullmatch(published) is not None or self.ignored(published, config)


def _common_fields(keys: ConfigKeys, defaults: Defaults) -> Fields:
    dim, n_heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    if defaults.latent:
        keys.take("head_dim")  # of transformers: the part of a head that turns
        head_dim = turning = keys.size("qk_rope_head_dim", default=64)
        head_dim += keys.size("qk_nope_head_dim", default=128)
        keys.only("qk_head_dim", head_dim)
    else:
        head_dim = turning = _head_dim(keys, dim, n_heads, defaults.head_dim)
    rope = read_rope(
        keys,
        turning,
        theta=defaults.rope_theta,
        partial=defaults.partial_rotary,
        scaling=defaults.rope,
        mscale=defaults.mscale,
    )
    return {
        "n_layers": keys.size("num_hidden_layers"),
        "dim": dim,
        "n_heads": n_heads,
        "n_kv_heads": _kv_heads(keys, n_heads, defaults.kv_heads),
        "head_dim": head_dim,
        "vocab_size": keys.size("vocab_size"),
        "rms_eps": keys.positive("rms_norm_eps", defaults.rms_eps),
        "sliding_window": 0,
        "norm_topk": True,
        "tied_embeddings": keys.flag("tie_word_embeddings", defaults.tied_embeddings),
        "bos_id": _bos_id(keys, defaults.bos_id),
        "eos_ids": keys.ids("eos_token_id", defaults.eos_id),
        **_rope_fields(rope, turning if turning < head_dim else rope.rotary_dim),
    }


def _rope_fields(rope: Rope, rotary_dim: int) -> Fields:
    return {
        "rope_theta": rope.theta,
        "rotary_dim": rotary_dim,
        "rope_frequencies": rope.frequencies,
        "rope_factor": rope.factor,
        "max_context": rope.max_context,
    }


def _kv_heads(keys: ConfigKeys, n_heads: int, default: int | None) -> int:
    absent = default if default and not keys.has("num_key_value_heads") else n_heads
    n_kv_heads = keys.size("num_key_value_heads", default=absent)
    if n_heads % n_kv_heads:
        raise CheckpointError(
            f'{keys.where}: "num_attention_heads" = {n_heads} is no multiple of "num_key_value_heads" = {n_kv_heads}',
            hint="every key-value head serves the same number of heads; correct the configuration",
        )
    return n_kv_heads


def _head_dim(keys: ConfigKeys, dim: int, n_heads: int, default: int | None) -> int:
    """`head_dim`, or the class's default, or dim / n_heads; even, because RoPE turns pairs."""
    head_dim = keys.size("head_dim", default=default or 0)
    if head_dim == 0:
        if dim % n_heads:
            raise CheckpointError(
                f'{keys.where}: "hidden_size" = {dim} is no multiple of "num_attention_heads" = {n_heads}',
                hint='give "head_dim"',
            )
        head_dim = dim // n_heads
    if head_dim % 2:
        raise CheckpointError(f"{keys.where}: head_dim = {head_dim} is odd", hint="RoPE needs pairs; use an even size")
    return head_dim


def _bos_id(keys: ConfigKeys, default: int | None) -> int | None:
    ids = keys.ids("bos_token_id", default)
    if len(ids) > 1:
        raise keys.refused("bos_token_id", list(ids), "one token id or null")
    return ids[0] if ids else None


def expert_fields(keys: ConfigKeys, *, count: str, width: str, count_too: str | None = None) -> Fields:
    """Number and width of the experts under the family's names, and the choice of num_experts_per_tok.

    `count_too`: another spelling of `count`.
    """
    if count_too and keys.has(count_too) and not keys.has(count):
        count = count_too
    n_experts, top_k = keys.size(count), keys.size("num_experts_per_tok")
    if top_k > n_experts:
        raise CheckpointError(
            f'{keys.where}: "num_experts_per_tok" = {top_k} is larger than "{count}" = {n_experts}',
            hint="a token can choose each expert once at most; correct the configuration",
        )
    return {"n_experts": n_experts, "top_k": top_k, "hidden_dim": keys.size(width)}


def dense_fields(layers: tuple[int, ...], width: int, n_layers: int) -> Fields:
    """Layers without experts. A model with such layers alone has no experts at all."""
    if not layers:
        return {}
    fields: Fields = {"dense_layers": layers, "dense_hidden_dim": width}
    return fields | ({"n_experts": 0, "top_k": 0, "hidden_dim": 0} if len(layers) == n_layers else {})


def layer_list(keys: ConfigKeys, key: str, n_layers: int) -> tuple[int, ...]:
    """A list of layers; null or absent: none. Layers that the model does not have are of no effect."""
    value = keys.take(key)
    ok = value is None or (isinstance(value, list) and all(type(item) is int and item >= 0 for item in value))
    if not ok:
        raise keys.refused(key, value, "a list of layers")
    return tuple(sorted({item for item in value or [] if item < n_layers}))


def window_fields(
    keys: ConfigKeys, n_layers: int, slides: Callable[[int], bool], *, window: int = 4096, always: bool = False
) -> Fields:
    """A sliding window in the layers of `layer_types` or else where `slides`; not `always`: if `use_sliding_window`."""
    use = always or keys.flag("use_sliding_window", False)
    window = keys.size("sliding_window", default=window, low=0)
    types = keys.take("layer_types")
    names = ("full_attention", "sliding_attention")
    if types is not None and not (isinstance(types, list) and len(types) == n_layers and set(types) <= set(names)):
        raise keys.refused("layer_types", types, f'{n_layers} times "{names[0]}" or "{names[1]}"')
    sliding = [types[layer] == names[1] if types else slides(layer) for layer in range(n_layers)]
    if not use or not window or not any(sliding):
        return {}
    full = tuple(layer for layer in range(n_layers) if not sliding[layer])
    return {"sliding_window": window, "full_layers": full}
