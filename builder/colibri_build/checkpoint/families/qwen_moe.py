"""Qwen2-MoE and Qwen3-MoE: dense layers among those with experts; the older has a gated shared expert."""

from __future__ import annotations

from colibri_build.artifacts import QkNorm
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import (
    Defaults,
    Family,
    Fields,
    dense_fields,
    expert_fields,
    layer_list,
    window_fields,
)
from colibri_build.checkpoint.families.names import Names


def _experts(keys: ConfigKeys, n_layers: int) -> Fields:
    """A layer has experts if (layer + 1) is a multiple of decoder_sparse_step and mlp_only_layers does not name it."""
    step = keys.size("decoder_sparse_step", default=1)
    only_dense = layer_list(keys, "mlp_only_layers", n_layers)
    dense = tuple(layer for layer in range(n_layers) if layer in only_dense or (layer + 1) % step)
    width = keys.size("intermediate_size", default=1)
    return {
        **expert_fields(keys, count="num_experts", count_too="num_local_experts", width="moe_intermediate_size"),
        "norm_topk": keys.flag("norm_topk_prob", False),
        **dense_fields(dense, width, n_layers),
    }


def _read_qwen2(keys: ConfigKeys, common: Fields) -> Fields:
    n_layers = common["n_layers"]
    experts = _experts(keys, n_layers)
    most = keys.size("max_window_layers", default=28, low=0)
    shared = keys.size("shared_expert_intermediate_size", default=5632)
    has_experts = experts["n_experts"] > 0
    return {
        **experts,
        **window_fields(keys, n_layers, lambda layer: layer % 2 == 0 and layer < most),
        "qkv_bias": keys.flag("qkv_bias", True),
        "shared_hidden_dim": shared if has_experts else 0,
        "shared_gate": has_experts,
    }


def _read_qwen3(keys: ConfigKeys, common: Fields) -> Fields:
    n_layers = common["n_layers"]
    keys.take("max_window_layers")  # saved, but of no effect in this class: its window holds for all layers
    bias = keys.flag("attention_bias", False)
    return {
        **_experts(keys, n_layers),
        **window_fields(keys, n_layers, lambda layer: True),
        "qkv_bias": bias,
        "o_bias": bias,
        "qk_norm": QkNorm.HEAD,
    }


QWEN2_MOE = Family(
    model_type="qwen2_moe",
    architecture="Qwen2MoeForCausalLM",
    read=_read_qwen2,
    names=Names(shared="mlp.shared_expert", layer={"shared_gate": "mlp.shared_expert_gate.weight"}),
    defaults=Defaults(kv_heads=16),
)
QWEN3_MOE = Family(
    model_type="qwen3_moe",
    architecture="Qwen3MoeForCausalLM",
    read=_read_qwen3,
    defaults=Defaults(kv_heads=4),
)
