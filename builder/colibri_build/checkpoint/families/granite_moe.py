"""Granite MoE, with or without shared experts: four multipliers; gate and up are one tensor, experts are an axis of it."""

from __future__ import annotations

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, expert_fields
from colibri_build.checkpoint.families.names import Names


def _read(keys: ConfigKeys, common: Fields) -> Fields:
    bias = keys.flag("attention_bias", False)
    return {
        **expert_fields(keys, count="num_local_experts", width="intermediate_size"),
        "qkv_bias": bias,
        "o_bias": bias,
        "embedding_scale": keys.positive("embedding_multiplier", 1.0),
        "residual_scale": keys.positive("residual_multiplier", 1.0),
        "attention_scale": keys.positive("attention_multiplier", 1.0),
        "logits_divisor": keys.positive("logits_scaling", 1.0),
    }


def _read_shared(keys: ConfigKeys, common: Fields) -> Fields:
    shared = keys.size("shared_intermediate_size", default=0, low=0)
    return {**_read(keys, common), "shared_hidden_dim": shared}


_NAMES = Names(
    experts="block_sparse_moe",
    shared="shared_mlp",
    layer={"router": "block_sparse_moe.router.layer.weight"},
    fused="block_sparse_moe.experts",
    fused_router="block_sparse_moe.router.weight",
    joined=True,
)
# The class chooses by logit and takes the softmax of the chosen ones: the same as normalising over them.
_FIXED = {"norm_topk_prob": (True,)}
_DEFAULTS = Defaults(bos_id=1, eos_id=2)

GRANITE_MOE = Family("granitemoe", "GraniteMoeForCausalLM", _read, _NAMES, _DEFAULTS, _FIXED)
GRANITE_MOE_SHARED = Family("granitemoeshared", "GraniteMoeSharedForCausalLM", _read_shared, _NAMES, _DEFAULTS, _FIXED)
