"""Writes a checkpoint as a GGUF file for llama.cpp, matrices in F16: what its own quantizer starts from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from suite.tensors import F32, Checkpoint

ARCHITECTURE = "llama"  # Mixtral, too, is one: a llama with experts
NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "block_sparse_moe.gate": "ffn_gate_inp",
}
EXPERT_PARTS = {"w1": "ffn_gate_exps", "w2": "ffn_down_exps", "w3": "ffn_up_exps"}
Entry = tuple[str, tuple[int, ...], Any]  # name, shape, function that makes the values


def write_gguf(checkpoint: Checkpoint, path: Path) -> None:
    """One file, tensor by tensor: no more than a layer's experts are in memory."""
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    _add_shape(writer, checkpoint)
    _add_vocabulary(writer, checkpoint)
    entries = list(_entries(checkpoint))
    for name, shape, _ in entries:
        dtype = np.dtype(np.float32 if _stays_f32(name, shape) else np.float16)
        writer.add_tensor_info(name, shape, dtype, int(np.prod(shape)) * dtype.itemsize)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, shape, make in entries:
        values = make()
        writer.write_tensor_data(values if _stays_f32(name, shape) else values.astype(np.float16))
    writer.close()


def _stays_f32(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 1 or "ffn_gate_inp" in name


def _add_shape(writer: gguf.GGUFWriter, checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_expert_count(config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])


def _add_vocabulary(writer: gguf.GGUFWriter, checkpoint: Checkpoint) -> None:
    """The tokens and merges of tokenizer.json; ids that it leaves out are told to be unused."""
    root = json.loads(checkpoint.tokenizer)
    model = root["model"]
    tokens = [f"[unused {i}]" for i in range(checkpoint.config["vocab_size"])]
    types = [int(gguf.TokenType.UNUSED)] * len(tokens)
    for text, number in model["vocab"].items():
        is_byte = model.get("byte_fallback") and len(text) == 6 and text.startswith("<0x")
        tokens[number] = text
        types[number] = int(gguf.TokenType.BYTE if is_byte else gguf.TokenType.NORMAL)
    for added in root["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = int(gguf.TokenType.CONTROL)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if model.get("byte_fallback"):
        writer.add_tokenizer_model("llama")
        writer.add_token_scores([float(-i) for i in range(len(tokens))])
    else:
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges(merges)
    writer.add_bos_token_id(checkpoint.config["bos_token_id"] or 0)
    writer.add_eos_token_id(2)


def _entries(checkpoint: Checkpoint) -> Iterator[Entry]:
    made = {tensor.name: tensor for tensor in checkpoint.tensors}
    config = checkpoint.config
    for published, name in (("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")):
        tensor = made.get(f"{published}.weight")
        if tensor is not None:
            yield f"{name}.weight", tensor.shape, tensor.make
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for published, name in NAMES.items():
            tensor = made[f"{prefix}{published}.weight"]
            make = tensor.make
            if name in heads:
                make = _interleaving(make, heads[name])
            yield f"blk.{layer}.{name}.weight", tensor.shape, make
        for part, name in EXPERT_PARTS.items():
            experts = [
                made[f"{prefix}block_sparse_moe.experts.{expert}.{part}.weight"]
                for expert in range(config["num_local_experts"])
            ]
            shape = (len(experts), *experts[0].shape)
            yield f"blk.{layer}.{name}.weight", shape, lambda experts=experts: np.stack([x.make() for x in experts])


def _interleaving(make: Any, heads: int) -> Any:
    """Rows in llama.cpp's order: the two halves of a head alternate."""

    def made() -> NDArray[np.float32]:
        values: F32 = make()
        head = values.shape[0] // heads
        paired = values.reshape(heads, 2, head // 2, values.shape[1]).swapaxes(1, 2)
        return np.ascontiguousarray(paired).reshape(values.shape)

    return made
