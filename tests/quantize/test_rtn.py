"""Round-to-nearest against an obvious loop, and against the bound that it must meet."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri_build.artifacts import Format, Kind, TensorSpec
from colibri_build.errors import QuantizeError
from colibri_build.pack import p8
from colibri_build.quantize.rtn import (
    dequantize_matrix,
    dequantize_tensor,
    quantize_matrix,
    quantize_tensor,
    quantize_w4,
    quantize_w8,
    stored_bytes,
)


def fp16(value: float) -> float:
    """Rounded to fp16 by the C library's rules as Python's struct has them."""
    return struct.unpack("<e", struct.pack("<e", value))[0]


def slow_w4(row: list[float], group_size: int) -> tuple[list[int], list[float], list[int]]:
    codes, scales, zeros = [], [], []
    for start in range(0, len(row), group_size):
        group = row[start : start + group_size]
        low, high = min(0.0, *group), max(0.0, *group)
        scale = fp16((high - low) / 15)
        zero = round(-low / scale) if scale else 0
        scales.append(scale)
        zeros.append(zero)
        codes += [min(15, max(0, round(w / scale) + zero)) if scale else 0 for w in group]
    return codes, scales, zeros


def slow_w8(row: list[float], group_size: int) -> tuple[list[int], list[float]]:
    codes, scales = [], []
    for start in range(0, len(row), group_size):
        group = row[start : start + group_size]
        scale = fp16(max(abs(w) for w in group) / 127)
        scales.append(scale)
        codes += [min(127, max(-127, round(w / scale))) if scale else 0 for w in group]
    return codes, scales


def weights(rows: int, cols: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, cols)).astype(np.float32)


@pytest.mark.parametrize("group_size", [32, 64, 128])
@pytest.mark.parametrize("cols", [32, 172, 128, 300])
def test_w4_equals_the_loop(cols: int, group_size: int) -> None:
    matrix = weights(9, cols, seed=cols + group_size)
    got = quantize_w4(matrix, group_size)
    assert got.zeros is not None
    for r, row in enumerate(matrix.tolist()):
        codes, scales, zeros = slow_w4(row, group_size)
        assert got.codes[r].tolist() == codes
        assert got.scales[r].tolist() == scales
        assert got.zeros[r].tolist() == zeros


@pytest.mark.parametrize("group_size", [32, 64, 128])
def test_w8_equals_the_loop(group_size: int) -> None:
    matrix = weights(9, 172, seed=group_size)
    got = quantize_w8(matrix, group_size)
    assert got.zeros is None
    for r, row in enumerate(matrix.tolist()):
        codes, scales = slow_w8(row, group_size)
        assert got.codes[r].tolist() == codes
        assert got.scales[r].tolist() == scales


group_values = st.lists(st.floats(-4, 4, width=32), min_size=33, max_size=70)


@settings(max_examples=100, deadline=None)
@given(group_values, st.floats(0.0009765625, 1024, width=32), st.sampled_from([Format.W4, Format.W8]))
def test_no_weight_is_further_than_half_a_step(values: list[float], size: float, fmt: Format) -> None:
    """A weight that lands on a farther code than the nearest would be lost quality that nobody sees."""
    matrix = np.asarray([values], np.float32) * np.float32(size)
    quantized = quantize_matrix(matrix, fmt, 32)
    step = np.repeat(quantized.scales.astype(np.float64), 32, axis=1)[:, : matrix.shape[1]]
    scale_error = np.maximum(step * 2.0**-11, 2.0**-25)  # of rounding to fp16: relative, or of a subnormal
    limit = step / 2 + (15 if fmt is Format.W4 else 127) * scale_error + np.abs(matrix) * 2.0**-22
    error = np.abs(matrix.astype(np.float64) - dequantize_matrix(quantized, 32))
    assert np.all(error <= limit)


@pytest.mark.parametrize("value", [1.0, -1.0, 0.3, -0.3, 1000.0])
def test_a_constant_group_keeps_its_value(value: float) -> None:
    matrix = np.full((2, 64), value, np.float32)
    quantized = quantize_w4(matrix, 64)
    assert np.allclose(dequantize_matrix(quantized, 64), value, rtol=2.0**-11, atol=0)


def test_a_group_of_zeros_is_all_zero() -> None:
    quantized = quantize_w4(np.zeros((1, 96), np.float32), 64)
    assert quantized.zeros is not None
    assert not quantized.codes.any()
    assert not quantized.scales.any()
    assert not quantized.zeros.any()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_one_sided_group_has_a_zero_point_that_four_bits_hold(sign: int) -> None:
    matrix = sign * np.linspace(5, 6, 64, dtype=np.float32)[None]
    quantized = quantize_w4(matrix, 64)
    assert quantized.zeros is not None
    assert quantized.zeros.tolist() == [[0 if sign > 0 else 15]]
    assert np.abs(dequantize_matrix(quantized, 64) - matrix).max() <= 6 / 15 / 2 + 0.01


@pytest.mark.parametrize("fmt", [Format.W4, Format.W8])
@pytest.mark.parametrize("largest", [1e-5, 1e-6, 4e-7, 1e-9, 1e-40])
def test_tiny_weights_survive_subnormal_scales(fmt: Format, largest: float) -> None:
    """fp16 steps are coarse down there: a scale rounded down would cut off up to half of the range."""
    matrix = (weights(4, 64) * largest).astype(np.float32)
    quantized = quantize_matrix(matrix, fmt, 64)
    step = quantized.scales.astype(np.float64).max()
    assert np.abs(dequantize_matrix(quantized, 64) - matrix.astype(np.float64)).max() <= step * 0.51


def test_a_scale_beyond_fp16_is_refused_by_name() -> None:
    spec = TensorSpec("layers.0.experts.1.up", Kind.EXPERT, 1, 32)
    values = np.full((1, 32), 2e6, np.float32)
    with pytest.raises(QuantizeError, match=r"layers\.0\.experts\.1\.up: .*fp16 ends at 65504"):
        quantize_tensor(spec, values, Format.W4, 32)


def test_a_value_beyond_f16_is_refused_by_name() -> None:
    spec = TensorSpec("embedding", Kind.EMBEDDING, 1, 32)
    with pytest.raises(QuantizeError, match="embedding: the value 70000 does not fit f16"):
        quantize_tensor(spec, np.full((1, 32), 7e4, np.float32), Format.F16, 32)


def test_the_largest_scale_that_fits_is_kept() -> None:
    quantized = quantize_w4(np.full((1, 32), 65504 * 15, np.float32), 32)
    assert quantized.scales[0, 0] == np.float16(65504)
    assert dequantize_matrix(quantized, 32)[0, 0] == 65504 * 15


def test_shrink_narrows_the_range_and_clips() -> None:
    matrix = np.linspace(-1, 1, 32, dtype=np.float32)[None]
    quantized = quantize_w4(matrix, 32, np.asarray([[0.5]], np.float32))
    values = dequantize_matrix(quantized, 32)
    assert values.min() >= -0.6
    assert values.max() <= 0.6
    assert quantized.scales[0, 0] == np.float16(1 / 15)


@pytest.mark.parametrize("fmt", list(Format))
@pytest.mark.parametrize("shape", [(1, 32), (9, 172), (16, 256)])
def test_stored_bytes_are_what_the_packer_writes(fmt: Format, shape: tuple[int, int]) -> None:
    """The table's sizes would otherwise disagree with the folder's."""
    kind = Kind.EXPERT if fmt in (Format.W4, Format.W8) else Kind.EMBEDDING
    tensor = quantize_tensor(TensorSpec("t", kind, *shape), weights(*shape), fmt, 64)
    if tensor.scales is None:
        size = tensor.codes.nbytes
    else:
        pack = p8.w4_codes_to_bytes if fmt is Format.W4 else p8.w8_codes_to_bytes
        size = -(-len(pack(tensor.codes)) // 64) * 64 + len(p8.scales_to_bytes(tensor.scales, tensor.zeros))
    assert stored_bytes(tensor.spec, tensor.format, 64) == size


def test_norms_keep_their_values_and_their_shape() -> None:
    spec = TensorSpec("final_norm", Kind.NORM, 1, 33)
    values = weights(1, 33)[0]
    restored = dequantize_tensor(quantize_tensor(spec, values, Format.F32, 128), 128)
    assert np.array_equal(restored, values)
