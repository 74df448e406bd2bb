"""A QuantizedModel of random codes: every storage format and awkward shape, without a quantizer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from colibri_build.artifacts import Format, Kind, ModelConfig, QuantizedModel, QuantizedTensor, TensorSpec, Tokenizer
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.tensor_specs import kinds_of, tensor_specs
from support.tiny_checkpoint import END_ID, tiny_tokenizer

DEFAULT_FORMATS: Mapping[Kind, Format] = {
    Kind.EMBEDDING: Format.W8,
    Kind.ATTENTION: Format.W8,
    Kind.EXPERT: Format.W4,
    Kind.ROUTER: Format.F32,
    Kind.NORM: Format.F32,
    Kind.LM_HEAD: Format.W8,
}
# Of the kinds that only some families have.
MORE_FORMATS: Mapping[Kind, Format] = {Kind.DENSE: Format.W8, Kind.BIAS: Format.F32}
# Rows no multiple of 8, inputs no multiple of 32 or of a group, 3 experts, 1 key-value head.
AWKWARD_CONFIG = ModelConfig(
    family="mixtral",
    n_layers=2,
    dim=44,
    hidden_dim=70,
    n_heads=3,
    n_kv_heads=1,
    head_dim=6,
    vocab_size=301,
    n_experts=3,
    top_k=2,
    norm_topk=True,
    rms_eps=1e-5,
    rope_theta=10000.0,
    sliding_window=0,
    max_context=64,
    tied_embeddings=False,
    bos_id=None,
    eos_ids=(END_ID,),
)


@functools.cache
def tiny_tokenizer_artifact(vocab_size: int = 301) -> Tokenizer:
    """The tiny checkpoint's tokenizer as the stages see it."""
    return read_tokenizer_bytes(tiny_tokenizer().to_str().encode("utf-8"), vocab_size)


def random_tensor(spec: TensorSpec, format: Format, group_size: int, rng: np.random.Generator) -> QuantizedTensor:
    """Codes over their whole range; scales from fp16 subnormals to about 0.1, of both signs."""
    shape, groups = (spec.rows, spec.cols), (spec.rows, -(-spec.cols // group_size))
    if format in (Format.F32, Format.F16):
        values = rng.standard_normal(shape) / np.sqrt(spec.cols) + (1 if spec.kind is Kind.NORM else 0)
        return QuantizedTensor(spec, format, values.astype(np.float32 if format is Format.F32 else np.float16))
    scales = (rng.standard_normal(groups) * 10.0 ** rng.integers(-7, -1, groups)).astype(np.float16)
    if format is Format.W8:
        return QuantizedTensor(spec, format, rng.integers(-127, 128, shape).astype(np.int8), scales)
    zeros = rng.integers(0, 16, groups).astype(np.uint8)
    return QuantizedTensor(spec, format, rng.integers(0, 16, shape).astype(np.uint8), scales, zeros)


def random_quantized(
    config: ModelConfig = AWKWARD_CONFIG,
    *,
    group_size: int = 32,
    formats: Mapping[Kind, Format] = DEFAULT_FORMATS,
    seed: int = 0,
    edit: Callable[[dict[str, QuantizedTensor]], None] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> QuantizedModel:
    """Seeded random tensors for `config`. edit: changes them before the model is made."""
    rng = np.random.default_rng(seed)
    formats = {kind: {**MORE_FORMATS, **formats}[kind] for kind in kinds_of(config)}
    tensors = {spec.name: random_tensor(spec, formats[spec.kind], group_size, rng) for spec in tensor_specs(config)}
    if edit is not None:
        edit(tensors)
    tokenizer = tiny_tokenizer_artifact(config.vocab_size)
    return QuantizedModel(config, group_size, formats, tensors, tokenizer, provenance or {"source": "random"})
