"""A tiny Mixtral checkpoint folder from seeded NumPy: small, but with awkward sizes and spread logits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from support.safetensors_file import Entry, entry, write_safetensors

Tensors = dict[str, NDArray[np.float32]]

END_TOKEN = "<|end|>"
END_ID = 0
_MERGE_TEXT = (
    "Ġ t|h e|Ġt he|i n|Ġ a|e r|o n|r e|Ġ s|e n|Ġ o|a t|Ġ w|o r|n d|Ġa nd|in g|Ġ in|Ġ on|o u|l l|Ġw in|Ġwin d|o w"
    "|Ġwind ow|t u|tu r|tur n|Ã ¤|Ã ¼|â Ĥ|âĤ ¬|Ġ Ġ|Ġ ĠĠ|1 0|10 0"
)
_MERGES = _MERGE_TEXT.split("|")

# As transformers 5 writes it for MixtralForCausalLM. 293 tokens exist; vocab_size is no multiple of 8.
DEFAULT_CONFIG: dict[str, Any] = {
    "architectures": ["MixtralForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "dtype": "float32",
    "eos_token_id": END_ID,
    "head_dim": None,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
    "model_type": "mixtral",
    "num_attention_heads": 4,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "output_router_logits": False,
    "pad_token_id": None,
    "rms_norm_eps": 1e-05,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "router_aux_loss_coef": 0.001,
    "router_jitter_noise": 0.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "transformers_version": "5.24.0",
    "use_cache": True,
    "vocab_size": 301,
}
_DTYPES = {"f32": ("F32", "float32"), "f16": ("F16", "float16"), "bf16": ("BF16", "bfloat16")}


def tiny_config(**overrides: Any) -> dict[str, Any]:
    """config.json of the tiny model. `overrides` are keys of config.json; the value `...` leaves the key out."""
    merged = {**DEFAULT_CONFIG, **overrides}
    return {key: value for key, value in merged.items() if value is not ...}


def tensor_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Published name -> shape of every tensor of a Mixtral checkpoint."""
    dim, hidden, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head_dim = config.get("head_dim") or dim // config["num_attention_heads"]
    q_dim, kv_dim = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, dim)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        shapes[f"{prefix}.input_layernorm.weight"] = (dim,)
        shapes[f"{prefix}.self_attn.q_proj.weight"] = (q_dim, dim)
        shapes[f"{prefix}.self_attn.k_proj.weight"] = (kv_dim, dim)
        shapes[f"{prefix}.self_attn.v_proj.weight"] = (kv_dim, dim)
        shapes[f"{prefix}.self_attn.o_proj.weight"] = (dim, q_dim)
        shapes[f"{prefix}.post_attention_layernorm.weight"] = (dim,)
        shapes[f"{prefix}.block_sparse_moe.gate.weight"] = (config["num_local_experts"], dim)
        for expert in range(config["num_local_experts"]):
            for part, shape in {"w1": (hidden, dim), "w2": (dim, hidden), "w3": (hidden, dim)}.items():
                shapes[f"{prefix}.block_sparse_moe.experts.{expert}.{part}.weight"] = shape
    shapes["model.norm.weight"] = (dim,)
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = (vocab, dim)
    return shapes


def tiny_tensors(config: Mapping[str, Any], seed: int = 0) -> Tensors:
    """Seeded values by published name: matrices scaled by 1/sqrt(inputs), norms around 1."""
    generator = np.random.default_rng(seed)
    tensors: Tensors = {}
    for name, shape in tensor_shapes(config).items():
        values = generator.standard_normal(shape)
        if name.endswith("norm.weight"):
            values = 1 + 0.1 * values
        elif "embed_tokens" not in name or config.get("tie_word_embeddings"):
            values /= math.sqrt(shape[-1])
        tensors[name] = values.astype(np.float32)
    return tensors


def tiny_tokenizer() -> Tokenizer:
    """Byte-level BPE: `<|end|>` is id 0, then 256 byte tokens, then a few merges."""
    letters = [END_TOKEN, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    pairs = [(left, right) for left, right in (merge.split(" ") for merge in _MERGES)]
    names = letters + [left + right for left, right in pairs]
    tokenizer = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END_TOKEN, special=True, normalized=False)])
    return tokenizer


def write_tiny_checkpoint(
    folder: Path,
    *,
    seed: int = 0,
    dtype: str = "f32",
    n_shards: int = 1,
    edit: Callable[[Tensors], None] | None = None,
    **overrides: Any,
) -> Path:
    """Write config.json, weights and tokenizer.json to `folder` (made where it is not there) and return it.

    dtype: "f32", "f16" or "bf16". n_shards > 1: as many files and an index. edit: changes the tensors (by published
    name) before they are written. overrides: keys of config.json, see `tiny_config`.
    """
    stored, spelled = _DTYPES[dtype]
    config = tiny_config(**{"dtype": spelled, **overrides})
    tensors = tiny_tensors(config, seed)
    if edit is not None:
        edit(tensors)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_weights(folder, {name: entry(values, stored) for name, values in tensors.items()}, n_shards)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def write_weights(folder: Path, entries: Mapping[str, Entry], n_shards: int = 1) -> None:
    """model.safetensors, or shards and model.safetensors.index.json as transformers names them."""
    if n_shards == 1:
        write_safetensors(folder / "model.safetensors", entries)
        return
    names = list(entries)
    weight_map: dict[str, str] = {}
    for shard in range(n_shards):
        file = f"model-{shard + 1:05}-of-{n_shards:05}.safetensors"
        chosen = names[shard::n_shards]
        write_safetensors(folder / file, {name: entries[name] for name in chosen})
        weight_map.update(dict.fromkeys(chosen, file))
    total = sum(len(data) for _, _, data in entries.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})


def write_json(path: Path, value: Any) -> None:
    """Indented by 2, keys sorted, as transformers does."""
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
