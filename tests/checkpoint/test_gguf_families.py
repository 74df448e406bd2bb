"""A converted checkpoint is the model that it was converted from: every family, every key that changes its mathematics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families import FAMILIES
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.errors import CheckpointError
from colibri_build.tensor_specs import tensor_specs
from support.gguf_converter import convert
from support.safetensors_file import entry, write_safetensors
from support.tiny_checkpoint import END_ID, tiny_tokenizer, write_json

_BASE: dict[str, Any] = {
    "vocab_size": 301, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": END_ID, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "tie_word_embeddings": False,
}  # fmt: skip
_QWEN2 = {
    "intermediate_size": 112, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 80, "num_experts": 6,
    "num_experts_per_tok": 2, "norm_topk_prob": False,
}  # fmt: skip
_QWEN3 = {
    "moe_intermediate_size": 48, "num_experts": 8, "num_experts_per_tok": 3, "head_dim": 32, "norm_topk_prob": True,
    "intermediate_size": 112,
}  # fmt: skip
_OLMOE = {"intermediate_size": 48, "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": False}
_GRANITE = {
    "intermediate_size": 48, "num_local_experts": 5, "num_experts_per_tok": 3, "embedding_multiplier": 12.0,
    "logits_scaling": 6.0, "residual_multiplier": 0.22, "attention_multiplier": 0.0625,
}  # fmt: skip
_GLM4 = {
    "num_hidden_layers": 3, "head_dim": 16, "intermediate_size": 112, "moe_intermediate_size": 48,
    "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2, "first_k_dense_replace": 1,
    "norm_topk_prob": True, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "partial_rotary_factor": 0.5,
}  # fmt: skip
_DEEPSEEK = {
    "num_hidden_layers": 3, "intermediate_size": 112, "moe_intermediate_size": 48, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "n_shared_experts": 2, "first_k_dense_replace": 1,
}  # fmt: skip
_LATENT = {
    **_DEEPSEEK, "num_key_value_heads": 4, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 12,
}  # fmt: skip
_GPT_OSS = {
    "num_hidden_layers": 3, "head_dim": 16, "intermediate_size": 96, "num_local_experts": 8, "num_experts_per_tok": 3,
    "sliding_window": 6, "attention_bias": True,
}  # fmt: skip
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
_LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "intermediate_size": 112},
    "llama-tied-bias": {
        "model_type": "llama", "intermediate_size": 112, "attention_bias": True, "tie_word_embeddings": True
    },
    "llama-linear": {
        "model_type": "llama", "intermediate_size": 112, "rope_scaling": {"rope_type": "linear", "factor": 4.0}
    },
    "mixtral": {
        "model_type": "mixtral", "intermediate_size": 96, "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 32
    },
    "qwen2": {"model_type": "qwen2", "intermediate_size": 112},
    "qwen3-yarn": {"model_type": "qwen3", "intermediate_size": 112, "head_dim": 32, "rope_scaling": _YARN},
    "qwen2-moe": {"model_type": "qwen2_moe", **_QWEN2},
    "qwen2-moe-no-bias": {"model_type": "qwen2_moe", **_QWEN2, "qkv_bias": False},
    "qwen3-moe": {"model_type": "qwen3_moe", **_QWEN3},
    "olmoe": {"model_type": "olmoe", **_OLMOE},
    "granitemoe": {"model_type": "granitemoe", **_GRANITE, "tie_word_embeddings": True},
    "granitemoeshared": {"model_type": "granitemoeshared", **_GRANITE, "shared_intermediate_size": 64},
    "glm4-moe": {"model_type": "glm4_moe", **_GLM4, "attention_bias": True, "use_qk_norm": True},
    "glm4-moe-no-norm": {"model_type": "glm4_moe", **_GLM4, "norm_topk_prob": False, "routed_scaling_factor": 1.0},
    "deepseek": {"model_type": "deepseek", **_DEEPSEEK, "norm_topk_prob": False},
    "deepseek-v2-lite": {"model_type": "deepseek_v2", **_LATENT, "q_lora_rank": None, "topk_method": "greedy"},
    "deepseek-v2-groups-yarn": {
        "model_type": "deepseek_v2", **_LATENT, "q_lora_rank": 24, "topk_method": "group_limited_greedy", "n_group": 4,
        "topk_group": 2, "routed_scaling_factor": 16.0, "rope_scaling": {**_YARN, "mscale": 0.707, "mscale_all_dim": 0.707},
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3", **_LATENT, "q_lora_rank": 24, "n_group": 4, "topk_group": 2, "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
    },
    "gpt-oss": {
        "model_type": "gpt_oss", **_GPT_OSS, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}
    },
    "gpt-oss-yarn-tied": {
        "model_type": "gpt_oss", **_GPT_OSS, "tie_word_embeddings": True, "rope_scaling": {**_YARN, "truncate": False}
    },
}  # fmt: skip


def _write_folder(folder: Path, config: dict[str, Any]) -> Path:
    """The checkpoint of a configuration, with random values under its published names."""
    config = {**_BASE, **config}
    family = FAMILIES[config["model_type"]]
    read = family.read_config(ConfigKeys(config, "config.json"))
    generator = np.random.default_rng(1)
    tensors: dict[str, Any] = {}
    for spec in tensor_specs(read):
        place = next(iter(family.names.places(spec, read)))
        if place.name not in tensors:
            shape = place.shape
            if config["model_type"] == "gpt_oss" and len(shape) == 3:  # published as [experts, inputs, outputs]
                shape = (shape[0], shape[2], shape[1])
            tensors[place.name] = generator.standard_normal(shape).astype(np.float32)
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)
    write_safetensors(folder / "model.safetensors", {name: entry(values, "F32") for name, values in tensors.items()})
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def _assert_same_model(path: Path, folder: Path) -> None:
    ours, theirs = read_checkpoint(path), read_checkpoint(folder)
    assert ours.config == theirs.config
    assert list(ours.tensors) == list(theirs.tensors)
    for name in theirs.tensors:
        np.testing.assert_array_equal(ours.tensors[name], theirs.tensors[name], err_msg=name)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_converted_checkpoint_is_the_same_model(tmp_path, name):
    folder = _write_folder(tmp_path / "folder", CONFIGURATIONS[name])
    _assert_same_model(convert(folder, tmp_path / "model.gguf"), folder)


def _changed(tmp_path: Path, name: str, **metadata: Any) -> Path:
    return convert(_write_folder(tmp_path / "folder", CONFIGURATIONS[name]), tmp_path / "model.gguf", **metadata)


def test_latent_heads_in_the_older_layout_are_the_same_model(tmp_path):
    """Before llama.cpp had a cache of latent vectors, keys and values came from one matrix, as they are published."""
    folder = _write_folder(tmp_path / "folder", CONFIGURATIONS["deepseek-v2-lite"])
    sizes = {"attention__head_count_kv": 4, "attention__key_length": 24, "attention__value_length": 12}
    absent = {"attention__key_length_mla": ..., "attention__value_length_mla": ...}
    path = convert(folder, tmp_path / "model.gguf", split_latent=False, **sizes, **absent)
    _assert_same_model(path, folder)


def test_gate_and_up_in_one_tensor_are_the_same_model(tmp_path):
    folder = _write_folder(tmp_path / "folder", CONFIGURATIONS["qwen3-moe"])
    _assert_same_model(convert(folder, tmp_path / "model.gguf", merge_gate_up=True), folder)


def test_experts_in_mxfp4_are_dequantized_by_the_library(tmp_path):
    """As gpt-oss is published: in this type for the experts alone."""
    folder = _write_folder(tmp_path / "folder", CONFIGURATIONS["gpt-oss"])
    kind = GGMLQuantizationType.MXFP4
    model, whole = read_checkpoint(convert(folder, tmp_path / "model.gguf", kind)), read_checkpoint(folder)
    for part in ("gate", "up", "down"):
        name = f"layers.1.experts.5.{part}"
        expected = dequantize(quantize(whole.tensors[name], kind), kind).reshape(whole.tensors[name].shape)
        np.testing.assert_array_equal(model.tensors[name], expected)
        np.testing.assert_array_equal(model.tensors[f"{name}_bias"], whole.tensors[f"{name}_bias"])


def test_layers_that_predict_several_tokens_are_left_out(tmp_path):
    """They are counted in the file, but `generate` does not run them."""
    folder = _write_folder(tmp_path / "folder", {**CONFIGURATIONS["glm4-moe"], "num_hidden_layers": 3})
    path = convert(folder, tmp_path / "model.gguf", nextn_predict_layers=1)
    model, whole = read_checkpoint(path), read_checkpoint(folder)
    assert model.config.n_layers == 2
    assert set(model.tensors) == {name for name in whole.tensors if not name.startswith("layers.2.")}


@pytest.mark.parametrize("name, expected", [("qwen2-moe", False), ("qwen3-moe", True), ("olmoe", False)])
def test_router_weights_are_normalised_as_llama_cpp_does_it_where_a_file_does_not_say(tmp_path, name, expected):
    assert read_checkpoint(_changed(tmp_path / "a", name)).config.norm_topk is expected
    said = read_checkpoint(_changed(tmp_path / "b", name, expert_weights_norm=not expected))
    assert said.config.norm_topk is not expected


REFUSED = {
    "unknown key": ("llama", {"attention__head_scale": 2.0}, "llama.attention.head_scale"),
    "soft cap": ("qwen3-moe", {"final_logit_softcapping": 30.0}, "qwen3moe.final_logit_softcapping"),
    "values of another size": ("llama", {"attention__value_length": 8}, "llama.attention.value_length"),
    "not causal": ("qwen2", {"attention__causal": False}, "qwen2.attention.causal"),
    "sigmoid scores": ("mixtral", {"expert_gating_func": 2}, "llama.expert_gating_func"),
    "weights of all experts": ("mixtral", {"expert_weights_norm": False}, "llama.expert_weights_norm"),
    "scaled experts": ("qwen3-moe", {"expert_weights_scale": 2.5}, "qwen3moe.expert_weights_scale"),
    "groups": ("qwen3-moe", {"expert_group_count": 4}, "qwen3moe.expert_group_count"),
    "no RoPE": ("granitemoe", {"rope__scaling__finetuned": False}, "granitemoe.rope.scaling.finetuned"),
    "part of a head": ("llama", {"rope__dimension_count": 8}, "llama.rope.dimension_count"),
    "unknown scaling": ("llama", {"rope__scaling__type": "ntk"}, "llama.rope.scaling.type"),
    "factor without a type": ("llama", {"rope__scaling__factor": 8.0}, "llama.rope.scaling.factor"),
    "YaRN of its own": ("qwen3-yarn", {"rope__scaling__attn_factor": 1.2}, "qwen3.rope.scaling.attn_factor"),
    "heads by layer": ("llama", {"attention__head_count": [4, 8]}, "llama.attention.head_count"),
    "widths by layer": ("llama", {"feed_forward_length": [112, 96]}, "llama.feed_forward_length"),
    "weights by scores": ("gpt-oss", {"expert_gating_func": 1}, "gpt-oss.expert_gating_func"),
    "no window": ("gpt-oss", {"attention__sliding_window": ...}, "gpt-oss.attention.sliding_window"),
    "a window": ("qwen2", {"attention__sliding_window": 16}, "qwen2.attention.sliding_window"),
    "no epsilon": ("llama", {"attention__layer_norm_rms_epsilon": ...}, "llama.attention.layer_norm_rms_epsilon"),
    "no context": ("llama", {"context_length": ...}, "llama.context_length"),
    "no experts used": ("mixtral", {"expert_used_count": ...}, "llama.expert_used_count"),
    "other vocabulary": ("llama", {"vocab_size": 300}, "llama.vocab_size"),
    "groups not told": ("deepseek-v3", {"expert_group_count": ...}, "deepseek2.expert_group_count"),
    "V2 that normalises": ("deepseek-v2-lite", {"expert_weights_norm": True}, "deepseek2.expert_weights_norm"),
    "no mscale": (
        "deepseek-v2-groups-yarn", {"rope__scaling__yarn_log_multiplier": ...}, "deepseek2.rope.scaling.yarn_log_multiplier"
    ),
    "keys of another size": ("deepseek-v3", {"attention__key_length": 99}, "deepseek2.attention.key_length"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_another_model_is_refused_by_its_key(tmp_path, case):
    name, metadata, key = REFUSED[case]
    path = _changed(tmp_path, name, **metadata)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(path)
    assert str(path) in caught.value.what
    assert f'"{key}"' in caught.value.what
    assert caught.value.hint
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["attn_sinks.weight", "ffn_gate_inp_shexp.weight", "exp_probs_b.bias", "attn_k_b.weight"]
)
def test_a_part_that_only_other_families_have_is_refused_by_name(tmp_path, name):
    more = {f"blk.0.{name}": np.ones((4, 8, 16), np.float32)}
    folder = _write_folder(tmp_path / "folder", CONFIGURATIONS["llama"])
    with pytest.raises(CheckpointError, match=rf"blk\.0\.{name}"):
        read_checkpoint(convert(folder, tmp_path / "model.gguf", more_tensors=more))


def test_keys_of_another_namespace_are_refused(tmp_path):
    """A fork's extension may transform every activation."""
    folder = _write_folder(tmp_path / "folder", CONFIGURATIONS["llama"])
    path = convert(folder, tmp_path / "model.gguf", others={"prism.hadamard.block": 64})
    with pytest.raises(CheckpointError, match=r'unknown key "prism\.hadamard\.block" = 64'):
        read_checkpoint(path)
    benign = {"general.author": "us", "quantize.imatrix.file": "x.dat", "general.file_type": 7}
    _assert_same_model(convert(folder, tmp_path / "benign.gguf", others=benign), folder)


@pytest.mark.parametrize("architecture", ["gemma3", "phimoe", "mamba", "clip"])
def test_another_architecture_is_refused_by_name(tmp_path, architecture):
    folder = _write_folder(tmp_path / "folder", CONFIGURATIONS["llama"])
    path = convert(folder, tmp_path / "model.gguf", others={"general.architecture": architecture})
    with pytest.raises(
        CheckpointError, match=f"\"general.architecture\" = '{architecture}' is not supported"
    ) as caught:
        read_checkpoint(path)
    assert "qwen3moe" in str(caught.value.hint)
