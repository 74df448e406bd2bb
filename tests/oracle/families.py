"""Tiny seeded checkpoints of every family, made by transformers, and transformers' own answers on the dequantized weights."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from colibri_build.artifacts import Generation, ModelConfig, QuantizedModel
from colibri_build.checkpoint.families import FAMILIES
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.quantize.engine import quantize_model
from colibri_build.quantize.kl import compare_logits
from colibri_build.quantize.options import QuantizeOptions
from colibri_build.quantize.rtn import dequantize_tensor
from colibri_build.reference.generate import generate
from colibri_build.reference.model import ReferenceModel, forward
from colibri_build.tensor_specs import tensor_specs
from support.tiny_checkpoint import END_ID, tiny_tokenizer

PROMPT = [5, 17, 200, 45, 9, 211, 77, 104]
N_TOKENS = 24
# a16 differs from fp32 by up to 9e-4 in the logits of these models: a smaller margin is nobody's to call.
NEAR_TIE = 2e-3
F32 = NDArray[np.float32]
Keys = dict[str, Any]

_BASE: Keys = {
    "vocab_size": 301, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": END_ID, "pad_token_id": None,
}  # fmt: skip
_MIXTRAL: Keys = {"head_dim": 16, "intermediate_size": 96, "num_local_experts": 4, "num_experts_per_tok": 2}
_QWEN2: Keys = {
    "intermediate_size": 112, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 80, "num_experts": 6,
    "num_experts_per_tok": 2,
}  # fmt: skip
_QWEN3: Keys = {
    "intermediate_size": 112, "moe_intermediate_size": 48, "num_experts": 8, "num_experts_per_tok": 3, "head_dim": 32,
}  # fmt: skip
_OLMOE: Keys = {"num_key_value_heads": 4, "intermediate_size": 48, "num_experts": 8, "num_experts_per_tok": 3}
_GRANITE: Keys = {
    "intermediate_size": 48, "num_local_experts": 8, "num_experts_per_tok": 3, "embedding_multiplier": 12.0,
    "logits_scaling": 6.0, "residual_multiplier": 0.22, "attention_multiplier": 0.0625,
}  # fmt: skip
_GLM4: Keys = {
    "num_hidden_layers": 3, "head_dim": 16, "intermediate_size": 112, "moe_intermediate_size": 48,
    "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1, "first_k_dense_replace": 1,
}  # fmt: skip
_DEEPSEEK: Keys = {
    "num_hidden_layers": 3, "num_key_value_heads": 4, "intermediate_size": 112, "moe_intermediate_size": 48,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 2, "first_k_dense_replace": 1,
    "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12,
}  # fmt: skip
_PHIMOE: Keys = {
    "head_dim": 16, "intermediate_size": 96, "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": True,
    "lm_head_bias": True,
}  # fmt: skip
_GPT_OSS: Keys = {
    "head_dim": 16, "intermediate_size": 96, "num_local_experts": 8, "num_experts_per_tok": 3, "sliding_window": 6,
}  # fmt: skip
_DENSE: Keys = {"intermediate_size": 112}


def _rope(kind: str, **values: Any) -> Keys:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **values}}


# name -> (model_type, keys of its configuration)
CONFIGURATIONS: dict[str, tuple[str, Keys]] = {
    "mixtral": ("mixtral", _MIXTRAL),
    "mixtral-window": ("mixtral", {**_MIXTRAL, "sliding_window": 8}),
    "mixtral-tied-head-dim": ("mixtral", {**_MIXTRAL, "tie_word_embeddings": True, "head_dim": 32}),
    "mixtral-k-1": ("mixtral", {**_MIXTRAL, "num_experts_per_tok": 1}),
    "mixtral-k-all-of-5": ("mixtral", {**_MIXTRAL, "num_local_experts": 5, "num_experts_per_tok": 5}),
    "mixtral-256-experts-k-16": (
        "mixtral", {**_MIXTRAL, "intermediate_size": 16, "num_local_experts": 256, "num_experts_per_tok": 16}
    ),
    "mixtral-rope-linear": ("mixtral", {**_MIXTRAL, **_rope("linear", factor=4.0)}),
    "mixtral-rope-dynamic": ("mixtral", {**_MIXTRAL, **_rope("dynamic", factor=4.0)}),
    "mixtral-rope-yarn": (
        "mixtral", {**_MIXTRAL, **_rope("yarn", factor=4.0, original_max_position_embeddings=32)}
    ),
    "mixtral-rope-yarn-mscale": (
        "mixtral",
        {**_MIXTRAL, **_rope("yarn", factor=4.0, original_max_position_embeddings=32, mscale=0.7, mscale_all_dim=0.4,
                             beta_fast=16.0, beta_slow=2.0, truncate=False)},
    ),
    "mixtral-rope-llama3": (
        "mixtral",
        {**_MIXTRAL, **_rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=32)},
    ),
    "mixtral-rope-longrope": (
        "mixtral",
        {**_MIXTRAL, **_rope("longrope", short_factor=[1.0 + 0.1 * i for i in range(8)],
                             long_factor=[2.0 + i for i in range(8)], original_max_position_embeddings=64)},
    ),
    "qwen2-moe": ("qwen2_moe", _QWEN2),
    "qwen2-moe-norm": ("qwen2_moe", {**_QWEN2, "norm_topk_prob": True}),
    "qwen2-moe-no-bias": ("qwen2_moe", {**_QWEN2, "qkv_bias": False}),
    "qwen2-moe-mixed-layers": (
        "qwen2_moe", {**_QWEN2, "num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [3]}
    ),
    "qwen2-moe-window": (
        "qwen2_moe", {**_QWEN2, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 6}
    ),
    "qwen3-moe": ("qwen3_moe", {**_QWEN3, "norm_topk_prob": True}),
    "qwen3-moe-no-norm": ("qwen3_moe", {**_QWEN3, "norm_topk_prob": False, "mlp_only_layers": [0]}),
    "qwen3-moe-bias": ("qwen3_moe", {**_QWEN3, "attention_bias": True}),
    "qwen3-moe-window": ("qwen3_moe", {**_QWEN3, "use_sliding_window": True, "sliding_window": 6}),
    "olmoe": ("olmoe", _OLMOE),
    "olmoe-norm": ("olmoe", {**_OLMOE, "norm_topk_prob": True}),
    "olmoe-clip": ("olmoe", {**_OLMOE, "clip_qkv": 0.5}),
    "olmoe-gqa-bias": ("olmoe", {**_OLMOE, "num_key_value_heads": 2, "attention_bias": True}),
    "granitemoe": ("granitemoe", {**_GRANITE, "tie_word_embeddings": True}),
    "granitemoe-untied": ("granitemoe", {**_GRANITE, "residual_multiplier": 0.6}),
    "granitemoe-bias": ("granitemoe", {**_GRANITE, "attention_bias": True}),
    "granitemoeshared": ("granitemoeshared", {**_GRANITE, "shared_intermediate_size": 64}),
    "glm4-moe": ("glm4_moe", {**_GLM4, "attention_bias": True, "use_qk_norm": True}),
    "glm4-moe-groups": ("glm4_moe", {**_GLM4, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5}),
    "glm4-moe-no-norm": ("glm4_moe", {**_GLM4, "norm_topk_prob": False, "n_shared_experts": 2}),
    "deepseek-v2-lite": (
        "deepseek_v2",
        {**_DEEPSEEK, "q_lora_rank": None, "topk_method": "greedy", "n_group": 1, "topk_group": 1, "num_experts_per_tok": 3},
    ),
    "deepseek-v2-groups": (
        "deepseek_v2",
        {**_DEEPSEEK, "q_lora_rank": 24, "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2,
         "routed_scaling_factor": 16.0},
    ),
    "deepseek-v2-yarn": (
        "deepseek_v2",
        {**_DEEPSEEK, "q_lora_rank": None, **_rope("yarn", factor=4.0, original_max_position_embeddings=32, mscale=0.707,
                                                   mscale_all_dim=0.707)},
    ),
    "deepseek-v3": (
        "deepseek_v3", {**_DEEPSEEK, "q_lora_rank": 24, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5}
    ),
    "deepseek-v3-no-q-rank": ("deepseek_v3", {**_DEEPSEEK, "q_lora_rank": None, "n_group": 1, "topk_group": 1}),
    "deepseek-v3-half-rope-yarn": (
        "deepseek_v3",
        {**_DEEPSEEK, "q_lora_rank": 24, "n_group": 2, "topk_group": 1, "rope_interleave": False, "norm_topk_prob": False,
         **_rope("yarn", factor=4.0, original_max_position_embeddings=32, mscale=1.0, mscale_all_dim=1.0)},
    ),
    "phimoe-biases": ("phimoe", _PHIMOE),
    "phimoe-window-no-bias": (
        "phimoe", {**_PHIMOE, "attention_bias": False, "lm_head_bias": False, "sliding_window": 6}
    ),
    "phimoe-wide-jitter-tied": ("phimoe", {**_PHIMOE, "router_jitter_noise": 0.3, "tie_word_embeddings": True}),
    "phimoe-no-jitter": ("phimoe", {**_PHIMOE, "router_jitter_noise": 0.0, "num_local_experts": 2}),
    "phimoe-longrope": (
        "phimoe",
        {**_PHIMOE, **_rope("longrope", short_factor=[1.0 + 0.1 * i for i in range(8)],
                            long_factor=[2.0 + i for i in range(8)], short_mscale=1.25, long_mscale=1.5,
                            original_max_position_embeddings=64)},
    ),
    "gpt-oss": ("gpt_oss", _GPT_OSS),
    "gpt-oss-three-layers-plain-rope": (
        "gpt_oss", {**_GPT_OSS, **_rope("default"), "num_hidden_layers": 3, "attention_bias": False}
    ),
    "gpt-oss-layer-types-tied": (
        "gpt_oss", {**_GPT_OSS, "layer_types": ["full_attention", "sliding_attention"], "tie_word_embeddings": True}
    ),
    "gpt-oss-clamped-k-1": (
        "gpt_oss", {**_GPT_OSS, "swiglu_limit": 0.5, "swiglu_alpha": 1.0, "num_experts_per_tok": 1}
    ),
    "gpt-oss-yarn": (
        "gpt_oss", {**_GPT_OSS, **_rope("yarn", factor=4.0, original_max_position_embeddings=32, truncate=False)}
    ),
    "gpt-oss-mxfp4": ("gpt_oss", {**_GPT_OSS, "quantization_config": {"quant_method": "mxfp4"}}),
    "llama": ("llama", _DENSE),
    "llama-bias-tied": ("llama", {**_DENSE, "attention_bias": True, "tie_word_embeddings": True}),
    "llama-rope-llama3": (
        "llama",
        {**_DENSE, **_rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                           original_max_position_embeddings=32)},
    ),
    "qwen2": ("qwen2", _DENSE),
    "qwen2-window": (
        "qwen2", {**_DENSE, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
    ),
    "qwen3": ("qwen3", {**_DENSE, "head_dim": 32}),
}  # fmt: skip


def near_ties(logits: F32) -> dict[int, float]:
    """Positions whose two largest logits are closer than a16 resolves, with the margin."""
    largest = np.sort(logits, axis=-1)
    margins = largest[:, -1] - largest[:, -2]
    return {int(i): float(margins[i]) for i in np.flatnonzero(margins < NEAR_TIE)}


def write_checkpoint(name: str, folder: Path, *, fused: bool = False) -> Path:
    """Write the checkpoint of a configuration; `fused`: as transformers keeps it in memory."""
    model_type, keys = CONFIGURATIONS[name]
    keys = dict(keys)
    quantization = keys.pop("quantization_config", None)
    config = AutoConfig.for_model(model_type, **{**_BASE, **keys})
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    _fill(model, seed=sum(name.encode()))
    model.tie_weights()
    model.save_pretrained(folder, save_original_format=not fused)
    if quantization is not None:
        _pack_mxfp4(folder, quantization)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def _pack_mxfp4(folder: Path, quantization: Keys) -> None:
    """Other experts, in MXFP4 as gpt-oss is published: every code, and powers of two that keep vectors near unit size."""
    generator = torch.Generator().manual_seed(1)
    stored = load_file(folder / "model.safetensors")
    for name in [name for name in stored if name.endswith(("gate_up_proj", "down_proj"))]:
        n_experts, inputs, outputs = stored.pop(name).shape
        shape = (n_experts, outputs, inputs // 32)
        stored[f"{name}_blocks"] = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8, generator=generator)
        stored[f"{name}_scales"] = torch.randint(121, 124, shape, dtype=torch.uint8, generator=generator)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    _edit_config(folder, quantization_config=quantization)


def _edit_config(folder: Path, **changes: Any) -> None:
    """Change keys of config.json; `...` takes one away. null is a value: some classes have another default."""
    path = folder / "config.json"
    values = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not ...}), encoding="utf-8")


def _fill(model: torch.nn.Module, seed: int) -> None:
    """Values that make every term matter: norms around 1, biases of 0.1, matrices scaled by their inputs."""
    generator = torch.Generator().manual_seed(seed)
    tied = model.config.tie_word_embeddings
    scale = float(getattr(model.config, "embedding_multiplier", 1.0) or 1.0)
    for name, values in sorted([*model.named_parameters(), *model.named_buffers()], key=lambda item: item[0]):
        if "inv_freq" in name:
            continue
        drawn = torch.randn(values.shape, generator=generator)
        if "norm" in name.split(".")[-2] and name.endswith("weight"):
            drawn = 1 + 0.1 * drawn
        elif "bias" in name.split(".")[-1]:
            drawn = 0.1 * drawn
        elif "embed" in name:
            drawn = drawn / (math.sqrt(values.shape[-1]) if tied else 1.0) / scale
        else:
            drawn = drawn / math.sqrt(values.shape[-1])
        values.data.copy_(drawn)


@dataclass(frozen=True)
class Verdict:
    """A teacher-forced pass: logits [n, vocab_size]; the experts of each position and layer with experts, sorted."""

    logits: F32
    routing: list[list[list[int]]]


class FamilyJudge:
    """transformers' class of a checkpoint, with the weights that a quantized model stands for."""

    def __init__(self, checkpoint: Path, model: QuantizedModel, folder: Path) -> None:
        _write_dequantized(checkpoint, model, folder)
        self._eos_ids, self._max_context = model.config.eos_ids, model.config.max_context
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
        self._model.eval()
        self._chosen: dict[int, torch.Tensor] = {}
        for index in model.config.expert_layers:
            self._router(index).register_forward_hook(self._keep(index))

    def _router(self, index: int) -> torch.nn.Module:
        layer = self._model.model.layers[index]
        block = layer.block_sparse_moe if hasattr(layer, "block_sparse_moe") else layer.mlp
        return block.router if hasattr(block, "router") else block.gate

    def _keep(self, index: int):  # type: ignore[no-untyped-def]
        def hook(_module: object, _inputs: object, output: tuple[torch.Tensor, ...]) -> None:
            self._chosen[index] = next(item for item in output[::-1] if not item.is_floating_point())

        return hook

    @torch.no_grad()
    def greedy(self, ids: Sequence[int], max_tokens: int) -> list[int]:
        """Greedy tokens, end of sequence included."""
        tokens = list(ids)
        for _ in range(max_tokens):
            logits = self._model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
            tokens.append(int(torch.argmax(logits)))
            if tokens[-1] in self._eos_ids or len(tokens) >= self._max_context:
                break
        return tokens[len(ids) :]

    @torch.no_grad()
    def forward(self, ids: Sequence[int]) -> Verdict:
        """Teacher-forced pass over one sequence."""
        logits = self._model(torch.tensor([list(ids)]), use_cache=False).logits[0].numpy().astype(np.float32)
        layers = [self._chosen[index].reshape(len(ids), -1) for index in sorted(self._chosen)]
        return Verdict(logits, [[sorted(layer[t].tolist()) for layer in layers] for t in range(len(ids))])


def _write_dequantized(checkpoint: Path, model: QuantizedModel, folder: Path) -> None:
    """A copy of a checkpoint in which every tensor is what its quantized form stands for."""
    shutil.copytree(checkpoint, folder)
    stored = load_file(folder / "model.safetensors")
    for name in [name for name in stored if name.endswith("_blocks")]:
        n_experts, outputs, groups = stored.pop(name.replace("_blocks", "_scales")).shape
        stored[name.removesuffix("_blocks")] = torch.zeros(n_experts, 32 * groups, outputs)
        del stored[name]
    _edit_config(folder, quantization_config=...)
    for place, index, values in _places(model, set(stored)):
        target = stored[place]
        if model.config.family == "gpt_oss" and target.dim() == 3:  # [experts, inputs, outputs]
            target = target.transpose(1, 2)
        target[index] = values.to(target.dtype)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})


def _places(model: QuantizedModel, names: set[str]):  # type: ignore[no-untyped-def]
    config: ModelConfig = model.config
    family = FAMILIES[config.family]
    for spec in tensor_specs(config):
        place = next(place for place in family.names.places(spec, config) if place.name in names)
        values = np.ascontiguousarray(dequantize_tensor(model.tensors[spec.name], model.group_size), np.float32)
        yield place.name, place.index or ..., torch.from_numpy(values.reshape(spec.shape))


@dataclass(frozen=True)
class Comparison:
    """The reference in class a16 against transformers in fp32, over a prompt and a greedy answer of N_TOKENS."""

    positions: int
    mean_kl: float
    routing_equal: int  # positions whose experts are the same in every layer
    differing: set[int]  # positions of the answer where the largest logit is another one
    near_ties: dict[int, float]  # positions whose two largest logits differ by less than a16 resolves, and by how much
    answers_equal: bool  # the reference's own greedy answer is transformers'
    model: QuantizedModel
    answer: Generation  # the reference's own


def compare(name: str, folder: Path) -> Comparison:
    """Make a configuration's checkpoint, quantize it, and let both sides answer."""
    checkpoint = write_checkpoint(name, folder / "checkpoint")
    model, _ = quantize_model(read_checkpoint(checkpoint), QuantizeOptions(method="rtn", group_size=32))
    judge = FamilyJudge(checkpoint, model, folder / "dequantized")
    expected = judge.greedy(PROMPT, N_TOKENS)
    text = [*PROMPT, *expected[:-1]]
    verdict = judge.forward(text)
    reference = ReferenceModel(model)
    logits, routing = forward(reference, text)
    same = [[sorted(step.experts) for step in position] for position in routing]
    first = len(PROMPT) - 1
    answer = generate(reference, "", PROMPT, N_TOKENS)
    differing = np.flatnonzero(logits.argmax(-1)[first:] != expected) + first
    return Comparison(
        positions=len(text),
        mean_kl=compare_logits(verdict.logits, logits).mean_kl,
        routing_equal=sum(a == b for a, b in zip(same, verdict.routing, strict=True)),
        differing={int(position) for position in differing},
        near_ties=near_ties(verdict.logits),
        answers_equal=list(answer.ids) == expected,
        model=model,
        answer=answer,
    )
