"""model_config.h: every size of the model as a compile-time constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colibri_build.artifacts import BuildOptions, Format, Generation, Kind, ModelFolder
from colibri_build.errors import RenderError
from colibri_build.layout import expert_layout
from colibri_build.render.banner import banner
from colibri_build.render.c_text import c_float
from colibri_build.render.environment import render

TEMPLATE = "model_config.h.j2"
ABI = 1  # of the generated code; colibri.h carries the runtime's
FORMAT_NAMES: Mapping[Format, str] = {
    Format.F32: "FORMAT_F32",
    Format.F16: "FORMAT_F16",
    Format.W4: "FORMAT_W4",
    Format.W8: "FORMAT_W8",
}
_PRODUCT_KINDS = (Kind.ATTENTION, Kind.EXPERT, Kind.LM_HEAD)  # an embedding is looked up, not multiplied


@dataclass(frozen=True)
class ModelConfigContext:
    """Names of the template's values."""

    banner: str
    abi: int
    n_layers: int
    dim: int
    hidden_dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    n_experts: int
    top_k: int
    norm_topk: int
    sliding_window: int
    rms_eps: str
    attention_scale: str
    context: int
    max_threads: int
    group_size: int
    activation_bits: int
    attention_format: str
    expert_format: str
    embedding_format: str
    lm_head_format: str
    uses_w4: int
    uses_w8: int
    uses_f16: int
    expert_bytes: int
    debug_routing: int
    debug_memory: int
    debug_timing: int
    n_eos: int
    n_golden: int


def model_config_source(folder: ModelFolder, options: BuildOptions, golden: Generation) -> str:
    """Text of model_config.h. Raises RenderError for a value that C cannot express."""
    return render(TEMPLATE, _context(folder, options, golden))


def _context(folder: ModelFolder, options: BuildOptions, golden: Generation) -> ModelConfigContext:
    config, formats = folder.config, folder.formats
    if not golden.ids:
        raise RenderError(
            f"the golden prompt {golden.prompt[:40]!r} has no answer", hint="choose another golden prompt"
        )
    products = {formats[kind] for kind in _PRODUCT_KINDS}
    return ModelConfigContext(
        banner=banner(TEMPLATE, folder),
        abi=ABI,
        n_layers=config.n_layers,
        dim=config.dim,
        hidden_dim=config.hidden_dim,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        vocab_size=config.vocab_size,
        n_experts=config.n_experts,
        top_k=config.top_k,
        norm_topk=int(config.norm_topk),
        sliding_window=config.sliding_window,
        rms_eps=c_float(config.rms_eps),
        attention_scale=c_float(1.0 / np.sqrt(np.float64(config.head_dim))),
        context=options.context,
        max_threads=options.max_threads,
        group_size=folder.group_size,
        activation_bits=options.activation_bits,
        attention_format=FORMAT_NAMES[formats[Kind.ATTENTION]],
        expert_format=FORMAT_NAMES[formats[Kind.EXPERT]],
        embedding_format=FORMAT_NAMES[formats[Kind.EMBEDDING]],
        lm_head_format=FORMAT_NAMES[formats[Kind.LM_HEAD]],
        uses_w4=int(Format.W4 in products),
        uses_w8=int(Format.W8 in products),
        uses_f16=int(Format.F16 in products),
        expert_bytes=expert_layout(config, formats, folder.group_size).bytes,
        debug_routing=int("routing" in options.debug),
        debug_memory=int("memory" in options.debug),
        debug_timing=int("timing" in options.debug),
        n_eos=len(config.eos_ids),
        n_golden=len(golden.ids),
    )
