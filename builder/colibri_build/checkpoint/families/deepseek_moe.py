"""DeepSeekMoE, the first generation (model_type "deepseek"): plain attention, softmax router, shared experts.

transformers has no class of its own for it; the published configuration and code are the source.
"""

from __future__ import annotations

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, expert_fields
from colibri_build.checkpoint.families.glm4_moe import shared_and_dense_fields


def _read(keys: ConfigKeys, common: Fields) -> Fields:
    experts = expert_fields(keys, count="n_routed_experts", width="moe_intermediate_size")
    bias = keys.flag("attention_bias", False)
    for key in ("auto_map", "aux_loss_alpha", "seq_aux", "pretraining_tp"):
        keys.take(key)
    return {
        **experts,
        **shared_and_dense_fields(keys, common["n_layers"], experts["hidden_dim"]),
        "norm_topk": keys.flag("norm_topk_prob", False),
        "qkv_bias": bias,
        "o_bias": bias,
    }


DEEPSEEK_MOE = Family(
    model_type="deepseek",
    architecture="DeepseekForCausalLM",
    read=_read,
    defaults=Defaults(bos_id=100000, eos_id=100001),
    fixed={"scoring_func": ("softmax",), "moe_layer_freq": (1,)},
)
