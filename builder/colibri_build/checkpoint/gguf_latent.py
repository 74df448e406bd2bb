"""DeepSeek-V2 and V3 in GGUF files: multi-head latent attention, in the two layouts that llama.cpp has had for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colibri_build.checkpoint.gguf_metadata import (
    SIGMOID,
    SOFTMAX,
    Metadata,
    Values,
    common_values,
    expert_values,
    rope_values,
    shared_values,
)
from colibri_build.errors import CheckpointError


def read_latent(data: Metadata, facts: Mapping[str, Any]) -> Values:
    """DeepSeek-V3 where scores are sigmoids, else V2."""
    extra = data.size("nextn_predict_layers", 0, low=0)
    gating = data.take("expert_gating_func") or SOFTMAX
    values = common_values(data, facts)
    turning = data.size("rope.dimension_count")
    read = _read_v3 if gating == SIGMOID else _read_v2
    return {
        **values,
        "num_hidden_layers": max(values["num_hidden_layers"] - extra, 1),
        **_attention(data, values["num_attention_heads"], turning),
        **_rope(data, rope_values(data, facts, turning, values["max_position_embeddings"])),
        **shared_values(data),
        **read(data),
    }


def _attention(data: Metadata, n_heads: int, turning: int) -> Values:
    """A newer file has the sizes of its own arrangement, one wide head for keys, and those of the model behind _mla."""
    rank, query_rank = data.size("attention.kv_lora_rank"), data.size("attention.q_lora_rank", 0, low=0)
    if data.has("attention.key_length_mla"):
        data.only("attention.key_length", rank + turning)
        data.only("attention.value_length", rank)
    suffix = "_mla" if data.has("attention.key_length_mla") else ""
    key, value = data.size(f"attention.key_length{suffix}"), data.size(f"attention.value_length{suffix}")
    if key <= turning:
        raise data.refused(f"attention.key_length{suffix}", f"more than rope.dimension_count = {turning}")
    return {
        "num_key_value_heads": n_heads,
        "kv_lora_rank": rank,
        "q_lora_rank": query_rank or None,
        "qk_rope_head_dim": turning,
        "qk_nope_head_dim": key - turning,
        "v_head_dim": value,
    }


def _rope(data: Metadata, values: Values) -> Values:
    """YaRN's two mscales are one here: the file has a tenth of it."""
    rope = values["rope_parameters"]
    if rope["rope_type"] != "yarn":
        return values
    mscale = round(10 * data.number("rope.scaling.yarn_log_multiplier"), 6)
    return {"rope_parameters": {**rope, "mscale": mscale, "mscale_all_dim": mscale}}


def _read_v2(data: Metadata) -> Values:
    data.only("expert_weights_norm", False)
    groups, best = data.size("expert_group_count", 1), data.size("expert_group_used_count", 1)
    return {
        "model_type": "deepseek_v2",
        **expert_values(data, "n_routed_experts", SOFTMAX, scaled=True),
        "topk_method": "group_limited_greedy" if groups > 1 else "greedy",
        "n_group": groups,
        "topk_group": best,
    }


def _read_v3(data: Metadata) -> Values:
    """Files from before llama.cpp knew groups do not tell that the model has eight."""
    if not data.has("expert_group_count"):
        raise CheckpointError(
            f'{data.keys.where}: "deepseek2.expert_group_count" is missing, so the experts\' groups are not known',
            hint="take a file that a current llama.cpp converted",
        )
    return {
        "model_type": "deepseek_v3",
        **expert_values(data, "n_routed_experts", SIGMOID, scaled=True),
        "n_group": data.size("expert_group_count"),
        "topk_group": data.size("expert_group_used_count"),
        "norm_topk_prob": data.flag("expert_weights_norm", False),
    }
