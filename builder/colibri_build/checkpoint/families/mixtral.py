"""Mixtral (MixtralForCausalLM): config.json and published tensor names."""

from __future__ import annotations

import re
from typing import Any

from colibri_build.artifacts import ModelConfig
from colibri_build.checkpoint.config_keys import BENIGN_KEYS, ConfigKeys
from colibri_build.errors import CheckpointError

MODEL_TYPE = "mixtral"
ARCHITECTURE = "MixtralForCausalLM"

# Keys that a Mixtral does not need, with the only values that mean what the class computes anyway.
_FIXED: dict[str, tuple[Any, ...]] = {
    "model_type": (MODEL_TYPE,),
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "norm_topk_prob": (True,),
    "partial_rotary_factor": (1.0,),
    "is_decoder": (False, True),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "tie_encoder_decoder": (False,),
    "pruned_heads": ({}, None),
}
# Defaults of transformers' class, for keys that older versions left out of the file.
_ROPE_THETA, _RMS_EPS, _BOS_ID, _EOS_ID = 1e6, 1e-5, 1, 2
_LEAST_THETA = 1.0  # below, angles would be larger than positions: sine and cosine are made for |angle| < 1e6

_PARTS = {"gate": "w1", "up": "w3", "down": "w2"}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "router": "block_sparse_moe.gate",
}
_TOP_NAMES = {"embedding": "model.embed_tokens.weight", "final_norm": "model.norm.weight", "lm_head": "lm_head.weight"}
_BUFFER = re.compile(r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq")
_FUSED = re.compile(r"\.mlp\.experts\.(gate_up_proj|down_proj)$")


def read_config(keys: ConfigKeys) -> ModelConfig:
    """config.json -> ModelConfig. Every key is honoured, known to be without effect, or refused by name."""
    _refuse_unsupported(keys)
    dim, n_heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    config = ModelConfig(
        family=MODEL_TYPE,
        n_layers=keys.size("num_hidden_layers"),
        dim=dim,
        hidden_dim=keys.size("intermediate_size"),
        n_heads=n_heads,
        n_kv_heads=_kv_heads(keys, n_heads),
        head_dim=_head_dim(keys, dim, n_heads),
        vocab_size=keys.size("vocab_size"),
        n_experts=keys.size("num_local_experts"),
        top_k=keys.size("num_experts_per_tok"),
        norm_topk=True,  # the class always normalises over the chosen experts
        rms_eps=keys.positive("rms_norm_eps", _RMS_EPS),
        rope_theta=_rope_theta(keys),
        sliding_window=keys.size("sliding_window", default=0, low=0),
        max_context=keys.size("max_position_embeddings"),
        tied_embeddings=keys.flag("tie_word_embeddings", False),
        bos_id=_bos_id(keys),
        eos_ids=keys.ids("eos_token_id", _EOS_ID),
    )
    keys.finish(BENIGN_KEYS)
    if config.top_k > config.n_experts:
        raise CheckpointError(
            f'{keys.where}: "num_experts_per_tok" = {config.top_k} is larger than '
            f'"num_local_experts" = {config.n_experts}',
            hint="a token can choose each expert once at most; correct the configuration",
        )
    return config


def published_name(name: str) -> str:
    """Our name of a tensor -> its name in the checkpoint."""
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    _, layer, *rest = name.split(".")
    if rest[0] == "experts":
        _, expert, part = rest
        return f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{_PARTS[part]}.weight"
    return f"model.layers.{layer}.{_LAYER_NAMES[rest[0]]}.weight"


def is_buffer(published: str) -> bool:
    """Whether a tensor of the checkpoint holds nothing but what config.json says too (RoPE frequencies)."""
    return _BUFFER.fullmatch(published) is not None


def is_fused(published: str) -> bool:
    """Whether a tensor belongs to the layout that stores all experts of a layer in one tensor."""
    return _FUSED.search(published) is not None


def _refuse_unsupported(keys: ConfigKeys) -> None:
    quantization = keys.take("quantization_config")
    if quantization is not None:
        method = quantization.get("quant_method") if isinstance(quantization, dict) else quantization
        raise CheckpointError(
            f'{keys.where}: "quantization_config" (quant_method "{method}") is not supported',
            hint="use the checkpoint that it was quantized from (F32, F16 or BF16)",
        )
    architectures = keys.take("architectures")
    if architectures is not None and architectures != [ARCHITECTURE]:
        raise keys.refused("architectures", architectures, f'["{ARCHITECTURE}"]')
    for key, supported in _FIXED.items():
        keys.only(key, *supported)


def _kv_heads(keys: ConfigKeys, n_heads: int) -> int:
    n_kv_heads = keys.size("num_key_value_heads", default=n_heads)
    if n_heads % n_kv_heads:
        raise CheckpointError(
            f'{keys.where}: "num_attention_heads" = {n_heads} is no multiple of "num_key_value_heads" = {n_kv_heads}',
            hint="every key-value head serves the same number of heads; correct the configuration",
        )
    return n_kv_heads


def _head_dim(keys: ConfigKeys, dim: int, n_heads: int) -> int:
    """`head_dim`, or dim / n_heads; even, because RoPE turns pairs."""
    head_dim = keys.size("head_dim", default=0)
    if head_dim == 0:
        if dim % n_heads:
            raise CheckpointError(
                f'{keys.where}: "hidden_size" = {dim} is no multiple of "num_attention_heads" = {n_heads}',
                hint='give "head_dim"',
            )
        head_dim = dim // n_heads
    if head_dim % 2:
        raise CheckpointError(f"{keys.where}: head_dim = {head_dim} is odd", hint="RoPE needs pairs; use an even size")
    return head_dim


def _rope_theta(keys: ConfigKeys) -> float:
    """From `rope_theta` (and `rope_scaling`: transformers 4) or from `rope_parameters` (transformers 5)."""
    theta = keys.positive("rope_theta", 0.0, low=_LEAST_THETA) if keys.take("rope_theta") is not None else None
    for key in ("rope_scaling", "rope_parameters"):
        value = keys.take(key)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise keys.refused(key, value, 'null or {"rope_type": "default"}')
        rope = ConfigKeys(value, f"{keys.where}: {key}")
        rope.only("rope_type", "default")
        rope.only("type", "default")
        rope.only("partial_rotary_factor", 1.0)
        inner = rope.positive("rope_theta", theta or _ROPE_THETA, low=_LEAST_THETA)
        rope.finish()
        if theta is not None and inner != theta:
            raise CheckpointError(
                f'{keys.where}: "rope_theta" = {theta} and "{key}.rope_theta" = {inner} differ',
                hint="keep the value that the model was trained with",
            )
        theta = inner if value.get("rope_theta") is not None else theta
    return theta if theta is not None else _ROPE_THETA


def _bos_id(keys: ConfigKeys) -> int | None:
    ids = keys.ids("bos_token_id", _BOS_ID)
    if len(ids) > 1:
        raise keys.refused("bos_token_id", list(ids), "one token id or null")
    return ids[0] if ids else None
