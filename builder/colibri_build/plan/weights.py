"""What the weights take, by kind, and how much of them one token reads."""

from __future__ import annotations

from collections.abc import Mapping

from colibri_build.artifacts import Format, Kind, ModelConfig, Region
from colibri_build.layout import FileLayout, dense_layout, expert_layout, routing_layout

_DENSE_NAMES = {
    Kind.EMBEDDING: "embedding",
    Kind.ATTENTION: "attention weights",
    Kind.NORM: "norms",
    Kind.LM_HEAD: "lm_head",
    Kind.DENSE: "dense parts",
    Kind.BIAS: "biases",
}


def weight_regions(config: ModelConfig, formats: Mapping[Kind, Format], group_size: int) -> list[Region]:
    """Regions of the embedded weights, padding included: their sum is the sum of the model folder's binary files.

    Weights are read-only and stay mapped from the file, so each byte counts in flash and, once read, in RAM.
    """
    count = config.n_expert_layers * config.n_experts
    expert = expert_layout(config, formats, group_size).bytes if count else 0
    experts_sum = (
        f"{config.n_expert_layers} layers x {config.n_experts} experts x {expert} B "
        f"(3 x {config.dim} x {config.hidden_dim} {formats[Kind.EXPERT]}{_grouped(formats[Kind.EXPERT], group_size)}"
        f"{', and biases' if config.expert_bias else ''})"
    )
    regions = [_weights("experts", count * expert, experts_sum)] if count else []
    dense = dense_layout(config, formats, group_size)
    for kind, total in dense_bytes(dense).items():
        parts = [part for part in dense.parts if part.spec.kind is kind]
        elements = sum(part.spec.rows * part.spec.cols for part in parts)
        text = f"{_counted(len(parts), 'tensor')}, {elements} x {formats[kind]}{_grouped(formats[kind], group_size)}"
        regions.append(_weights(_DENSE_NAMES[kind], total, text))
    if count:
        router = routing_layout(config, formats, group_size).bytes
        router_sum = f"{config.n_expert_layers} layers x {config.n_experts} experts x {config.dim} x f32"
        regions.append(_weights("router", router, router_sum))
    return regions


def dense_bytes(layout: FileLayout) -> dict[Kind, int]:
    """Bytes of each kind in dense.bin; a part owns the padding up to the next one, so the sum is the file's size."""
    ends = [part.offset for part in layout.parts[1:]] + [layout.bytes]
    totals: dict[Kind, int] = {}
    for part, end in zip(layout.parts, ends, strict=True):
        totals[part.spec.kind] = totals.get(part.spec.kind, 0) + end - part.offset
    return totals


def active_weight_bytes(config: ModelConfig, formats: Mapping[Kind, Format], group_size: int) -> int:
    """Weight bytes that one token reads: top_k experts a layer, all dense parts, and one row of the embedding.

    With tied embeddings the head reads the whole embedding matrix.
    """
    dense = dense_bytes(dense_layout(config, formats, group_size))
    embedding = dense.pop(Kind.EMBEDDING)
    row = -(-embedding // config.vocab_size)
    experts = router = 0
    if config.n_expert_layers:
        experts = config.n_expert_layers * config.top_k * expert_layout(config, formats, group_size).bytes
        router = routing_layout(config, formats, group_size).bytes
    return experts + router + sum(dense.values()) + (embedding if config.tied_embeddings else row)


def _weights(name: str, total: int, text: str) -> Region:
    return Region(name, total, total, text)


def _grouped(format: Format, group_size: int) -> str:
    return f", groups of {group_size}" if format in (Format.W4, Format.W8) else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
