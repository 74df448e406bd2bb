"""OLMoE: queries and keys are normalised as whole vectors; q, k and v may be clamped."""

from __future__ import annotations

from colibri_build.artifacts import QkNorm
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, expert_fields


def _read(keys: ConfigKeys, common: Fields) -> Fields:
    bias = keys.flag("attention_bias", False)
    return {
        **expert_fields(keys, count="num_experts", width="intermediate_size"),
        "norm_topk": keys.flag("norm_topk_prob", False),
        "qkv_bias": bias,
        "o_bias": bias,
        "qk_norm": QkNorm.WHOLE,
        "clip_qkv": keys.positive("clip_qkv", 0.0),
    }


OLMOE = Family(
    model_type="olmoe",
    architecture="OlmoeForCausalLM",
    read=_read,
    defaults=Defaults(rms_eps=1e-5, eos_id=50279),
)
