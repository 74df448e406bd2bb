"""Activation-aware quantization of one layer: which tensors share a scale, where it is folded, who is left out.

    attn_norm -> q, k, v            one scale
    v         -> o                  one scale a value channel, shared by the query heads of a kv head
    ffn_norm  -> gate, up of all experts (and the router, which stays f32)       one scale
    up        -> down               one scale an expert, since silu(gate) * up is linear in up

Statistics come from the original weights: layer l sees the activations of the unquantized layers before it, so one
pass over the calibration text serves all searches and an error in one layer cannot mislead the next. Multiplying a row
of a matrix does not change its codes, so the searches do not disturb one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from colibri_build.artifacts import F32, Format, Kind, ModelConfig
from colibri_build.errors import QuantizeError
from colibri_build.quantize.activation_stats import InputStats, collect, output_energy, rescale
from colibri_build.quantize.exact import F64
from colibri_build.quantize.float_forward import ExpertActivations, LayerActivations, layer_forward
from colibri_build.quantize.options import QuantizeOptions
from colibri_build.quantize.report import Fallback, ScaleGain
from colibri_build.quantize.scale_search import I64, Projection, final_error, search_clip, search_scale


class Site(NamedTuple):
    """Projections that share a scale, and where its inverse goes."""

    folded_into: str  # a norm (elements) or a matrix (rows)
    projections: tuple[Projection, ...]
    format: Format
    mean_abs: F64  # [n_channels]
    channels: I64  # [inputs] -> channel
    clipped: frozenset[str]  # names of the projections whose ranges are searched too
    unquantized: tuple[str, ...] = ()  # take the scale, but have no error


@dataclass(frozen=True)
class LayerPlan:
    """One layer with the scales folded in; `shrink` [rows, n_groups] by short name where ranges are clipped."""

    weights: Mapping[str, F32]
    shrink: Mapping[str, F32]
    gains: tuple[ScaleGain, ...]
    fallbacks: tuple[Fallback, ...]
    expert_tokens: tuple[int, ...]


class _ExpertStats(NamedTuple):
    tokens: I64
    weights: F32
    down: InputStats


def plan_layer(
    config: ModelConfig,
    index: int,
    layer: Mapping[str, F32],
    x: F32,
    lengths: Sequence[int],
    formats: Mapping[Kind, Format],
    options: QuantizeOptions,
) -> tuple[F32, LayerPlan]:
    """Search and fold one layer; returns the residual stream behind the original layer, and the plan.

    x [N, dim] is the residual stream at the layer's entrance. Raises QuantizeError if a folded weight is not finite.
    """
    experts: list[_ExpertStats] = []

    def on_expert(seen: ExpertActivations) -> None:
        down = collect(seen.hidden, options.group_size, seen.weights)
        experts.append(_ExpertStats(seen.tokens, seen.weights, down))

    behind, activations = layer_forward(config, layer, x, lengths, on_expert)
    counts = tuple(expert.down.tokens for expert in experts)
    needed = options.expert_token_threshold
    weights, shrink, gains = dict(layer), {}, []
    for site in _sites(config, layer, activations, experts, formats, options):
        gain, clips = _apply(site, weights, f"layers.{index}.", options.group_size)
        gains.append(gain)
        shrink.update(clips)
    _require_finite(weights, index)
    fallbacks = tuple(
        Fallback(f"layers.{index}.experts.{e}", count, needed) for e, count in enumerate(counts) if count < needed
    )
    return behind, LayerPlan(weights, shrink, tuple(gains), fallbacks, counts)


def _sites(
    config: ModelConfig,
    layer: Mapping[str, F32],
    activations: LayerActivations,
    experts: Sequence[_ExpertStats],
    formats: Mapping[Kind, Format],
    options: QuantizeOptions,
) -> Iterator[Site]:
    yield from _attention_sites(config, layer, activations, formats[Kind.ATTENTION], options.group_size)
    trusted = [e for e, seen in enumerate(experts) if seen.down.tokens >= options.expert_token_threshold]
    fmt = formats[Kind.EXPERT]
    yield _gate_up_site(layer, activations.ffn_in, experts, trusted, fmt, options.group_size)
    for expert in trusted:
        stats = experts[expert].down
        down = Projection(f"experts.{expert}.down", layer[f"experts.{expert}.down"], stats)
        yield _site(f"experts.{expert}.up", (down,), fmt, stats.mean_abs, clipped=(down.name,))


def _site(
    folded_into: str,
    projections: tuple[Projection, ...],
    fmt: Format,
    mean_abs: F64,
    *,
    channels: I64 | None = None,
    clipped: tuple[str, ...],
    unquantized: tuple[str, ...] = (),
) -> Site:
    channels = np.arange(len(mean_abs)) if channels is None else channels
    clips = frozenset(clipped if fmt is Format.W4 else ())  # 8 bits have range to spare
    return Site(folded_into, projections, fmt, mean_abs, channels, clips, unquantized)


def _attention_sites(
    config: ModelConfig, layer: Mapping[str, F32], activations: LayerActivations, fmt: Format, group_size: int
) -> Iterator[Site]:
    """q and k are not clipped: their errors meet in a product that a single output error does not see."""
    inputs = collect(activations.attention_in, group_size)
    qkv = tuple(Projection(name, layer[name], inputs) for name in ("q", "k", "v"))
    yield _site("attn_norm", qkv, fmt, inputs.mean_abs, clipped=("v",))
    outputs = collect(activations.attention_out, group_size)
    shared = config.n_heads // config.n_kv_heads
    by_head = outputs.mean_abs.reshape(config.n_kv_heads, shared, config.head_dim)
    column = np.arange(config.n_heads * config.head_dim)
    channels = column // (shared * config.head_dim) * config.head_dim + column % config.head_dim
    o = Projection("o", layer["o"], outputs)
    yield _site("v", (o,), fmt, by_head.mean(axis=1).ravel(), channels=channels, clipped=("o",))


def _gate_up_site(
    layer: Mapping[str, F32],
    ffn_in: F32,
    experts: Sequence[_ExpertStats],
    trusted: Sequence[int],
    fmt: Format,
    group_size: int,
) -> Site:
    """Each expert is judged on the tokens routed to it, weighted as the router weighs its output."""
    projections, clipped = [], []
    for expert, seen in enumerate(experts):
        stats = collect(ffn_in[seen.tokens], group_size, seen.weights)
        names = [f"experts.{expert}.{part}" for part in ("gate", "up")]
        projections += [Projection(name, layer[name], stats) for name in names]
        clipped += names if expert in trusted else []
    mean_abs = collect(ffn_in, group_size).mean_abs
    return _site("ffn_norm", tuple(projections), fmt, mean_abs, clipped=tuple(clipped), unquantized=("router",))


def _apply(site: Site, weights: dict[str, F32], prefix: str, group_size: int) -> tuple[ScaleGain, dict[str, F32]]:
    """Search one site, fold its scale into `weights`, search its clips; returns the gain and the clips by name."""
    choice = search_scale(site.projections, site.mean_abs, site.channels, site.format, group_size)
    wide = choice.scale[site.channels]
    target = weights[site.folded_into]
    weights[site.folded_into] = target / (choice.scale if target.ndim == 1 else choice.scale[:, None])
    for name in (*site.unquantized, *(p.name for p in site.projections)):
        weights[name] = weights[name] * wide
    clips, error = {}, 0.0
    for p in site.projections:
        scaled = p.weights * wide
        if p.name in site.clipped:
            clips[p.name] = search_clip(scaled, rescale(p.stats, wide), site.format, group_size)
        error += final_error(scaled, wide, p.stats, site.format, group_size, clips.get(p.name))
    energy = sum(output_energy(p.weights, p.stats) for p in site.projections) or 1.0
    gain = ScaleGain(
        prefix + site.folded_into,
        tuple(prefix + p.name for p in site.projections),
        choice.ratio,
        choice.error_rtn / energy,
        choice.error_scaled / energy,
        error / energy,
    )
    return gain, clips


def _require_finite(weights: Mapping[str, F32], index: int) -> None:
    for name, values in weights.items():
        if not np.all(np.isfinite(values)):
            raise QuantizeError(
                f"layers.{index}.{name}: folding the AWQ scales overflows float32 (largest weight "
                f"{np.nanmax(np.abs(values)):.3g})",
                hint="--method rtn",
            )
