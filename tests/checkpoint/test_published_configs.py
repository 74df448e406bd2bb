"""config.json of published models, as their authors wrote them: every key is understood, and means what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from colibri_build.artifacts import GroupScore, ModelConfig, QkNorm, Scoring
from colibri_build.checkpoint.folder import open_folder
from colibri_build.checkpoint.reader import read_model_config
from colibri_build.errors import CheckpointError
from support.tiny_checkpoint import write_json

QWEN1_5_MOE_A2_7B = {
    "architectures": ["Qwen2MoeForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5632,
    "max_position_embeddings": 8192, "max_window_layers": 21, "model_type": "qwen2_moe", "num_attention_heads": 16,
    "num_hidden_layers": 24, "num_key_value_heads": 16, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 32768, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "transformers_version": "4.39.0.dev0", "use_cache": True, "use_sliding_window": False, "vocab_size": 151936,
    "decoder_sparse_step": 1, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
    "num_experts_per_tok": 4, "num_experts": 60, "norm_topk_prob": False, "output_router_logits": False,
    "router_aux_loss_coef": 0.001,
}  # fmt: skip
QWEN3_30B_A3B = {
    "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 151643,
    "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
    "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": True,
    "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
    "num_key_value_heads": 4, "output_router_logits": False, "rms_norm_eps": 1e-06, "rope_scaling": None,
    "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": None, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": True, "use_sliding_window": False,
    "vocab_size": 151936,
}  # fmt: skip
OLMOE_1B_7B = {
    "architectures": ["OlmoeForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "clip_qkv": None,
    "eos_token_id": 50279, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 1024, "max_position_embeddings": 4096, "model_type": "olmoe", "norm_topk_prob": False,
    "num_attention_heads": 16, "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 16,
    "num_key_value_heads": 16, "output_router_logits": False, "pad_token_id": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": None, "rope_theta": 10000.0, "router_aux_loss_coef": 0.01, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", "use_cache": True, "vocab_size": 50304,
}  # fmt: skip
GRANITE_3_1B_A400M = {
    "architectures": ["GraniteMoeForCausalLM"], "attention_bias": False, "attention_dropout": 0.1,
    "attention_multiplier": 0.015625, "bos_token_id": 0, "embedding_multiplier": 12.0, "eos_token_id": 0,
    "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 512,
    "logits_scaling": 6.0, "max_position_embeddings": 4096, "model_type": "granitemoe", "num_attention_heads": 16,
    "num_experts_per_tok": 8, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
    "output_router_logits": False, "pad_token_id": 0, "residual_multiplier": 0.22, "rms_norm_eps": 1e-06,
    "rope_scaling": None, "rope_theta": 10000, "router_aux_loss_coef": 0.0, "tie_word_embeddings": True,
    "torch_dtype": "bfloat16", "transformers_version": "4.46.0.dev0", "use_cache": True, "vocab_size": 49155,
}  # fmt: skip
GLM_4_5_AIR = {
    "architectures": ["Glm4MoeForCausalLM"], "attention_bias": True, "attention_dropout": 0.0, "pad_token_id": 151329,
    "eos_token_id": [151329, 151336, 151338], "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
    "partial_rotary_factor": 0.5, "initializer_range": 0.02, "intermediate_size": 10944,
    "max_position_embeddings": 131072, "model_type": "glm4_moe", "moe_intermediate_size": 1408,
    "norm_topk_prob": True, "num_attention_heads": 96, "n_group": 1, "topk_group": 1, "n_routed_experts": 128,
    "n_shared_experts": 1, "routed_scaling_factor": 1.0, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
    "num_hidden_layers": 46, "num_key_value_heads": 8, "num_nextn_predict_layers": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": None, "rope_theta": 1000000, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "transformers_version": "4.54.0", "use_cache": True, "use_qk_norm": False, "vocab_size": 151552,
}  # fmt: skip
DEEPSEEK_MOE_16B = {
    "architectures": ["DeepseekForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekConfig"}, "aux_loss_alpha": 0.001,
    "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 10944, "max_position_embeddings": 4096,
    "model_type": "deepseek", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64,
    "n_shared_experts": 2, "norm_topk_prob": False, "num_attention_heads": 16, "num_experts_per_tok": 6,
    "num_hidden_layers": 28, "num_key_value_heads": 16, "pretraining_tp": 1, "rms_norm_eps": 1e-06,
    "rope_scaling": None, "rope_theta": 10000, "scoring_func": "softmax", "seq_aux": True,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.36.0", "use_cache": True,
    "vocab_size": 102400,
}  # fmt: skip
PHI_3_5_MOE: dict[str, Any] = {
    "architectures": ["PhiMoEForCausalLM"], "attention_bias": True, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_phimoe.PhiMoEConfig"},
    "bos_token_id": 1, "eos_token_id": 32000, "hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 4096,
    "initializer_range": 0.02, "input_jitter_noise": 0.01, "intermediate_size": 6400, "lm_head_bias": True,
    "max_position_embeddings": 131072, "model_type": "phimoe", "num_attention_heads": 32, "num_experts_per_tok": 2,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 16,
    "original_max_position_embeddings": 4096, "output_router_logits": False, "rms_norm_eps": 1e-05, "rope_scaling": {
        "long_factor": [1.0 + 0.5 * i for i in range(64)], "long_mscale": 1.243163121016122,
        "original_max_position_embeddings": 4096, "short_factor": [1.0] * 32 + [1.05 + 0.01 * i for i in range(32)],
        "short_mscale": 1.243163121016122, "type": "longrope",
    },
    "rope_theta": 10000.0, "router_aux_loss_coef": 0.0, "router_jitter_noise": 0.01, "sliding_window": 131072,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.43.3", "use_cache": True,
    "vocab_size": 32064,
}  # fmt: skip
GPT_OSS_20B: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"], "attention_bias": True, "attention_dropout": 0.0, "eos_token_id": 200002,
    "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096,
    "initializer_range": 0.02, "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "max_position_embeddings": 131072,
    "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24,
    "num_key_value_heads": 8, "num_local_experts": 32, "output_router_logits": False, "pad_token_id": 199999,
    "quantization_config": {
        "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
        ],
        "quant_method": "mxfp4",
    },
    "rms_norm_eps": 1e-05, "rope_scaling": {
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
        "rope_type": "yarn", "truncate": False,
    },
    "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0,
    "tie_word_embeddings": False, "transformers_version": "4.55.0.dev0", "use_cache": True, "vocab_size": 201088,
}  # fmt: skip
LLAMA_3_2_1B = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000,
    "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_scaling": {
        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0.dev0", "use_cache": True, "vocab_size": 128256,
}  # fmt: skip
QWEN2_5_0_5B = {
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
    "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
    "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
    "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 32768, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1", "use_cache": True, "use_mrope": False, "use_sliding_window": False,
    "vocab_size": 151936,
}  # fmt: skip

# name -> (config.json, fields that it must give)
PUBLISHED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Qwen1.5-MoE-A2.7B": (
        QWEN1_5_MOE_A2_7B,
        {"n_experts": 60, "top_k": 4, "hidden_dim": 1408, "norm_topk": False, "shared_hidden_dim": 5632,
         "shared_gate": True, "qkv_bias": True, "o_bias": False, "sliding_window": 0, "dense_layers": ()},
    ),
    "Qwen3-30B-A3B": (
        QWEN3_30B_A3B,
        {"n_experts": 128, "top_k": 8, "hidden_dim": 768, "norm_topk": True, "head_dim": 128, "qk_norm": QkNorm.HEAD,
         "shared_hidden_dim": 0, "qkv_bias": False},
    ),
    "OLMoE-1B-7B-0924": (
        OLMOE_1B_7B,
        {"n_experts": 64, "top_k": 8, "hidden_dim": 1024, "norm_topk": False, "qk_norm": QkNorm.WHOLE, "clip_qkv": 0.0,
         "eos_ids": (50279,), "bos_id": None},
    ),
    "granite-3.0-1b-a400m": (
        GRANITE_3_1B_A400M,
        {"n_experts": 32, "top_k": 8, "attention_scale": 0.015625, "embedding_scale": 12.0, "residual_scale": 0.22,
         "logits_divisor": 6.0, "tied_embeddings": True, "norm_topk": True},
    ),
    "GLM-4.5-Air": (
        GLM_4_5_AIR,
        {"n_experts": 128, "top_k": 8, "dense_layers": (0,), "dense_hidden_dim": 10944, "shared_hidden_dim": 1408,
         "rotary_dim": 64, "scoring": Scoring.SIGMOID, "selection_bias": True, "group_score": GroupScore.BEST_TWO,
         "qkv_bias": True, "o_bias": False, "qk_norm": QkNorm.NONE, "eos_ids": (151329, 151336, 151338)},
    ),
    "deepseek-moe-16b": (
        DEEPSEEK_MOE_16B,
        {"n_experts": 64, "top_k": 6, "dense_layers": (0,), "dense_hidden_dim": 10944, "shared_hidden_dim": 2816,
         "norm_topk": False, "scoring": Scoring.SOFTMAX, "shared_gate": False},
    ),
    "Phi-3.5-MoE-instruct": (
        PHI_3_5_MOE,
        {"n_experts": 16, "top_k": 2, "scoring": Scoring.SPARSEMIXER, "router_jitter": 0.01, "layer_norm": True,
         "head_bias": True, "qkv_bias": True, "o_bias": True, "rope_factor": 1.243163121016122, "max_context": 4096},
    ),
    "gpt-oss-20b": (
        GPT_OSS_20B,
        {"n_experts": 32, "top_k": 4, "head_dim": 64, "sliding_window": 128, "full_layers": tuple(range(1, 24, 2)),
         "attention_sinks": True, "router_bias": True, "expert_bias": True, "swiglu_limit": 7.0, "swiglu_alpha": 1.702,
         "norm_topk": True, "qkv_bias": True, "o_bias": True, "eos_ids": (200002,)},
    ),
    "Llama-3.2-1B": (
        LLAMA_3_2_1B,
        {"n_experts": 0, "top_k": 0, "dense_layers": tuple(range(16)), "dense_hidden_dim": 8192, "tied_embeddings": True},
    ),
    "Qwen2.5-0.5B": (QWEN2_5_0_5B, {"dense_hidden_dim": 4864, "qkv_bias": True, "o_bias": False, "n_kv_heads": 2}),
}  # fmt: skip


def read(folder: Path, config: dict[str, Any]) -> ModelConfig:
    write_json(folder / "config.json", config)
    return read_model_config(open_folder(folder))[1]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_is_understood(tmp_path: Path, name: str) -> None:
    config, expected = PUBLISHED[name]
    found = read(tmp_path, config)
    assert {field: getattr(found, field) for field in expected} == expected
    assert (found.dim, found.n_layers, found.vocab_size) == tuple(
        config[key] for key in ("hidden_size", "num_hidden_layers", "vocab_size")
    )


def test_llama3_frequencies_have_three_ranges(tmp_path: Path) -> None:
    """High frequencies stay, low ones are divided by the factor: the published rule, on its own numbers."""
    frequencies = read(tmp_path, LLAMA_3_2_1B).rope_frequencies
    plain = [500000.0 ** (-2 * i / 64) for i in range(32)]
    assert frequencies[0] == pytest.approx(plain[0], rel=1e-6)
    assert frequencies[-1] == pytest.approx(plain[-1] / 32, rel=1e-6)
    assert all(p / 32 * 0.999 <= f <= p * 1.001 for f, p in zip(frequencies, plain, strict=True))


def test_gpt_oss_has_yarn_where_its_configuration_is_silent(tmp_path: Path) -> None:
    """The class's own default: the published scaling, whose ramp is not rounded to whole elements."""
    silent = {key: value for key, value in GPT_OSS_20B.items() if key not in ("rope_scaling", "rope_theta")}
    found, published = read(tmp_path, silent), read(tmp_path, GPT_OSS_20B)
    assert found.rope_frequencies == published.rope_frequencies != ()
    assert found.rope_factor == published.rope_factor == pytest.approx(1.3465735902799727)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another router": ({**DEEPSEEK_MOE_16B, "scoring_func": "sigmoid"}, '"scoring_func" = "sigmoid" is not supported'),
    "sparse layers": ({**DEEPSEEK_MOE_16B, "moe_layer_freq": 2}, '"moe_layer_freq" = 2 is not supported'),
    "another class": ({**QWEN3_30B_A3B, "architectures": ["Qwen3Model"]}, '"architectures" = ["Qwen3Model"]'),
    "activation": ({**OLMOE_1B_7B, "hidden_act": "gelu"}, '"hidden_act" = "gelu" is not supported'),
    "mlp bias": ({**LLAMA_3_2_1B, "mlp_bias": True}, '"mlp_bias" = true is not supported'),
    "mrope": ({**QWEN2_5_0_5B, "use_mrope": True}, '"use_mrope" = true is not supported'),
    "layer types": (
        {**QWEN2_5_0_5B, "layer_types": ["linear_attention"] * 24},
        '"layer_types" = ["linear_attention"',
    ),
    "phimoe of three": ({**PHI_3_5_MOE, "num_experts_per_tok": 3}, '"num_experts_per_tok" = 3 is not supported'),
    "phimoe yarn": (
        {**PHI_3_5_MOE, "rope_scaling": {"type": "yarn", "factor": 4.0}},
        'rope_scaling: "rope_type" = "yarn" is not supported',
    ),
    "phimoe without mscale": (
        {**PHI_3_5_MOE, "rope_scaling": {**PHI_3_5_MOE["rope_scaling"], "short_mscale": None}},
        '"short_mscale" is missing',
    ),
    "gpt-oss of fp8": (
        {**GPT_OSS_20B, "quantization_config": {"quant_method": "fp8"}},
        '"quantization_config" (quant_method "fp8") is not supported',
    ),
    "mxfp4 elsewhere": (
        {**QWEN3_30B_A3B, "quantization_config": {"quant_method": "mxfp4"}},
        '"quantization_config" (quant_method "mxfp4") is not supported',
    ),
    "gpt-oss without window": ({**GPT_OSS_20B, "sliding_window": None}, '"sliding_window" = null is not supported'),
    "gpt-oss that sees nothing": ({**GPT_OSS_20B, "sliding_window": 0}, '"sliding_window" = 0 is not supported'),
    "gpt-oss of two counts": ({**GPT_OSS_20B, "experts_per_token": 8}, '"experts_per_token" = 8 is not supported'),
    "gpt-oss limit": ({**GPT_OSS_20B, "swiglu_limit": 0}, '"swiglu_limit" = 0 is not supported'),
    "unknown key": ({**GLM_4_5_AIR, "index_topk": 64}, 'unknown key "index_topk" = 64 may change the mathematics'),
    "clip of text": ({**OLMOE_1B_7B, "clip_qkv": "8"}, '"clip_qkv" = "8" is not supported'),
    "experts missing": (
        {key: value for key, value in QWEN3_30B_A3B.items() if key != "num_experts"},
        '"num_experts" is missing',
    ),
    "too many chosen": (
        {**GRANITE_3_1B_A400M, "num_experts_per_tok": 33},
        '"num_experts_per_tok" = 33 is larger than "num_local_experts" = 32',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_we_do_not_compute_is_refused_by_name(tmp_path: Path, name: str) -> None:
    config, message = REFUSED[name]
    with pytest.raises(CheckpointError) as caught:
        read(tmp_path, config)
    assert message in caught.value.what
    assert caught.value.hint
