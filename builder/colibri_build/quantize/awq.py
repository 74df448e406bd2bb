"""Activation-aware quantization of one layer: which tensors share a scale, where it is folded, who is left out.

    attn_norm -> q, k, v            one scale; of latent attention: q_a or q, kv_a, k_rope
    v         -> o                  one scale a value channel, shared by the query heads of a kv head; none where v
                                    is clamped
    ffn_norm  -> gate, up of all experts, or of the dense part       one scale; the router, which stays f32, and the
                                    shared experts take it too
    up        -> down               one scale an expert or dense part, since silu(gate) * up is linear in up; of 1 with
                                    a clamped SwiGLU, which is not: only ranges are searched then

Statistics come from the original weights: layer l sees the activations of the unquantized layers before it, so one
pass over the calibration text serves all searches and an error in one layer cannot mislead the next. Multiplying a row
of a matrix does not change its codes, so the searches do not disturb one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from colibri_build.artifacts import F32, Format, Kind, ModelConfig
from colibri_build.errors import QuantizeError
from colibri_build.quantize.activation_stats import InputStats, collect, rescale
from colibri_build.quantize.exact import F64, one_blas_thread_beside, tree_sum
from colibri_build.quantize.float_forward import ExpertActivations, LayerActivations, layer_forward
from colibri_build.quantize.folded import FoldedWeights
from colibri_build.quantize.options import QuantizeOptions
from colibri_build.quantize.report import Fallback, ScaleGain
from colibri_build.quantize.scale_search import (
    I64,
    ONE_BY_ONE,
    Projection,
    Workers,
    final_error,
    search_clip,
    search_scale,
)


class Site(NamedTuple):
    """Projections that share a scale, and where its inverse goes."""

    folded_into: str  # a norm (elements) or a matrix (rows)
    projections: tuple[Projection, ...]
    format: Format
    mean_abs: F64  # [n_channels]
    channels: I64  # [inputs] -> channel
    clipped: frozenset[str]  # names of the projections whose ranges are searched too
    unscored: tuple[str, ...] = ()  # take the scale; their error does not count


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


@dataclass(frozen=True)
class LayerInput:
    """One layer before quantization, and the residual stream [N, dim] at its entrance."""

    index: int
    weights: FoldedWeights  # nothing is folded in yet
    x: F32
    lengths: Sequence[int]  # of the sequences whose tokens lie along axis 0 of x


def plan_layer(
    config: ModelConfig,
    layer: LayerInput,
    formats: Mapping[Kind, Format],
    options: QuantizeOptions,
    workers: Workers = ONE_BY_ONE,
) -> tuple[F32, LayerPlan]:
    """Search and fold one layer; returns the residual stream behind the original layer, and the plan.

    Raises QuantizeError if the calibration text overflows the layer, or if a folded weight is not finite.
    """
    experts: list[_ExpertStats] = []

    def on_expert(seen: ExpertActivations) -> None:
        down = collect(seen.hidden, options.group_size, seen.weights)
        experts.append(_ExpertStats(seen.tokens, seen.weights, down))

    with np.errstate(over="ignore", invalid="ignore"):  # reported by name below
        behind, activations = layer_forward(config, layer.index, layer.weights, layer.x, layer.lengths, on_expert)
    prefix = f"layers.{layer.index}."
    if not np.all(np.isfinite(behind)):
        raise QuantizeError(
            f"layers.{layer.index}: the calibration text drives the activations beyond float32",
            hint="check the checkpoint: some of its weights are far too large",
        )
    weights, shrink, gains = layer.weights, {}, []
    sites = _Sites(config, layer.index, prefix, weights, formats, options).all(activations, experts)
    with one_blas_thread_beside(workers):
        for site in sites:
            gain, clips = _apply(site, weights, prefix, options.group_size, workers)
            gains.append(gain)
            shrink.update(clips)
    counts, needed = tuple(expert.down.tokens for expert in experts), options.expert_token_threshold
    fallbacks = [Fallback(f"{prefix}experts.{e}", n, needed) for e, n in enumerate(counts) if n < needed]
    return behind, LayerPlan(weights, shrink, tuple(gains), tuple(fallbacks), counts)


@dataclass(frozen=True)
class _Sites:
    """Lists the searches of one layer. A matrix is listed before anything was folded into its columns or rows."""

    config: ModelConfig
    layer: int
    prefix: str
    weights: FoldedWeights
    formats: Mapping[Kind, Format]
    options: QuantizeOptions

    def all(self, activations: LayerActivations, experts: Sequence[_ExpertStats]) -> Iterator[Site]:
        """Every site, in the order in which it may be folded."""
        yield self._qkv(activations.attention_in)
        if not self.config.clip_qkv:
            yield self._o(activations.attention_out)
        is_dense = self.config.is_dense(self.layer)
        if is_dense:
            yield self._dense_gate_up(activations.ffn_in)
        if activations.dense_hidden is not None:
            part = "dense" if is_dense else "shared"
            yield self._down(Kind.DENSE, part, collect(activations.dense_hidden, self.options.group_size))
        if is_dense:
            return
        trusted = [e for e, seen in enumerate(experts) if seen.down.tokens >= self.options.expert_token_threshold]
        yield self._gate_up(activations.ffn_in, experts, trusted)
        for expert in trusted:
            yield self._down(Kind.EXPERT, f"experts.{expert}", experts[expert].down)

    def _down(self, kind: Kind, part: str, stats: InputStats) -> Site:
        down = self._projection(f"{part}.down", stats)
        is_linear = not self.config.swiglu_limit  # in up; else channels count as equal, whose scale is 1
        mean_abs = stats.mean_abs if is_linear else np.ones_like(stats.mean_abs)
        return self._site(kind, f"{part}.up", (down,), mean_abs, (down.name,))

    def _projection(self, name: str, stats: InputStats) -> Projection:
        return self._projection_later(name, lambda: stats)

    def _projection_later(self, name: str, stats: Callable[[], InputStats]) -> Projection:
        return Projection(name, self.prefix + name, partial(self.weights.__getitem__, name), stats)

    def _site(
        self,
        kind: Kind,
        folded_into: str,
        projections: tuple[Projection, ...],
        mean_abs: F64,
        clipped: Sequence[str],
    ) -> Site:
        """A site whose inputs have a channel each."""
        fmt = self.formats[kind]
        clips = frozenset(clipped if fmt is Format.W4 else ())  # 8 bits have range to spare
        return Site(folded_into, projections, fmt, mean_abs, np.arange(len(mean_abs)), clips)

    def _qkv(self, attention_in: F32) -> Site:
        """q and k are not clipped: their errors meet in a product that a single output error does not see."""
        stats = collect(attention_in, self.options.group_size)
        latent = self.config.kv_rank > 0
        names = ("q_a" if self.config.q_rank else "q", "kv_a", "k_rope") if latent else ("q", "k", "v")
        clipped = () if latent else ("v",)
        projections = tuple(self._projection(name, stats) for name in names)
        return self._site(Kind.ATTENTION, "attn_norm", projections, stats.mean_abs, clipped)

    def _o(self, attention_out: F32) -> Site:
        """A channel is a value channel: the query heads of a kv head share it."""
        config = self.config
        stats = collect(attention_out, self.options.group_size)
        shared = config.n_heads // config.n_kv_heads
        size = config.v_head_dim
        by_head = stats.mean_abs.reshape(config.n_kv_heads, shared, size)
        column = np.arange(config.out_dim)
        channels = column // (shared * size) * size + column % size
        mean_abs = (tree_sum(by_head, axis=1) / shared).ravel()
        return self._site(Kind.ATTENTION, "v", (self._projection("o", stats),), mean_abs, ("o",))._replace(
            channels=channels
        )

    def _dense_gate_up(self, ffn_in: F32) -> Site:
        stats = collect(ffn_in, self.options.group_size)
        projections = tuple(self._projection(f"dense.{part}", stats) for part in ("gate", "up"))
        return self._site(Kind.DENSE, "ffn_norm", projections, stats.mean_abs, [p.name for p in projections])

    def _gate_up(self, ffn_in: F32, experts: Sequence[_ExpertStats], trusted: Sequence[int]) -> Site:
        """Each expert is judged on the tokens routed to it, weighted as the router weighs its output."""

        @lru_cache(maxsize=1)  # gate and up of one expert follow each other
        def stats_of(expert: int) -> InputStats:
            seen = experts[expert]
            return collect(ffn_in[seen.tokens], self.options.group_size, seen.weights)

        projections = [
            self._projection_later(f"experts.{expert}.{part}", partial(stats_of, expert))
            for expert in range(len(experts))
            for part in ("gate", "up")
        ]
        clipped = [f"experts.{expert}.{part}" for expert in trusted for part in ("gate", "up")]
        mean_abs = tree_sum(np.abs(ffn_in), axis=0) / len(ffn_in)
        site = self._site(Kind.EXPERT, "ffn_norm", tuple(projections), mean_abs, clipped)
        others = [name for name in ("shared.gate", "shared.up", "shared_gate") if name in self.weights]
        return site._replace(unscored=("router", *others))


def _apply(
    site: Site, weights: FoldedWeights, prefix: str, group_size: int, workers: Workers
) -> tuple[ScaleGain, dict[str, F32]]:
    """Search one site, fold its scale into `weights`, search its clips; returns the gain and the clips by name."""
    choice = search_scale(site.projections, site.mean_abs, site.channels, site.format, group_size, workers)
    wide = choice.scale[site.channels]
    _fold(site, choice.scale, wide, weights)
    clips, error = {}, 0.0
    for p in site.projections:
        folded, stats = p.weights(), p.stats()
        if p.name in site.clipped:
            clips[p.name] = search_clip(folded, rescale(stats, wide), site.format, group_size, workers)
        error += final_error(folded, wide, stats, site.format, group_size, clips.get(p.name))
    energy = choice.energy or 1.0
    gain = ScaleGain(
        prefix + site.folded_into,
        tuple(p.label for p in site.projections),
        choice.ratio,
        choice.error_rtn / energy,
        choice.error_scaled / energy,
        error / energy,
    )
    return gain, clips


def _fold(site: Site, scale: F32, wide: F32, weights: FoldedWeights) -> None:
    """Divide the rows of the one tensor by the scale, and multiply the columns of the others with it."""
    for name in (*site.unscored, *(p.name for p in site.projections)):
        weights.multiply_columns(name, wide)
    for name in (site.folded_into, f"{site.folded_into}_bias"):
        if name in weights:
            weights.divide(name, scale)
