"""The reference's arithmetic against binary64 and plain loops: if it drifts, every golden answer drifts with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from colibri_build.reference import numbers
from colibri_build.reference.numbers import F32

RNG = np.random.default_rng(7)


def ulp_error(got: F32, exact: np.ndarray) -> float:
    return float(np.max(np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(np.float32))))


def test_exp_is_within_one_ulp_of_the_exact_value() -> None:
    x = RNG.uniform(-86, 88, 1 << 18).astype(np.float32)
    assert ulp_error(numbers.exp(x), np.exp(x.astype(np.float64))) < 1.0


def test_exp_clamps_instead_of_overflowing() -> None:
    x = np.array([-1e30, -88, 89, 3e38], np.float32)
    got = numbers.exp(x)
    assert np.all(np.isfinite(got))
    assert got[0] == got[1] > 0
    assert got[2] == got[3] < np.inf


def test_sincos_rounds_the_exact_value() -> None:
    angles = RNG.uniform(0, 1e5, 1 << 16)
    sine, cosine = numbers.sincos(angles)
    exact = [(math.sin(a), math.cos(a)) for a in angles]
    # One rounding to binary32 of a binary64 value that is itself good to far better than half a unit.
    assert np.max(np.abs(sine - np.array([s for s, _ in exact]))) < 6.1e-8
    assert np.max(np.abs(cosine - np.array([c for _, c in exact]))) < 6.1e-8


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 64, 100])
def test_lane_sum_is_the_loop_that_the_specification_describes(n: int) -> None:
    x = RNG.standard_normal(n).astype(np.float32)
    lanes = [np.float32(0)] * 8
    for i in range(n):
        lanes[i % 8] = np.float32(lanes[i % 8] + x[i])
    four = [np.float32(lanes[i] + lanes[i + 4]) for i in range(4)]
    expected = np.float32(np.float32(four[0] + four[2]) + np.float32(four[1] + four[3]))
    assert numbers.lane_sum(x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("group_size", [32, 64, 128])
def test_quantized_activation_is_close_and_in_range(bits: int, group_size: int) -> None:
    x = (RNG.standard_normal(172) * 3).astype(np.float32)
    got = numbers.quantize_activation(x, group_size, bits)
    largest = numbers.ACTIVATION_MAX[bits]
    assert np.max(np.abs(got.codes)) == largest
    restored = (got.codes * got.scales[:, None].astype(np.float64)).reshape(-1)
    assert np.all(restored[172:] == 0)
    assert np.max(np.abs(restored[:172] - x)) <= np.max(np.abs(x)) / largest * 0.51


def test_a_denormal_group_is_zero_and_harms_no_other_group() -> None:
    x = np.concatenate([np.full(32, 1e-41), np.linspace(-1, 1, 32)]).astype(np.float32)
    got = numbers.quantize_activation(x, 32, 16)
    assert not got.codes[0].any()
    assert got.scales[0] == 0
    assert got.codes[1].any()


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings("error")
def test_a_group_that_is_not_finite_stays_visible(bits: int, value: float) -> None:
    """As in the kernels: codes 0 and the scale NaN, or firmware and reference would fail in different places."""
    x = np.linspace(-1, 1, 96).astype(np.float32)
    clean = numbers.quantize_activation(x, 32, bits)
    x[40] = value
    got = numbers.quantize_activation(x, 32, bits)
    assert not got.codes[1].any()
    assert np.isnan(got.scales[1])
    for group in (0, 2):
        assert np.array_equal(got.codes[group], clean.codes[group])
        assert got.scales[group] == clean.scales[group]


def test_planes_of_a_code_are_signed_bytes() -> None:
    """The a16 kernels multiply signed bytes: a code outside two of them would wrap silently."""
    codes = np.arange(-32512, 32513)
    high = (codes + 128) >> 8
    low = codes - 256 * high
    assert high.min() >= -127
    assert high.max() <= 127
    assert low.min() >= -128
    assert low.max() <= 127


def test_rms_norm_is_close_to_binary64() -> None:
    x, w = RNG.standard_normal((2, 576)).astype(np.float32)
    exact = x.astype(np.float64) / np.sqrt(np.mean(x.astype(np.float64) ** 2) + 1e-5) * w
    assert np.max(np.abs(numbers.rms_norm(x, w, 1e-5) - exact)) < 2e-6
