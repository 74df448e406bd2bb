"""A checkpoint folder as llama.cpp's converter makes a GGUF of it. Names come from the format's own library."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import MODEL_ARCH, GGMLQuantizationType, get_tensor_name_map
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from support.gguf_file import byte_level_metadata, interleaved, write_gguf
from support.tiny_checkpoint import END_ID

F32 = NDArray[np.float32]
Tensors = dict[str, F32]
Config = Mapping[str, Any]

ARCHITECTURES = {
    "llama": MODEL_ARCH.LLAMA,
    "mixtral": MODEL_ARCH.LLAMA,
    "qwen2": MODEL_ARCH.QWEN2,
    "qwen3": MODEL_ARCH.QWEN3,
    "qwen2_moe": MODEL_ARCH.QWEN2MOE,
    "qwen3_moe": MODEL_ARCH.QWEN3MOE,
    "olmoe": MODEL_ARCH.OLMOE,
    "granitemoe": MODEL_ARCH.GRANITE_MOE,
    "granitemoeshared": MODEL_ARCH.GRANITE_MOE,
    "glm4_moe": MODEL_ARCH.GLM4_MOE,
    "deepseek": MODEL_ARCH.DEEPSEEK,
    "deepseek_v2": MODEL_ARCH.DEEPSEEK2,
    "deepseek_v3": MODEL_ARCH.DEEPSEEK2,
    "gpt_oss": MODEL_ARCH.GPT_OSS,
}
_NAMES = {
    "LLAMA": "llama",
    "GRANITE_MOE": "granitemoe",
    "GLM4_MOE": "glm4moe",
    "GPT_OSS": "gpt-oss",
}
_PERMUTED = ("llama", "granitemoe", "deepseek")
_EXPERT = re.compile(r"(model\.layers\.\d+)\.(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)\.weight")


def convert(
    folder: Path,
    path: Path,
    kind: int = GGMLQuantizationType.F32,
    *,
    split_latent: bool = True,
    merge_gate_up: bool = False,
    others: Config | None = None,
    more_tensors: Tensors | None = None,
    **metadata: Any,
) -> Path:
    """Convert a folder with config.json, model.safetensors and tokenizer.json. Matrices get `kind`.

    `metadata` adds keys (with "__" for dots) below the architecture, or with the value `...` leaves them out; `others`
    adds keys as they are, `more_tensors` tensors. `split_latent`: kv_b_proj in two; `merge_gate_up`: gate and up of
    the experts in one.
    """
    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES[config["model_type"]]
    name = _NAMES.get(architecture.name, architecture.name.lower())
    more = {f"{name}.{key.replace('__', '.')}": value for key, value in metadata.items()}
    tensors = {
        published: values.astype(np.float32) for published, values in load_file(folder / "model.safetensors").items()
    }
    keys = {"general.architecture": name, "general.type": "model"}
    keys |= {f"{name}.{key}": value for key, value in _metadata(config, name).items() if value is not None}
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    keys |= byte_level_metadata(tokenizer, "gpt-2", config["vocab_size"], {END_ID})
    keys["tokenizer.ggml.eos_token_id"] = END_ID
    parts = _taken_apart(config, tensors, split_latent)
    stored = _tensors(config, name, architecture, {**_experts(tensors), **parts})
    stored |= more_tensors or {}
    if merge_gate_up:
        for gate in [key for key in stored if "ffn_gate_exps" in key]:
            both = [stored.pop(gate), stored.pop(gate.replace("gate", "up"))]
            stored[gate.replace("gate", "gate_up")] = np.concatenate(both, axis=1)
    plain = GGMLQuantizationType.F32
    kinds = {k: plain if v.ndim == 1 or "ffn_gate_inp" in k or k.endswith(".bias") else kind for k, v in stored.items()}
    written = {key: value for key, value in {**keys, **more, **(others or {})}.items() if value is not ...}
    return write_gguf(path, written, {key: (values, kinds[key]) for key, values in stored.items()})


def _rope(config: Config) -> dict[str, Any]:
    return {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}


def _metadata(config: Config, name: str) -> dict[str, Any]:
    """Below the architecture's name; None: not written."""
    heads, rope = config["num_attention_heads"], _rope(config)
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    sigmoid = config["model_type"] in ("glm4_moe", "deepseek_v3")
    yarn = rope.get("rope_type") == "yarn"
    keys = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config.get("intermediate_size"),
        "attention.head_count": heads,
        "attention.head_count_kv": config.get("num_key_value_heads"),
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.freq_base": float(rope.get("rope_theta") or config["rope_theta"]),
        "rope.scaling.type": rope["rope_type"] if yarn or rope.get("rope_type") == "linear" else None,
        "rope.scaling.factor": rope.get("factor") if rope.get("rope_type") in ("yarn", "linear") else None,
        "rope.scaling.original_context_length": rope.get("original_max_position_embeddings") if yarn else None,
        "expert_count": config.get("num_local_experts") or config.get("num_experts") or config.get("n_routed_experts"),
        "expert_used_count": config.get("num_experts_per_tok"),
        "expert_feed_forward_length": config.get("moe_intermediate_size"),
        "expert_shared_feed_forward_length": config.get("shared_expert_intermediate_size")
        or config.get("shared_intermediate_size"),
    }
    if "n_routed_experts" in config:
        keys |= {
            "leading_dense_block_count": config["first_k_dense_replace"],
            "expert_shared_count": config["n_shared_experts"],
            "expert_weights_scale": float(config.get("routed_scaling_factor") or 1.0),
            "expert_weights_norm": config["norm_topk_prob"] if sigmoid else None,
            "expert_group_count": config.get("n_group"),
            "expert_group_used_count": config.get("topk_group"),
            "expert_gating_func": 2 if sigmoid else 1,
        }
    if config["model_type"] in ("llama", "mixtral", "granitemoe", "granitemoeshared", "deepseek"):
        keys |= {"vocab_size": config["vocab_size"], "rope.dimension_count": head_dim}
    if "head_dim" in config and "kv_lora_rank" not in config:
        keys |= {"attention.key_length": head_dim, "attention.value_length": head_dim}
    return keys | _special(config, head_dim, rope)


def _special(config: Config, head_dim: int, rope: Mapping[str, Any]) -> dict[str, Any]:
    kind = config["model_type"]
    if kind.startswith("granite"):
        return {
            "attention.scale": config["attention_multiplier"],
            "embedding_scale": config["embedding_multiplier"],
            "residual_scale": config["residual_multiplier"],
            "logit_scale": config["logits_scaling"],
        }
    if kind == "glm4_moe":
        partial = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", 0.5))
        return {"rope.dimension_count": int(head_dim * partial)}
    if kind == "gpt_oss":
        return {
            "attention.sliding_window": config["sliding_window"],
            "expert_feed_forward_length": config["intermediate_size"],
        }
    if "kv_lora_rank" in config:
        rank, turning = config["kv_lora_rank"], config["qk_rope_head_dim"]
        return {
            "attention.head_count_kv": 1,
            "attention.q_lora_rank": config.get("q_lora_rank"),
            "attention.kv_lora_rank": rank,
            "attention.key_length": rank + turning,
            "attention.value_length": rank,
            "attention.key_length_mla": config["qk_nope_head_dim"] + turning,
            "attention.value_length_mla": config["v_head_dim"],
            "rope.dimension_count": turning,
            "rope.scaling.yarn_log_multiplier": 0.1 * rope["mscale_all_dim"] if "mscale_all_dim" in rope else None,
        }
    return {}


def _tensors(config: Config, name: str, architecture: MODEL_ARCH, published: Tensors) -> Tensors:
    """Names that the converter gives: experts of a layer stacked, joined matrices taken apart, q and k interleaved."""
    renames = get_tensor_name_map(architecture, config["num_hidden_layers"])
    found: Tensors = {}
    for key, values in published.items():
        stem, suffix = key.replace("e_score_correction_bias", "e_score_correction.bias").rsplit(".", 1)
        mapped = renames.get_name(stem)
        assert mapped, key
        if name in _PERMUTED and (".attn_q" in mapped or ".attn_k" in mapped) and "norm" not in mapped:
            heads = config["num_attention_heads"] if ".attn_q" in mapped else config["num_key_value_heads"]
            values = interleaved(values, heads)
        found[f"{mapped}.{suffix}"] = values.reshape(-1) if mapped.endswith("ffn_gate_inp_shexp") else values
    if _rope(config).get("rope_type") == "llama3":
        found["rope_freqs.weight"] = llama3_factors(config)
    if config.get("tie_word_embeddings"):
        found.pop("output.weight", None)
    return found


def _experts(published: Tensors) -> Tensors:
    stacked: dict[str, dict[int, F32]] = {}
    for key, values in published.items():
        found = _EXPERT.fullmatch(key)
        if found:
            layer, expert, part = found.groups()
            w123 = part in ("w1", "w2", "w3")
            where = f"{layer.removeprefix('model.')}.feed_forward.experts" if w123 else f"{layer}.mlp.experts"
            stacked.setdefault(f"{where}.{part}.weight", {})[int(expert)] = values
    return {key: np.stack([parts[e] for e in range(len(parts))]) for key, parts in stacked.items()}


def _taken_apart(config: Config, published: Tensors, split_latent: bool) -> Tensors:
    found: Tensors = {}
    for key, values in published.items():
        if _EXPERT.fullmatch(key):
            continue
        if key.endswith("input_linear.weight"):
            layer = key.split(".block_sparse_moe")[0].split(".shared_mlp")[0]
            gate, up = np.split(values, 2, axis=-2)
            shared = "shared_mlp" in key
            where = f"{layer}.mlp.{'shared_experts' if shared else 'experts'}"
            found |= {f"{where}.gate_proj.weight": gate, f"{where}.up_proj.weight": up}
        elif ".experts.gate_up_proj" in key:  # [experts, dim, 2 * width] or biases [experts, 2 * width], in turns
            values, end = (values.swapaxes(1, 2), "weight") if values.ndim == 3 else (values, "bias")
            stem = key.split(".gate_up_proj")[0]
            found[f"{stem}.gate_proj.{end}"] = np.ascontiguousarray(values[:, ::2])
            found[f"{stem}.up_proj.{end}"] = np.ascontiguousarray(values[:, 1::2])
        elif ".experts.down_proj" in key:
            values, end = (values.swapaxes(1, 2), "weight") if values.ndim == 3 else (values, "bias")
            found[f"{key.split('.down_proj')[0]}.down_proj.{end}"] = np.ascontiguousarray(values)
        elif key.endswith("self_attn.sinks"):
            found[f"{key}.weight"] = values
        elif key.endswith("kv_b_proj.weight") and split_latent:
            heads, still = config["num_attention_heads"], config["qk_nope_head_dim"]
            kv = values.reshape(heads, still + config["v_head_dim"], -1)
            found[key.replace("kv_b", "k_b")] = np.ascontiguousarray(kv[:, :still].swapaxes(1, 2))
            found[key.replace("kv_b", "v_b")] = np.ascontiguousarray(kv[:, still:])
        else:
            found[key] = values
    return found


def llama3_factors(config: Config) -> F32:
    """rope_freqs.weight: what divides each frequency."""
    rope = _rope(config)
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    frequencies = 1.0 / rope["rope_theta"] ** (np.arange(0, head_dim, 2, dtype=np.float32) / head_dim)
    context, factor = rope["original_max_position_embeddings"], rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for length in 2 * np.pi / frequencies:
        smooth = (context / length - low) / (high - low)
        ramp = 1 / ((1 - smooth) / factor + smooth)
        factors.append(1 if length < context / high else factor if length > context / low else ramp)
    return np.array(factors, np.float32)
