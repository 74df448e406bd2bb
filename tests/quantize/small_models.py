"""Models made from seeded NumPy arrays, small enough for plain Python loops."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from colibri_build.artifacts import F32, Model, ModelConfig, QuantizedModel, Tokenizer
from colibri_build.tensor_specs import tensor_specs

CONFIG = ModelConfig(
    family="mixtral",
    n_layers=2,
    dim=48,
    hidden_dim=40,
    n_heads=4,
    n_kv_heads=2,
    head_dim=12,
    vocab_size=61,
    n_experts=4,
    top_k=2,
    norm_topk=True,
    rms_eps=1e-5,
    rope_theta=10000.0,
    sliding_window=0,
    max_context=32,
    tied_embeddings=False,
    bos_id=None,
    eos_ids=(0,),
)
TOKENIZER = Tokenizer((), (), (), "gpt2", False, False, (), (), b"{}")


def small_config(**changes: Any) -> ModelConfig:
    return replace(CONFIG, **changes)


def small_tensors(config: ModelConfig, seed: int = 0) -> dict[str, F32]:
    """Norms around 1, embeddings of unit variance, matrices scaled by 1/sqrt(inputs)."""
    generator = np.random.default_rng(seed)
    tensors = {}
    for spec in tensor_specs(config):
        values = generator.standard_normal(spec.shape)
        if spec.name.endswith("norm"):
            values = 1 + 0.2 * values
        elif spec.name != "embedding":
            values /= np.sqrt(spec.cols)
        tensors[spec.name] = values.astype(np.float32)
    return tensors


def small_model(seed: int = 0, **changes: Any) -> Model:
    config = small_config(**changes)
    return Model(config, small_tensors(config, seed), TOKENIZER, "small", "0" * 64)


def outlier_model() -> Model:
    """As trained models are: a few channels of the residual stream are much larger than the others."""
    model = small_model(seed=5)
    tensors = dict(model.tensors)
    for name, values in tensors.items():
        if name.endswith(("attn_norm", "ffn_norm")):
            loud = values.copy()
            loud[[3, 17, 30]] *= 25
            tensors[name] = loud
        elif name.endswith((".router", ".q", ".k")):
            quiet = values.copy()
            quiet[:, [3, 17, 30]] /= 25  # keeps attention and routing from saturating
            tensors[name] = quiet
    return replace(model, tensors=tensors)


def token_sequences(config: ModelConfig, count: int, length: int, seed: int = 1) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    return [[int(token) for token in row] for row in generator.integers(0, config.vocab_size, (count, length))]


def model_digest(quantized: QuantizedModel) -> str:
    """SHA-256 over every stored value."""
    digest = hashlib.sha256()
    for name, tensor in quantized.tensors.items():
        digest.update(name.encode())
        for part in (tensor.codes, tensor.scales, tensor.zeros):
            digest.update(b"" if part is None else part.tobytes())
    return digest.hexdigest()
