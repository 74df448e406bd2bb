"""GLM-4 MoE: sigmoid scores with a correction bias, groups of experts, half of each head turned."""

from __future__ import annotations

import re

from colibri_build.artifacts import GroupScore, ModelConfig, QkNorm, Scoring
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, dense_fields, expert_fields
from colibri_build.checkpoint.families.names import Names

_LAYER = re.compile(r"model\.layers\.(\d+)\.")


def grouped_router_fields(keys: ConfigKeys, routed_scale: float = 1.0) -> Fields:
    """Sigmoid scores, chosen by score + bias within the best groups. `routed_scale`: the class's default."""
    return {
        "scoring": Scoring.SIGMOID,
        "selection_bias": True,
        "n_groups": keys.size("n_group", default=1),
        "top_groups": keys.size("topk_group", default=1),
        "group_score": GroupScore.BEST_TWO,
        "norm_topk": keys.flag("norm_topk_prob", True),
        "routed_scale": keys.positive("routed_scaling_factor", routed_scale),
    }


def shared_and_dense_fields(keys: ConfigKeys, n_layers: int, expert_width: int) -> Fields:
    """The first layers are dense; the shared experts are one wide one."""
    first = min(keys.size("first_k_dense_replace", default=1, low=0), n_layers)
    shared = keys.size("n_shared_experts", default=1, low=0) * expert_width
    width = keys.size("intermediate_size", default=1)
    return {
        "shared_hidden_dim": shared if first < n_layers else 0,
        **dense_fields(tuple(range(first)), width, n_layers),
    }


def is_extra_layer(published: str, config: ModelConfig) -> bool:
    """Layers behind the last one predict several tokens at once; `generate` does not run them."""
    found = _LAYER.match(published)
    return found is not None and int(found[1]) >= config.n_layers


def _read(keys: ConfigKeys, common: Fields) -> Fields:
    experts = expert_fields(keys, count="n_routed_experts", width="moe_intermediate_size")
    keys.take("num_mtp_layers")
    keys.take("num_nextn_predict_layers")
    return {
        **experts,
        **grouped_router_fields(keys),
        **shared_and_dense_fields(keys, common["n_layers"], experts["hidden_dim"]),
        "qkv_bias": keys.flag("attention_bias", False),
        "qk_norm": QkNorm.HEAD if keys.flag("use_qk_norm", False) else QkNorm.NONE,
    }


GLM4_MOE = Family(
    model_type="glm4_moe",
    architecture="Glm4MoeForCausalLM",
    read=_read,
    names=Names(layer={"selection_bias": "mlp.gate.e_score_correction_bias"}),
    defaults=Defaults(rms_eps=1e-5, partial_rotary=0.5, kv_heads=8),
    ignored=is_extra_layer,
)
