"""gpt-oss: biases everywhere but in the norms, attention sinks, every other layer with a window, a clamped SwiGLU.

Experts are an axis of their tensors, which hold [inputs, outputs] with gate and up in turns; published, they are MXFP4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, expert_fields, window_fields
from colibri_build.checkpoint.families.names import Names
from colibri_build.checkpoint.mxfp4 import Mxfp4Tensor
from colibri_build.checkpoint.stored import RawTensor, StoredTensor
from colibri_build.checkpoint.transposed import TransposedTensor

_EXPERTS = re.compile(r"(model\.layers\.\d+\.mlp\.experts\.(?:gate_up|down)_proj)(_blocks|_scales)?")
# What the class takes where config.json has neither rope_parameters nor rope_scaling.
_ROPE = {
    "rope_type": "yarn",
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}


def _read(keys: ConfigKeys, common: Fields) -> Fields:
    bias = keys.flag("attention_bias", True)
    experts = expert_fields(keys, count="num_local_experts", count_too="num_experts", width="intermediate_size")
    keys.only("experts_per_token", experts["top_k"])
    keys.take("initial_context_length")  # repeats what the scaling of RoPE says
    window = keys.take("sliding_window", 128)
    if not window:
        raise keys.refused("sliding_window", window, "a number of positions; layer_types says which layers have it")
    return {
        **experts,
        **window_fields(keys, common["n_layers"], lambda layer: layer % 2 == 0, window=128, always=True),
        "qkv_bias": bias,
        "o_bias": bias,
        "attention_sinks": True,
        "router_bias": True,
        "expert_bias": True,
        "swiglu_limit": keys.positive("swiglu_limit", 7.0),
        "swiglu_alpha": keys.positive("swiglu_alpha", 1.702),
    }


def _arrange(found: Mapping[str, StoredTensor]) -> Mapping[str, StoredTensor]:
    """The experts as [n_experts, outputs, inputs] under their plain names, however they are stored."""
    arranged: dict[str, StoredTensor] = {}
    for name, tensor in found.items():
        match = _EXPERTS.fullmatch(name)
        plain, part = match.groups() if match else (name, None)
        blocks, scales = found.get(f"{plain}_blocks"), found.get(f"{plain}_scales")
        if match and part is None and len(tensor.shape) == 3:
            arranged[name] = TransposedTensor.of(tensor)
        elif part and plain not in found and isinstance(blocks, RawTensor) and isinstance(scales, RawTensor):
            arranged[plain] = Mxfp4Tensor.of(blocks, scales)
        else:
            arranged[name] = tensor
    return arranged


GPT_OSS = Family(
    model_type="gpt_oss",
    architecture="GptOssForCausalLM",
    read=_read,
    names=Names(
        layer={"router": "mlp.router.weight", "router_bias": "mlp.router.bias", "sinks": "self_attn.sinks"},
        alternating=True,
    ),
    defaults=Defaults(rms_eps=1e-5, rope_theta=150000.0, kv_heads=8, head_dim=64, rope=_ROPE),
    # The class chooses by logit and takes the softmax of the chosen ones: the same as normalising over them.
    fixed={"norm_topk_prob": (True,)},
    quant_methods=("mxfp4",),
    arrange=_arrange,
)
