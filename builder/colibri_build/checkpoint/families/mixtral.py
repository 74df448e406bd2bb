"""Mixtral: every layer has experts; a sliding window holds for all layers."""

from __future__ import annotations

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, expert_fields
from colibri_build.checkpoint.families.names import W123, Names


def _read(keys: ConfigKeys, common: Fields) -> Fields:
    window = keys.size("sliding_window", default=0, low=0)
    return {**expert_fields(keys, count="num_local_experts", width="intermediate_size"), "sliding_window": window}


MIXTRAL = Family(
    model_type="mixtral",
    architecture="MixtralForCausalLM",
    read=_read,
    names=Names(
        experts="block_sparse_moe.experts",
        expert_parts=W123,
        layer={"router": "block_sparse_moe.gate.weight"},
        fused_router="mlp.gate.weight",
    ),
    defaults=Defaults(rms_eps=1e-5, rope_theta=1e6, bos_id=1, eos_id=2, kv_heads=8),
    # The class always normalises over the chosen experts, and has no biases.
    fixed={"norm_topk_prob": (True,), "attention_bias": (False,)},
)
