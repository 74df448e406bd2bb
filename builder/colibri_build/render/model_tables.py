"""model_tables.c: where each weight is inside the embedded arrays, and the model's small constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from colibri_build import __version__
from colibri_build.artifacts import EXPERT_PARTS, Generation, ModelConfig, ModelFolder
from colibri_build.layout import (
    FileLayout,
    PartLayout,
    dense_layout,
    expert_layout,
    file_layouts,
    routing_layout,
    symbol_of,
)
from colibri_build.render.banner import banner
from colibri_build.render.c_text import c_float, c_string, wrapped
from colibri_build.render.environment import render
from colibri_build.render.size_checks import SizeCheck, size_checks

TEMPLATE = "model_tables.c.j2"


@dataclass(frozen=True)
class EmbeddedArray:
    """One embedded file as C sees it."""

    symbol: str
    bytes: int


@dataclass(frozen=True)
class LayerEntry:
    """Initialisers of one `Layer`."""

    attn_norm: str
    q: str
    k: str
    v: str
    o: str
    ffn_norm: str
    router: str


@dataclass(frozen=True)
class ExpertEntry:
    """Initialisers of one `Expert`."""

    gate: str
    up: str
    down: str


@dataclass(frozen=True)
class ModelTablesContext:
    """Names of the template's values."""

    banner: str
    arrays: tuple[EmbeddedArray, ...]
    checks: tuple[SizeCheck, ...]
    layers: tuple[LayerEntry, ...]
    experts: tuple[tuple[ExpertEntry, ...], ...]  # [n_layers][n_experts]
    embedding: str
    lm_head: str
    final_norm: str
    inv_freq: tuple[str, ...]
    eos_ids: str
    name: str
    digest: str
    builder_version: str
    golden_prompt: str
    golden_ids: tuple[str, ...]
    golden_hash: str


def model_tables_source(folder: ModelFolder, golden: Generation) -> str:
    """Text of model_tables.c. Raises RenderError for a value that C cannot express."""
    config, formats, group = folder.config, folder.formats, folder.group_size
    dense = dense_layout(config, formats, group)
    routing = routing_layout(config, formats, group)
    head = "embedding" if config.tied_embeddings else "lm_head"
    context = ModelTablesContext(
        banner=banner(TEMPLATE, folder),
        arrays=tuple(EmbeddedArray(symbol_of(file.name), file.bytes) for file in file_layouts(config, formats, group)),
        checks=size_checks(dense, expert_layout(config, formats, group)),
        layers=tuple(_layer(dense, routing, layer) for layer in range(config.n_layers)),
        experts=tuple(tuple(_experts(folder, layer)) for layer in range(config.n_layers)),
        embedding=_matrix(dense, "embedding"),
        lm_head=_matrix(dense, head),
        final_norm=_vector(dense, "final_norm"),
        inv_freq=wrapped((c_float(value) for value in _inverse_frequencies(config)), 6),
        eos_ids=", ".join(str(token) for token in config.eos_ids),
        name=c_string(str(folder.provenance.get("source", folder.path.name))),
        digest=c_string(folder.digest),
        builder_version=c_string(__version__),
        golden_prompt=c_string(golden.prompt),
        golden_ids=wrapped((str(token) for token in golden.ids), 16),
        golden_hash=f"UINT64_C(0x{int(golden.logits_hash, 16):016x})",
    )
    return render(TEMPLATE, context)


def _address(file: FileLayout, offset: int) -> str:
    return f"{symbol_of(file.name)} + {offset}"


def _vector(file: FileLayout, name: str) -> str:
    return f"(const void *)({_address(file, file.part(name).offset)})"


def _matrix(file: FileLayout, name: str) -> str:
    return _part(file, file.part(name))


def _part(file: FileLayout, part: PartLayout) -> str:
    scales = _address(file, part.scale_offset) if part.scale_bytes else "NULL"
    return f"{{{_address(file, part.offset)}, {scales}, {part.spec.rows}, {part.spec.cols}}}"


def _layer(dense: FileLayout, routing: FileLayout, layer: int) -> LayerEntry:
    prefix = f"layers.{layer}"
    return LayerEntry(
        attn_norm=_vector(dense, f"{prefix}.attn_norm"),
        q=_matrix(dense, f"{prefix}.q"),
        k=_matrix(dense, f"{prefix}.k"),
        v=_matrix(dense, f"{prefix}.v"),
        o=_matrix(dense, f"{prefix}.o"),
        ffn_norm=_vector(dense, f"{prefix}.ffn_norm"),
        router=_matrix(routing, f"{prefix}.router"),
    )


def _experts(folder: ModelFolder, layer: int) -> Iterator[ExpertEntry]:
    for expert in range(folder.config.n_experts):
        file = expert_layout(folder.config, folder.formats, folder.group_size, layer, expert)
        gate, up, down = (_matrix(file, f"layers.{layer}.experts.{expert}.{part}") for part in EXPERT_PARTS)
        yield ExpertEntry(gate, up, down)


def _inverse_frequencies(config: ModelConfig) -> Iterator[float]:
    """RoPE frequencies [head_dim / 2]: 1 / theta^(2i/head_dim) in binary64; c_float rounds once."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    yield from (1.0 / np.power(np.float64(config.rope_theta), exponents)).tolist()
