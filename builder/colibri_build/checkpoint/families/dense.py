"""Dense decoders: Llama, Qwen2, Qwen3. A model whose layers are all dense is a Mixture-of-Experts model without experts."""

from __future__ import annotations

from colibri_build.artifacts import QkNorm
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families.family import Defaults, Family, Fields, dense_fields, window_fields


def _ffn(keys: ConfigKeys, n_layers: int) -> Fields:
    return dense_fields(tuple(range(n_layers)), keys.size("intermediate_size"), n_layers)


def _read_llama(keys: ConfigKeys, common: Fields) -> Fields:
    bias = keys.flag("attention_bias", False)
    keys.take("pretraining_tp")
    return {**_ffn(keys, common["n_layers"]), "qkv_bias": bias, "o_bias": bias}


def _window(keys: ConfigKeys, n_layers: int) -> Fields:
    first = keys.size("max_window_layers", default=28, low=0)
    return window_fields(keys, n_layers, lambda layer: layer >= first)


def _read_qwen2(keys: ConfigKeys, common: Fields) -> Fields:
    return {**_ffn(keys, common["n_layers"]), **_window(keys, common["n_layers"]), "qkv_bias": True}


def _read_qwen3(keys: ConfigKeys, common: Fields) -> Fields:
    bias = keys.flag("attention_bias", False)
    n_layers = common["n_layers"]
    fields = {**_ffn(keys, n_layers), **_window(keys, n_layers)}
    return {**fields, "qkv_bias": bias, "o_bias": bias, "qk_norm": QkNorm.HEAD}


LLAMA = Family("llama", "LlamaForCausalLM", _read_llama, defaults=Defaults(bos_id=1, eos_id=2))
QWEN2 = Family("qwen2", "Qwen2ForCausalLM", _read_qwen2, defaults=Defaults(kv_heads=32), fixed={"use_mrope": (False,)})
QWEN3 = Family("qwen3", "Qwen3ForCausalLM", _read_qwen3, defaults=Defaults(kv_heads=32, head_dim=128))
