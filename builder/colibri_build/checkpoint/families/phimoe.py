"""Phi-3.5-MoE: LayerNorm, biases up to the logits, a sparse mixer of two experts, longrope with factors of its own."""

from __future__ import annotations

from colibri_build.artifacts import Scoring
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, expert_fields
from colibri_build.checkpoint.families.names import W123, Names


def _read(keys: ConfigKeys, common: Fields) -> Fields:
    bias = keys.flag("attention_bias", False)
    keys.only("num_experts_per_tok", 2)
    for key in ("auto_map", "hidden_dropout", "input_jitter_noise"):  # of no effect but in training
        keys.take(key)
    jitter = keys.number("router_jitter_noise", 0.01) if keys.has("router_jitter_noise") else 0.01
    return {
        **expert_fields(keys, count="num_local_experts", width="intermediate_size"),
        "sliding_window": keys.size("sliding_window", default=0, low=0),
        "layer_norm": True,
        "qkv_bias": bias,
        "o_bias": bias,
        "head_bias": keys.flag("lm_head_bias", False),
        "norm_topk": False,
        "scoring": Scoring.SPARSEMIXER,
        "router_jitter": jitter,
    }


PHIMOE = Family(
    model_type="phimoe",
    architecture="PhimoeForCausalLM",
    also_architectures=("PhiMoEForCausalLM",),  # of the published code
    read=_read,
    names=Names(
        experts="block_sparse_moe.experts",
        expert_parts=W123,
        layer={"router": "block_sparse_moe.gate.weight"},
        fused_router="mlp.router.weight",
    ),
    defaults=Defaults(rms_eps=1e-5, rope_theta=1e6, bos_id=1, eos_id=2, kv_heads=8, mscale=True),
)
