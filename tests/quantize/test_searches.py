"""The statistics and searches of AWQ against direct computation over all tokens."""

from __future__ import annotations

import numpy as np
import pytest

from colibri_build.artifacts import Format
from colibri_build.quantize.activation_stats import SAMPLE_TOKENS, InputStats, collect, output_energy, rescale
from colibri_build.quantize.rtn import round_trip
from colibri_build.quantize.scale_search import (
    SHRINKS,
    Projection,
    candidate,
    channel_levels,
    search_clip,
    search_scale,
)

GROUP = 32


def inputs(n: int = 200, width: int = 80, seed: int = 0) -> np.ndarray:
    """Correlated, with a mean, some channels ten times the others."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n, width)) @ generator.standard_normal((width, width)) / 9 + 0.3
    x[:, ::9] *= 10
    return x.astype(np.float32)


def matrix(rows: int = 24, width: int = 80, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


def direct_energy(weights: np.ndarray, x: np.ndarray) -> float:
    return float(np.sum(np.square(x.astype(np.float64) @ weights.T.astype(np.float64))))


def sampled(stats: InputStats) -> InputStats:
    """As for a projection that is too wide for its second moments."""
    return stats._replace(second=None)


@pytest.mark.parametrize("kind", ["moments", "sample"])
def test_output_energy_is_that_of_all_tokens(kind: str) -> None:
    x, weights = inputs(), matrix()
    router = np.linspace(0.1, 1, len(x), dtype=np.float32)
    stats = collect(x, GROUP, router)
    got = output_energy(weights, stats if kind == "moments" else sampled(stats))
    assert got == pytest.approx(direct_energy(weights, x * router[:, None]), rel=1e-5)


def test_a_sample_stands_for_all_tokens() -> None:
    x, weights = inputs(n=5 * SAMPLE_TOKENS), matrix()
    stats = sampled(collect(x, GROUP))
    assert stats.sample.shape == (SAMPLE_TOKENS, 80)
    assert output_energy(weights, stats) == pytest.approx(direct_energy(weights, x), rel=0.1)


def test_wide_projections_keep_no_square_matrix() -> None:
    stats = collect(inputs(n=8, width=SAMPLE_TOKENS + 1), 128)
    assert stats.second is None


def test_mean_abs_is_not_weighted() -> None:
    x = inputs()
    stats = collect(x, GROUP, np.full(len(x), 0.25, np.float32))
    assert np.allclose(stats.mean_abs, np.abs(x).mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("kind", ["moments", "sample"])
def test_rescaled_statistics_are_those_of_rescaled_inputs(kind: str) -> None:
    x, scale = inputs(), np.geomspace(0.25, 4, 80, dtype=np.float32)
    wanted, got = collect(x / scale, GROUP), rescale(collect(x, GROUP), scale)
    if kind == "sample":
        wanted, got = sampled(wanted), sampled(got)
    assert output_energy(matrix(), got) == pytest.approx(output_energy(matrix(), wanted), rel=1e-5)
    assert np.allclose(got.moments, wanted.moments, rtol=1e-3, atol=1e-3)


def test_an_expert_without_tokens_has_no_error() -> None:
    stats = collect(np.zeros((0, 80), np.float32), GROUP)
    assert output_energy(matrix(), stats) == 0


@pytest.mark.parametrize("index", [1, 7, 19])
def test_scales_are_the_power_of_the_mean(index: int) -> None:
    mean = np.random.default_rng(3).lognormal(0, 1.5, 300)
    scale = candidate(channel_levels(mean), index)
    power = np.log2(mean) * index / 20
    wanted = power - (power.max() + power.min()) / 2
    assert np.abs(np.log2(scale) - wanted).max() <= 1 / 16 + 2 / 64


def test_the_chosen_scale_is_the_best_of_all_ratios() -> None:
    x, weights = inputs(), matrix()
    stats = collect(x, GROUP)
    choice = search_scale(
        [Projection("o", "layers.0.o", lambda: weights, lambda: stats)], stats.mean_abs, np.arange(80), Format.W4, GROUP
    )

    def error(index: int) -> float:
        scale = candidate(channel_levels(stats.mean_abs), index)
        return direct_energy(weights - round_trip(weights * scale, Format.W4, GROUP) / scale, x)

    errors = [error(index) for index in range(20)]
    assert choice.ratio == int(np.argmin(errors)) / 20
    assert choice.ratio > 0
    assert choice.error_scaled == pytest.approx(min(errors), rel=1e-4)
    assert choice.error_rtn == pytest.approx(errors[0], rel=1e-4)


def test_every_group_gets_the_range_with_the_least_error() -> None:
    x, weights = inputs(), matrix(rows=5)
    weights[:, 4] *= 6  # worth clipping
    got = search_clip(weights, collect(x, GROUP), Format.W4, GROUP)
    assert got.shape == (5, 3)
    assert got.min() < 1
    for row in range(5):
        for group in range(3):
            part = slice(group * GROUP, min(80, (group + 1) * GROUP))
            errors = []
            for shrink in SHRINKS:
                narrowed = np.full((1, 1), shrink, np.float32)
                difference = weights[row : row + 1, part] - round_trip(
                    weights[row : row + 1, part], Format.W4, GROUP, narrowed
                )
                errors.append(direct_energy(difference, x[:, part]))
            assert errors[SHRINKS.index(pytest.approx(float(got[row, group])))] <= min(errors) * (1 + 1e-4)
