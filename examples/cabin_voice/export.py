"""Write the trained weights as the folder that transformers writes for a Mixtral, and read it back."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import GenerationConfig, MixtralConfig

from .commands import END
from .model import Mixtral, Shape
from .tokenizer import PAD


def _config(shape: Shape, end: int, pad: int) -> MixtralConfig:
    config = MixtralConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.dim,
        intermediate_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.context,
        rms_norm_eps=shape.eps,
        rope_theta=shape.rope_theta,
        sliding_window=None,
        num_local_experts=shape.experts,
        num_experts_per_tok=shape.top_k,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=pad,
        dtype="bfloat16",
    )
    config.architectures = ["MixtralForCausalLM"]
    return config


def save_model(model: Mixtral, tokenizer: Tokenizer, folder: Path) -> None:
    """Round the weights to bf16 and write weights, configs and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.to(torch.bfloat16).contiguous() for name, weight in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    end, pad = tokenizer.token_to_id(END), tokenizer.token_to_id(PAD)
    _config(model.shape, end, pad).save_pretrained(folder)
    GenerationConfig(eos_token_id=end, pad_token_id=pad, do_sample=False, max_new_tokens=64).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": model.shape.context,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=2) + "\n", encoding="utf-8")


def load_model(folder: Path) -> Mixtral:
    """Load a saved folder; the arithmetic is fp32 on the rounded weights."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = Mixtral(
        Shape(
            vocab=config["vocab_size"],
            dim=config["hidden_size"],
            hidden=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            experts=config["num_local_experts"],
            top_k=config["num_experts_per_tok"],
            context=config["max_position_embeddings"],
        )
    )
    weights = {name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()}
    model.load_state_dict(weights)
    return model.eval()
