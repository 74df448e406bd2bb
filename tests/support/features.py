"""Everything that only some families have, as fields of ModelConfig: alone, or with one that it meets in some family."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from colibri_build.artifacts import Format, GroupScore, Kind, QkNorm, QuantizedModel, QuantizedTensor, Scoring
from support.tiny_quantized import AWKWARD_CONFIG, random_quantized

NO_EXPERTS = {"dense_layers": (0, 1), "dense_hidden_dim": 77, "n_experts": 0, "top_k": 0, "hidden_dim": 0}
SIGMOID = {"n_experts": 12, "top_k": 3, "scoring": Scoring.SIGMOID, "selection_bias": True}
FEATURES: dict[str, dict[str, Any]] = {
    "qkv-bias": {"qkv_bias": True},
    "biases-qk-norm-heads": {"qkv_bias": True, "o_bias": True, "qk_norm": QkNorm.HEAD},
    "qk-norm-whole-clip": {"qk_norm": QkNorm.WHOLE, "clip_qkv": 0.05, "n_kv_heads": 3},
    "mixed-windows": {"sliding_window": 3, "full_layers": (1,)},
    "partial-rope-scaled": {"rotary_dim": 4, "rope_frequencies": (0.5, 0.25), "rope_factor": 1.25},
    "interleaved-rope": {"rope_interleaved": True},
    "shared-experts": {"shared_hidden_dim": 90, "norm_topk": False, "routed_scale": 2.5},
    "gated-shared-expert": {"shared_hidden_dim": 33, "shared_gate": True, "norm_topk": False},
    "dense-first-layer": {"dense_layers": (0,), "dense_hidden_dim": 77, "shared_hidden_dim": 33},
    "no-experts": NO_EXPERTS,
    "multipliers": {"embedding_scale": 12.0, "residual_scale": 0.22, "logits_divisor": 6.0, "attention_scale": 0.0625},
    "sigmoid-groups": {**SIGMOID, "n_groups": 4, "top_groups": 2, "group_score": GroupScore.BEST_TWO, "routed_scale": 2.5},
    "sigmoid-no-norm": {**SIGMOID, "norm_topk": False},
    "softmax-groups": {"n_experts": 12, "top_k": 3, "n_groups": 4, "top_groups": 2, "norm_topk": False},
    "latent": {"kv_rank": 20, "rotary_dim": 2, "value_dim": 10, "n_kv_heads": 3, "rope_interleaved": True},
    "latent-queries": {"kv_rank": 40, "q_rank": 36, "rotary_dim": 4, "value_dim": 4, "n_kv_heads": 3},
    "layer-norm": {"layer_norm": True},
    "sparse-mixer": {"n_experts": 12, "scoring": Scoring.SPARSEMIXER, "router_jitter": 0.2, "norm_topk": False},
    "phimoe": {
        "layer_norm": True, "qkv_bias": True, "o_bias": True, "head_bias": True, "rope_factor": 1.25, "norm_topk": False,
        "scoring": Scoring.SPARSEMIXER, "router_jitter": 0.01, "sliding_window": 6, "rope_frequencies": (0.9, 0.4, 0.1),
    },
    "head-bias-divided": {"head_bias": True, "logits_divisor": 6.0},
    "sinks": {"attention_sinks": True, "sliding_window": 4},
    "router-bias": {"router_bias": True, "n_experts": 12, "top_k": 3},
    "expert-biases": {"expert_bias": True},
    "clamped-swiglu": {"swiglu_limit": 0.75, "swiglu_alpha": 1.702, "shared_hidden_dim": 33},
    "gpt-oss": {
        "expert_bias": True, "router_bias": True, "attention_sinks": True, "qkv_bias": True, "o_bias": True,
        "swiglu_limit": 1.0, "swiglu_alpha": 1.702, "sliding_window": 3, "full_layers": (1,), "rope_factor": 1.25,
        "hidden_dim": 150,
    },
    "many-experts": {"n_experts": 60, "top_k": 16, "hidden_dim": 16},
}  # fmt: skip


def like_trained(tensors: dict[str, QuantizedTensor]) -> None:
    """Scales that keep every vector near unit size, so that no term of a sum is lost beside another."""
    spread = {Format.W8: 73.0, Format.W4: 6.0}  # of the random codes
    for name, tensor in tensors.items():
        if tensor.scales is not None:
            size = 1.0 if tensor.spec.kind is Kind.EMBEDDING else tensor.spec.cols**0.5
            scale = 1 / (spread[tensor.format] * size)
            tensors[name] = replace(tensor, scales=np.full_like(tensor.scales, scale))


def feature_model(name: str) -> QuantizedModel:
    """A random model with a feature; its answers end at no token that it is likely to choose."""
    config = replace(AWKWARD_CONFIG, eos_ids=(300,), **FEATURES[name])
    return random_quantized(config, seed=len(name), edit=like_trained)
