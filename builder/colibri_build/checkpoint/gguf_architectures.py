"""The architectures of GGUF files that can be read, by `general.architecture`.

What a file leaves out is what llama.cpp computes for its architecture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from colibri_build.checkpoint.gguf_latent import read_latent
from colibri_build.checkpoint.gguf_metadata import (
    SIGMOID,
    SOFTMAX,
    SOFTMAX_OF_CHOSEN,
    Metadata,
    Values,
    common_values,
    expert_values,
    head_size,
    rope_values,
    shared_values,
)

Facts = Mapping[str, Any]  # what the tensors tell: see gguf_source


@dataclass(frozen=True)
class Architecture:
    """One architecture. `permuted`: the converter interleaves the two halves of each head of q and k."""

    name: str
    read: Callable[[Metadata, Facts], Values]
    permuted: bool = False


def _plain(data: Metadata, facts: Facts) -> Values:
    """Plain attention, RoPE over whole heads."""
    values = common_values(data, facts)
    size = head_size(data, values)
    return {**values, "head_dim": size, **rope_values(data, facts, size, values["max_position_embeddings"])}


def _read_llama(data: Metadata, facts: Facts) -> Values:
    """Llama, or with experts Mixtral."""
    values = _plain(data, facts)
    values["intermediate_size"] = data.size("feed_forward_length")
    data.only("tensor_data_layout", "Meta AI original pth")  # the interleaved rows that the converter makes, too
    if data.size("expert_count", 0, low=0) == 0:
        data.only("expert_used_count", 0)
        return {"model_type": "llama", **values, "attention_bias": facts["attention_bias"]}
    data.only("expert_weights_norm", True)
    window = {"sliding_window": data.size("attention.sliding_window")} if data.has("attention.sliding_window") else {}
    return {"model_type": "mixtral", **values, **expert_values(data, "num_local_experts", SOFTMAX), **window}


def _read_qwen2(data: Metadata, facts: Facts) -> Values:
    return {"model_type": "qwen2", **_plain(data, facts), "intermediate_size": data.size("feed_forward_length")}


def _read_qwen3(data: Metadata, facts: Facts) -> Values:
    width = data.size("feed_forward_length")
    return {
        "model_type": "qwen3",
        **_plain(data, facts),
        "intermediate_size": width,
        "attention_bias": facts["attention_bias"],
    }


def _qwen_experts(data: Metadata, norm: bool) -> Values:
    """`norm`: what the architecture does with the router's weights where the file does not say."""
    data.take("feed_forward_length")  # of dense layers, which a file of this architecture cannot have
    return {
        **expert_values(data, "num_experts", SOFTMAX),
        "moe_intermediate_size": data.size("expert_feed_forward_length"),
        "norm_topk_prob": data.flag("expert_weights_norm", norm),
    }


def _read_qwen2_moe(data: Metadata, facts: Facts) -> Values:
    return {
        "model_type": "qwen2_moe",
        **_plain(data, facts),
        **_qwen_experts(data, norm=False),
        "shared_expert_intermediate_size": data.size("expert_shared_feed_forward_length"),
        "qkv_bias": facts["attention_bias"],
    }


def _read_qwen3_moe(data: Metadata, facts: Facts) -> Values:
    experts = _qwen_experts(data, norm=True)
    return {
        "model_type": "qwen3_moe",
        **_plain(data, facts),
        **experts,
        "attention_bias": facts["attention_bias"],
    }


def _read_olmoe(data: Metadata, facts: Facts) -> Values:
    values = {
        "model_type": "olmoe",
        **_plain(data, facts),
        **expert_values(data, "num_experts", SOFTMAX),
        "intermediate_size": data.size("feed_forward_length"),
        "norm_topk_prob": data.flag("expert_weights_norm", False),
        "attention_bias": facts["attention_bias"],
    }
    return values | ({"clip_qkv": data.number("attention.clamp_kqv")} if data.has("attention.clamp_kqv") else {})


def _read_granite_moe(data: Metadata, facts: Facts) -> Values:
    """Of no effect elsewhere, rope.scaling.finetuned switches RoPE itself here."""
    data.only("rope.scaling.finetuned", True)
    data.only("expert_weights_norm", True)
    values = _plain(data, facts)
    shared = data.size("expert_shared_feed_forward_length", 0, low=0)
    return {
        "model_type": "granitemoeshared" if shared else "granitemoe",
        **values,
        **expert_values(data, "num_local_experts", SOFTMAX),
        **({"shared_intermediate_size": shared} if shared else {}),
        "intermediate_size": data.size("feed_forward_length"),
        "attention_bias": facts["attention_bias"],
        "embedding_multiplier": data.number("embedding_scale", 1.0),
        "residual_multiplier": data.number("residual_scale", 1.0),
        "attention_multiplier": data.number("attention.scale", values["head_dim"] ** -0.5),
        "logits_scaling": data.number("logit_scale"),
    }


def _read_glm4_moe(data: Metadata, facts: Facts) -> Values:
    """Layers that predict several tokens at once are counted in the file, but not run."""
    extra = data.size("nextn_predict_layers", 0, low=0)
    values = common_values(data, facts)
    size = head_size(data, values)
    turning = data.size("rope.dimension_count", size // 2)
    rope = rope_values(data, facts, turning, values["max_position_embeddings"])
    return {
        "model_type": "glm4_moe",
        **values,
        "num_hidden_layers": max(values["num_hidden_layers"] - extra, 1),
        "head_dim": size,
        **rope,
        "partial_rotary_factor": turning / size,
        **expert_values(data, "n_routed_experts", SIGMOID, scaled=True),
        **shared_values(data),
        "n_group": data.size("expert_group_count", 1),
        "topk_group": data.size("expert_group_used_count", 1),
        "norm_topk_prob": data.flag("expert_weights_norm", False),
        "attention_bias": facts["attention_bias"],
        "use_qk_norm": facts["qk_norm"],
    }


def _read_deepseek(data: Metadata, facts: Facts) -> Values:
    """DeepSeekMoE, the first generation."""
    return {
        "model_type": "deepseek",
        **_plain(data, facts),
        **expert_values(data, "n_routed_experts", SOFTMAX),
        **shared_values(data),
        "norm_topk_prob": data.flag("expert_weights_norm", False),
        "attention_bias": facts["attention_bias"],
    }


def _read_gpt_oss(data: Metadata, facts: Facts) -> Values:
    """Every other layer has the window; the frequencies of its YaRN are not rounded to whole elements."""
    values = _plain(data, facts)
    data.only("feed_forward_length", data.size("expert_feed_forward_length"))
    rope = values["rope_parameters"]
    return {
        "model_type": "gpt_oss",
        **values,
        "rope_parameters": {**rope, "truncate": False} if rope["rope_type"] == "yarn" else rope,
        **expert_values(data, "num_local_experts", SOFTMAX_OF_CHOSEN),
        "intermediate_size": data.size("expert_feed_forward_length"),
        "sliding_window": data.size("attention.sliding_window"),
        "attention_bias": facts["attention_bias"],
    }


_ALL = (
    Architecture("llama", _read_llama, permuted=True),
    Architecture("qwen2", _read_qwen2),
    Architecture("qwen3", _read_qwen3),
    Architecture("qwen2moe", _read_qwen2_moe),
    Architecture("qwen3moe", _read_qwen3_moe),
    Architecture("olmoe", _read_olmoe),
    Architecture("granitemoe", _read_granite_moe, permuted=True),
    Architecture("glm4moe", _read_glm4_moe),
    Architecture("deepseek", _read_deepseek, permuted=True),
    Architecture("deepseek2", read_latent),
    Architecture("gpt-oss", _read_gpt_oss),
)
ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType({item.name: item for item in _ALL})
