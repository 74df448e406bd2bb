"""GGUF files for tests, written with the format's own library: the tiny Mixtral as llama.cpp's converter lays it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from numpy.typing import NDArray

from support.tiny_checkpoint import END_ID, tiny_config, tiny_tensors, tiny_tokenizer

F32 = NDArray[np.float32]
Metadata = dict[str, Any]
Tensors = dict[str, tuple[NDArray[Any], GGMLQuantizationType]]  # name -> values, stored type
CONTROL, NORMAL = 3, 1


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, tuple[NDArray[Any], int]],
    alignment: int | None = None,
) -> Path:
    """Values of float32 are quantized to the type beside them; bytes are written as they are, [..., bytes of a row]."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(path, str(metadata["general.architecture"]), use_temp_file=False)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, value in metadata.items():
        if key != "general.architecture":
            _add(writer, key, value)
    for name, (values, kind) in tensors.items():
        stored = values if values.dtype == np.uint8 else quantize(values, GGMLQuantizationType(kind))
        writer.add_tensor(name, np.ascontiguousarray(stored), raw_dtype=GGMLQuantizationType(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    adders: dict[type, Callable[[str, Any], None]] = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
    }
    adders[type(value)](key, value)


def interleaved(values: F32, n_heads: int) -> F32:
    """q or k, weights or biases, as the converter writes them for llama: the halves of each head in turn."""
    halves = values.reshape(n_heads, 2, len(values) // n_heads // 2, *values.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))


def byte_level_metadata(tokenizer: Any, pre: str, vocab_size: int, special: set[int]) -> Metadata:
    """A byte-level vocabulary with merges, padded to `vocab_size` as the converter does."""
    import json

    model = json.loads(tokenizer.to_str())["model"]
    by_id = {id: token for token, id in tokenizer.get_vocab().items()}
    tokens = [by_id.get(id, f"[PAD{id}]") for id in range(vocab_size)]
    types = [CONTROL if id in special else NORMAL if id in by_id else 5 for id in range(vocab_size)]
    merges = [" ".join(merge) for merge in model["merges"]]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
    }


def tiny_metadata(config: Mapping[str, Any]) -> Metadata:
    """The tiny Mixtral's configuration and vocabulary in the words of GGUF."""
    sizes = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "rope.dimension_count": config["hidden_size"] // config["num_attention_heads"],
        "rope.freq_base": float(config["rope_parameters"]["rope_theta"]),
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "expert_count": config["num_local_experts"],
        "expert_used_count": config["num_experts_per_tok"],
        "vocab_size": config["vocab_size"],
    }
    vocabulary = byte_level_metadata(tiny_tokenizer(), "gpt-2", config["vocab_size"], {END_ID})
    return {
        "general.architecture": "llama",
        "general.type": "model",
        "general.quantization_version": 2,
        **{f"llama.{key}": value for key, value in sizes.items()},
        **vocabulary,
        "tokenizer.ggml.eos_token_id": END_ID,
    }


_BLOCK = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate_inp": "block_sparse_moe.gate",
}


def tiny_gguf_tensors(config: Mapping[str, Any], seed: int = 0, kind: int = GGMLQuantizationType.F32) -> Tensors:
    """The tiny checkpoint's tensors. Matrices get `kind`, norms and routers F32."""
    published = tiny_tensors(config, seed)
    heads = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    found: dict[str, F32] = {"token_embd": published["model.embed_tokens.weight"]}
    for layer in range(config["num_hidden_layers"]):
        ours, theirs = f"blk.{layer}", f"model.layers.{layer}"
        found |= {f"{ours}.{name}": published[f"{theirs}.{other}.weight"] for name, other in _BLOCK.items()}
        for part, n_heads in heads.items():
            found[f"{ours}.attn_{part}"] = interleaved(published[f"{theirs}.self_attn.{part}_proj.weight"], n_heads)
        for name, part in {"gate": "w1", "up": "w3", "down": "w2"}.items():
            experts = [
                published[f"{theirs}.block_sparse_moe.experts.{e}.{part}.weight"]
                for e in range(config["num_local_experts"])
            ]
            found[f"{ours}.ffn_{name}_exps"] = np.stack(experts)
    found["output_norm"] = published["model.norm.weight"]
    if "lm_head.weight" in published:
        found["output"] = published["lm_head.weight"]
    plain = GGMLQuantizationType.F32
    return {
        f"{name}.weight": (values, plain if values.ndim == 1 or "gate_inp" in name else GGMLQuantizationType(kind))
        for name, values in found.items()
    }


def write_tiny_gguf(
    path: Path,
    *,
    kind: int = GGMLQuantizationType.F32,
    seed: int = 0,
    metadata: Mapping[str, Any] | None = None,
    edit: Callable[[Tensors], None] | None = None,
    alignment: int | None = None,
    **overrides: Any,
) -> Path:
    """The tiny Mixtral. `metadata` adds keys, or with the value `...` leaves them out; overrides as in `tiny_config`."""
    config = tiny_config(**overrides)
    keys = {**tiny_metadata(config), **(metadata or {})}
    tensors = tiny_gguf_tensors(config, seed, kind)
    if edit is not None:
        edit(tensors)
    return write_gguf(path, {key: value for key, value in keys.items() if value is not ...}, tensors, alignment)
