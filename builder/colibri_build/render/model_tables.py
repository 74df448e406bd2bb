"""model_tables.c: where each weight is inside the embedded arrays, and the model's small constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from colibri_build import __version__
from colibri_build.artifacts import Generation, Kind, ModelConfig, ModelFolder
from colibri_build.layout import (
    FileLayout,
    PartLayout,
    dense_layout,
    expert_layout,
    file_layouts,
    routing_layout,
    symbol_of,
)
from colibri_build.model_constants import rope_frequencies, window_of
from colibri_build.render.banner import banner
from colibri_build.render.c_text import c_float, c_string, wrapped
from colibri_build.render.environment import render
from colibri_build.render.size_checks import SizeCheck, size_checks
from colibri_build.tensor_specs import FFN_PARTS, dense_specs, layer_specs, routing_specs

TEMPLATE = "model_tables.c.j2"
_VECTORS = (Kind.NORM, Kind.BIAS)


@dataclass(frozen=True)
class EmbeddedArray:
    """One embedded file as C sees it."""

    symbol: str
    bytes: int


@dataclass(frozen=True)
class Member:
    """One member of a `Layer`, or another name, and its initialiser."""

    name: str
    value: str


@dataclass(frozen=True)
class LayerExperts:
    """Initialisers of one layer's experts."""

    index: int
    experts: tuple[str, ...]


@dataclass(frozen=True)
class ModelTablesContext:
    """Names of the template's values."""

    banner: str
    arrays: tuple[EmbeddedArray, ...]
    checks: tuple[SizeCheck, ...]
    layers: tuple[tuple[Member, ...], ...]
    experts: tuple[LayerExperts, ...]  # of the layers that have some
    embedding: str
    lm_head: str
    vectors: tuple[Member, ...]  # of the model as a whole
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
        checks=size_checks(config, dense, expert_layout(config, formats, group)),
        layers=tuple(tuple(_layer(config, dense, routing, layer)) for layer in range(config.n_layers)),
        experts=tuple(LayerExperts(layer, tuple(_experts(folder, layer))) for layer in config.expert_layers),
        embedding=_matrix(dense, "embedding"),
        lm_head=_matrix(dense, head),
        vectors=tuple(Member(name, _vector(dense, name)) for name in _whole_vectors(config)),
        inv_freq=wrapped((c_float(float(value)) for value in rope_frequencies(config)), 6),
        eos_ids=", ".join(str(token) for token in config.eos_ids),
        name=c_string(str(folder.provenance.get("source", folder.path.name))),
        digest=c_string(folder.digest),
        builder_version=c_string(__version__),
        golden_prompt=c_string(golden.prompt),
        golden_ids=wrapped((str(token) for token in golden.ids), 16),
        golden_hash=f"UINT64_C(0x{int(golden.logits_hash, 16):016x})",
    )
    return render(TEMPLATE, context)


def _whole_vectors(config: ModelConfig) -> Iterator[str]:
    """Vectors of no layer."""
    found = (spec for spec in dense_specs(config) if not spec.name.startswith("layers."))
    return (spec.name for spec in found if spec.kind in _VECTORS)


def _address(file: FileLayout, offset: int) -> str:
    return f"{symbol_of(file.name)} + {offset}"


def _vector(file: FileLayout, name: str) -> str:
    return f"(const void *)({_address(file, file.part(name).offset)})"


def _matrix(file: FileLayout, name: str) -> str:
    return _part(file, file.part(name))


def _part(file: FileLayout, part: PartLayout) -> str:
    scales = _address(file, part.scale_offset) if part.scale_bytes else "NULL"
    return f"{{{_address(file, part.offset)}, {scales}, {part.spec.rows}, {part.spec.cols}}}"


def _layer(config: ModelConfig, dense: FileLayout, routing: FileLayout, layer: int) -> Iterator[Member]:
    """Members of `Layer` in the order of its tensors; the three matrices of a feed-forward part are one member."""
    for file, specs in ((dense, layer_specs(config, layer)), (routing, routing_specs(config, layer))):
        for spec in specs:
            name, _, part = spec.name.removeprefix(f"layers.{layer}.").partition(".")
            if part == FFN_PARTS[0]:
                yield Member(name, _ffn(file, spec.name.rpartition(".")[0]))
            elif not part:
                yield Member(name, (_vector if spec.kind in _VECTORS else _matrix)(file, spec.name))
    if config.sliding_window and config.full_layers:
        yield Member("window", str(window_of(config, layer)))


def _ffn(file: FileLayout, prefix: str) -> str:
    parts = [f".{part} = {_matrix(file, f'{prefix}.{part}')}" for part in FFN_PARTS]
    biases = [
        part.spec.name for part in file.parts if part.spec.name.startswith(f"{prefix}.") and part.spec.kind is Kind.BIAS
    ]
    parts += [f".{name.rpartition('.')[2]} = {_vector(file, name)}" for name in biases]
    return f"{{{', '.join(parts)}}}"


def _experts(folder: ModelFolder, layer: int) -> Iterator[str]:
    for expert in range(folder.config.n_experts):
        file = expert_layout(folder.config, folder.formats, folder.group_size, layer, expert)
        yield _ffn(file, f"layers.{layer}.experts.{expert}")
