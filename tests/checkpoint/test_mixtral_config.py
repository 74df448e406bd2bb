"""Every key of a Mixtral config.json is honoured, known to be without effect, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from colibri_build.artifacts import ModelConfig
from colibri_build.checkpoint.folder import open_folder
from colibri_build.checkpoint.reader import read_model_config
from colibri_build.errors import CheckpointError
from support.tiny_checkpoint import tiny_config, write_json

# config.json of the published mistralai/Mixtral-8x7B-v0.1, written by transformers 4.
PUBLISHED = {
    "architectures": ["MixtralForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "model_type": "mixtral",
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "output_router_logits": False,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.02,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.36.0.dev0",
    "use_cache": True,
    "vocab_size": 32000,
}
FAMILIES = (
    "supported: deepseek, deepseek_v2, deepseek_v3, glm4_moe, gpt_oss, granitemoe, granitemoeshared, llama, mixtral, "
    "olmoe, phimoe, qwen2, qwen2_moe, qwen3, qwen3_moe"
)
# What older versions of transformers put into every config.json.
VERBOSE_DEFAULTS = {
    "_name_or_path": "somewhere",
    "add_cross_attention": False,
    "bad_words_ids": None,
    "chunk_size_feed_forward": 0,
    "cross_attention_hidden_size": None,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    "is_decoder": False,
    "is_encoder_decoder": False,
    "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "length_penalty": 1.0,
    "max_length": 20,
    "pruned_heads": {},
    "repetition_penalty": 1.0,
    "return_dict": True,
    "task_specific_params": None,
    "temperature": 1.0,
    "tie_encoder_decoder": False,
    "tokenizer_class": None,
    "top_k": 50,
    "top_p": 1.0,
    "torchscript": False,
    "typical_p": 1.0,
    "use_bfloat16": False,
}


def _read(folder: Path, config: dict[str, Any]) -> ModelConfig:
    write_json(folder / "config.json", config)
    return read_model_config(open_folder(folder))[1]


def _refused(folder: Path, config: dict[str, Any], message: str, hint: str | None = None) -> None:
    with pytest.raises(CheckpointError) as caught:
        _read(folder, config)
    assert caught.value.what == f"{folder / 'config.json'}: {message}"
    assert caught.value.hint
    if hint is not None:
        assert caught.value.hint == hint


def test_the_published_model_is_read(tmp_path):
    assert _read(tmp_path, PUBLISHED) == ModelConfig(
        family="mixtral",
        n_layers=32,
        dim=4096,
        hidden_dim=14336,
        n_heads=32,
        n_kv_heads=8,
        head_dim=128,
        vocab_size=32000,
        n_experts=8,
        top_k=2,
        norm_topk=True,
        rms_eps=1e-5,
        rope_theta=1e6,
        sliding_window=0,
        max_context=32768,
        tied_embeddings=False,
        bos_id=1,
        eos_ids=(2,),
    )


def test_the_defaults_that_old_versions_wrote_out_change_nothing(tmp_path):
    assert _read(tmp_path, {**PUBLISHED, **VERBOSE_DEFAULTS}) == _read(tmp_path, PUBLISHED)


HONOURED = {
    "rope theta, transformers 4": ({"rope_parameters": ..., "rope_theta": 5e5}, {"rope_theta": 5e5}),
    "rope theta, transformers 5": ({"rope_parameters": {"rope_theta": 7.0}}, {"rope_theta": 7.0}),
    "rope theta, both alike": ({"rope_theta": 10000}, {"rope_theta": 10000.0}),
    "rope theta beside the type": (
        {"rope_parameters": {"rope_type": "default"}, "rope_theta": 5e5},
        {"rope_theta": 5e5},
    ),
    "rope theta, nowhere": ({"rope_parameters": ...}, {"rope_theta": 1e6}),
    "rope scaling null": ({"rope_scaling": None}, {"rope_theta": 1e4}),
    "rope scaling default": (
        {"rope_parameters": ..., "rope_theta": 3.0, "rope_scaling": {"type": "default"}},
        {"rope_theta": 3.0},
    ),
    "sliding window": ({"sliding_window": 8}, {"sliding_window": 8}),
    "sliding window 0": ({"sliding_window": 0}, {"sliding_window": 0}),
    "sliding window absent": ({"sliding_window": ...}, {"sliding_window": 0}),
    "tied": ({"tie_word_embeddings": True}, {"tied_embeddings": True}),
    "tied absent": ({"tie_word_embeddings": ...}, {"tied_embeddings": False}),
    "head_dim": ({"head_dim": 32}, {"head_dim": 32}),
    "head_dim absent": ({"head_dim": ...}, {"head_dim": 16}),
    "head_dim without a multiple": ({"num_attention_heads": 6, "head_dim": 8}, {"n_heads": 6, "head_dim": 8}),
    "key-value heads null": ({"num_key_value_heads": None}, {"n_kv_heads": 4}),
    "eos list": ({"eos_token_id": [5, 0, 5]}, {"eos_ids": (5, 0)}),
    "eos absent": ({"eos_token_id": ...}, {"eos_ids": (2,)}),
    "bos": ({"bos_token_id": 300}, {"bos_id": 300}),
    "bos absent": ({"bos_token_id": ...}, {"bos_id": 1}),
    "eps": ({"rms_norm_eps": 1e-6}, {"rms_eps": 1e-6}),
    "all experts": ({"num_experts_per_tok": 4}, {"top_k": 4, "norm_topk": True}),
    "one expert": ({"num_experts_per_tok": 1, "num_local_experts": 1}, {"top_k": 1, "n_experts": 1}),
    "no bias": ({"attention_bias": False}, {}),
    "not quantized": ({"quantization_config": None}, {}),
    "no architectures": ({"architectures": None}, {}),
}


@pytest.mark.parametrize("overrides, expected", HONOURED.values(), ids=HONOURED.keys())
def test_a_key_is_honoured(tmp_path, overrides, expected):
    config = _read(tmp_path, tiny_config(**overrides))
    assert {key: getattr(config, key) for key in expected} == expected


REFUSED: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "top_k": (
        {"num_experts_per_tok": 5},
        '"num_experts_per_tok" = 5 is larger than "num_local_experts" = 4',
        "a token can choose each expert once at most; correct the configuration",
    ),
    "rope of an unknown kind": (
        {"rope_parameters": ..., "rope_scaling": {"rope_type": "ntk-by-parts", "factor": 4.0}},
        'rope_scaling: "rope_type" = "ntk-by-parts" is not supported',
        "supported: default, linear, dynamic, yarn, llama3, longrope",
    ),
    "two rules": (
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        '"rope_scaling" and "rope_parameters" differ',
        "keep the one that the model was trained with",
    ),
    "linear without a factor": (
        {"rope_parameters": ..., "rope_scaling": {"type": "linear"}},
        'rope_scaling: "factor" is missing',
        "this rope_type needs it",
    ),
    "llama3 upside down": (
        {"rope_parameters": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0}},
        'rope_parameters: "low_freq_factor" = 4.0 is not below "high_freq_factor" = 1.0',
        "correct the configuration",
    ),
    "longrope of another head": (
        {"rope_parameters": {"rope_type": "longrope", "long_factor": [1.0], "short_factor": [1.0] * 8}},
        'rope_parameters: "long_factor" = [1.0] is not supported',
        "supported: a list of 8 numbers above 0",
    ),
    "rope factor": (
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "factor": 2.0}},
        'rope_parameters: unknown key "factor" = 2.0 may change the mathematics',
        None,
    ),
    "partial rope": (
        {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
        '"partial_rotary_factor" = 0.5 is not supported',
        "supported: 1.0 in this family",
    ),
    "two thetas": (
        {"rope_theta": 5e5},
        '"rope_theta" = 500000.0 and "rope_parameters.rope_theta" = 10000.0 differ',
        "keep the value that the model was trained with",
    ),
    "rope as text": ({"rope_scaling": "yarn"}, '"rope_scaling" = "yarn" is not supported', None),
    "activation": ({"hidden_act": "gelu"}, '"hidden_act" = "gelu" is not supported', 'supported: "silu"'),
    "attention bias": ({"attention_bias": True}, '"attention_bias" = true is not supported', "supported: false"),
    "norm_topk_prob": ({"norm_topk_prob": False}, '"norm_topk_prob" = false is not supported', "supported: true"),
    "quantized": (
        {"quantization_config": {"quant_method": "aqlm", "bits": 4}},
        '"quantization_config" (quant_method "aqlm") is not supported',
        "supported: awq, compressed-tensors, gptq; or use the checkpoint that it was quantized from (F32, F16 or BF16)",
    ),
    "head": (
        {"architectures": ["MixtralForSequenceClassification"]},
        '"architectures" = ["MixtralForSequenceClassification"] is not supported',
        'supported: ["MixtralForCausalLM"]',
    ),
    "custom code": (
        {"auto_map": {"AutoModel": "modeling.MyModel"}},
        'unknown key "auto_map" = {"AutoModel": "modeling.MyModel"} may change the mathematics',
        None,
    ),
    "unknown key": (
        {"residual_multiplier": 0.22},
        'unknown key "residual_multiplier" = 0.22 may change the mathematics',
        "remove the key if it has no effect on the logits; otherwise this checkpoint is not supported",
    ),
    "layer types": (
        {"layer_types": ["sliding_attention"] * 20},
        'unknown key "layer_types" = ["sliding_attention", "sliding_attention", "sliding_atten... '
        "may change the mathematics",
        None,
    ),
    "negative window": ({"sliding_window": -1}, '"sliding_window" = -1 is not supported', None),
    "missing size": ({"hidden_size": ...}, '"hidden_size" is missing', "an integer 1..2147483647 is needed"),
    "null size": ({"num_local_experts": None}, '"num_local_experts" is null', None),
    "zero": ({"num_hidden_layers": 0}, '"num_hidden_layers" = 0 is not supported', None),
    "text": ({"vocab_size": "301"}, '"vocab_size" = "301" is not supported', "supported: an integer 1..2147483647"),
    "true": ({"num_experts_per_tok": True}, '"num_experts_per_tok" = true is not supported', None),
    "fraction": ({"hidden_size": 64.0}, '"hidden_size" = 64.0 is not supported', None),
    "too large": ({"vocab_size": 2**31}, '"vocab_size" = 2147483648 is not supported', None),
    "key-value heads": (
        {"num_key_value_heads": 3},
        '"num_attention_heads" = 4 is no multiple of "num_key_value_heads" = 3',
        None,
    ),
    "heads": (
        {"num_attention_heads": 6},
        '"hidden_size" = 64 is no multiple of "num_attention_heads" = 6',
        'give "head_dim"',
    ),
    "odd heads": ({"head_dim": 15}, "head_dim = 15 is odd", None),
    "eps 0": ({"rms_norm_eps": 0}, '"rms_norm_eps" = 0 is not supported', "supported: a finite number above 0"),
    "eps NaN": ({"rms_norm_eps": float("nan")}, '"rms_norm_eps" = NaN is not supported', None),
    "theta": (
        {"rope_parameters": {"rope_theta": -1.0}},
        'rope_parameters: "rope_theta" = -1.0 is not supported',
        "supported: a finite number, 1.0 or more",
    ),
    "theta below 1": ({"rope_parameters": ..., "rope_theta": 0.5}, '"rope_theta" = 0.5 is not supported', None),
    "eps beyond binary64": ({"rms_norm_eps": 10**400}, f'"rms_norm_eps" = 1{"0" * 56}... is not supported', None),
    "tie as text": ({"tie_word_embeddings": "no"}, '"tie_word_embeddings" = "no" is not supported', None),
    "eos null": ({"eos_token_id": None}, '"eos_token_id" is null, so the model would never stop', None),
    "eos text": ({"eos_token_id": "</s>"}, '"eos_token_id" = "</s>" is not supported', None),
    "eos outside": ({"eos_token_id": [0, 301]}, "special token id 301 is outside the vocabulary of 301", None),
    "bos outside": ({"bos_token_id": 999}, "special token id 999 is outside the vocabulary of 301", None),
    "bos list": ({"bos_token_id": [1, 2]}, '"bos_token_id" = [1, 2] is not supported', None),
    "family": ({"model_type": "mamba"}, 'model_type "mamba" is not supported', FAMILIES),
    "no family": ({"model_type": ...}, 'model_type "None" is not supported', FAMILIES),
    "family list": ({"model_type": []}, 'model_type "[]" is not supported', FAMILIES),
}


@pytest.mark.parametrize("overrides, message, hint", REFUSED.values(), ids=REFUSED.keys())
def test_a_key_that_we_do_not_implement_is_refused_by_name(tmp_path, overrides, message, hint):
    _refused(tmp_path, tiny_config(**overrides), message, hint)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "no valid JSON (Expecting value: line 1 column 1 (char 0))"),
        (b'{"hidden_size": 64', "no valid JSON (Expecting ',' delimiter: line 1 column 19 (char 18))"),
        (b"[]", "holds a JSON list, not an object"),
        (b"\xff", "no valid JSON ('utf-8' codec can't decode byte 0xff in position 0: invalid start byte)"),
        (b'{"a": 1, "a": 2}', 'no valid JSON (key "a" occurs twice)'),
    ],
)
def test_a_config_that_is_no_json_object_is_refused(tmp_path, data, message):
    (tmp_path / "config.json").write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        read_model_config(open_folder(tmp_path))
    assert caught.value.what == f"{tmp_path / 'config.json'}: {message}"


@pytest.mark.parametrize(
    "generation, expected",
    [
        ({"eos_token_id": [7, 8]}, (7, 8)),
        ({"eos_token_id": 9, "do_sample": True, "temperature": 0.6}, (9,)),
        ({"bos_token_id": 1}, (0,)),
        ({"eos_token_id": None}, (0,)),
    ],
)
def test_generation_config_names_the_ids_that_end_a_text(tmp_path, generation, expected):
    """Chat models often name a second end token only there; without it they never stop."""
    write_json(tmp_path / "generation_config.json", generation)
    assert _read(tmp_path, tiny_config()).eos_ids == expected


def test_a_generation_config_with_an_id_outside_the_vocabulary_is_refused(tmp_path):
    write_json(tmp_path / "generation_config.json", {"eos_token_id": 301})
    _refused(tmp_path, tiny_config(), "special token id 301 is outside the vocabulary of 301")


def test_the_tiny_config_is_sound(tmp_path):
    """Or the refusals above could have another cause."""
    config = tiny_config()
    assert _read(tmp_path, config).dim == 64
    assert json.loads((tmp_path / "config.json").read_text()) == config
