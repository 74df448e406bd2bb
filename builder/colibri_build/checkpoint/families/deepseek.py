"""DeepSeek-V2 and V3: multi-head latent attention, groups of experts, shared experts, dense first layers."""

from __future__ import annotations

import math

from colibri_build.artifacts import GroupScore
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, expert_fields
from colibri_build.checkpoint.families.glm4_moe import grouped_router_fields, is_extra_layer, shared_and_dense_fields
from colibri_build.checkpoint.families.names import Names


def _attention(keys: ConfigKeys, common: Fields, *, q_rank: int) -> Fields:
    """Ranks, value heads, and the scale, which grows with a stretched context. null: queries have no latent vector."""
    absent = 0 if keys.has("q_lora_rank") else q_rank
    return {
        "n_kv_heads": common["n_heads"],
        "kv_rank": keys.size("kv_lora_rank", default=512),
        "q_rank": keys.size("q_lora_rank", default=absent, low=0),
        "value_dim": keys.size("v_head_dim", default=128),
        "attention_scale": _scale(keys, common["head_dim"]),
    }


def _scale(keys: ConfigKeys, head_dim: int) -> float:
    """1/sqrt(head_dim), times the square of YaRN's factor for mscale_all_dim. 0: without the latter."""
    rope = {**(keys.take("rope_scaling") or {}), **(keys.take("rope_parameters") or {})}
    weight, factor = rope.get("mscale_all_dim") or 0, rope.get("factor") or 1
    if rope.get("rope_type", rope.get("type", "default")) == "default" or not weight or factor <= 1:
        return 0.0
    grown = 0.1 * weight * math.log(factor) + 1.0
    return float(grown * grown / math.sqrt(head_dim))


def _experts(keys: ConfigKeys, common: Fields) -> Fields:
    experts = expert_fields(keys, count="n_routed_experts", count_too="num_experts", width="moe_intermediate_size")
    for key in ("auto_map", "aux_loss_alpha", "seq_aux", "pretraining_tp", "ep_size"):
        keys.take(key)
    return {**experts, **shared_and_dense_fields(keys, common["n_layers"], experts["hidden_dim"])}


def _read_v2(keys: ConfigKeys, common: Fields) -> Fields:
    """Greedy choice, or the best experts of the best groups; transformers ignores norm_topk_prob."""
    keys.take("norm_topk_prob")
    keys.only("topk_method", "greedy", "group_limited_greedy")
    grouped = keys.take("topk_method", "greedy") == "group_limited_greedy"
    groups, best = keys.size("n_group", default=1), keys.size("topk_group", default=1)
    return {
        **_experts(keys, common),
        **_attention(keys, common, q_rank=1536),
        "rope_interleaved": True,
        "norm_topk": False,
        "n_groups": groups if grouped else 1,
        "top_groups": best if grouped else 1,
        "routed_scale": keys.positive("routed_scaling_factor", 1.0),
    }


def _read_v3(keys: ConfigKeys, common: Fields) -> Fields:
    for key in ("num_mtp_layers", "num_nextn_predict_layers"):
        keys.take(key)
    router = grouped_router_fields(keys, routed_scale=2.5)
    if router["n_groups"] == router["top_groups"]:
        router["group_score"] = GroupScore.MAX  # of no effect, and then a group may have one expert
    return {
        **_experts(keys, common),
        **_attention(keys, common, q_rank=1536),
        **router,
        "rope_interleaved": keys.flag("rope_interleave", True),
    }


DEEPSEEK_V2 = Family(
    model_type="deepseek_v2",
    architecture="DeepseekV2ForCausalLM",
    read=_read_v2,
    defaults=Defaults(bos_id=1, eos_id=2, latent=True),
    fixed={"attention_bias": (False,), "scoring_func": ("softmax",), "moe_layer_freq": (1,)},
)
DEEPSEEK_V3 = Family(
    model_type="deepseek_v3",
    architecture="DeepseekV3ForCausalLM",
    read=_read_v3,
    names=Names(layer={"selection_bias": "mlp.gate.e_score_correction_bias"}),
    defaults=Defaults(bos_id=0, eos_id=1, latent=True),
    fixed={
        "attention_bias": (False,),
        "scoring_func": ("sigmoid",),
        "topk_method": ("noaux_tc",),
        "moe_layer_freq": (1,),
    },
    ignored=is_extra_layer,
)
