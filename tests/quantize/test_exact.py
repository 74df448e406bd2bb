"""The products that make a quantization the same on every machine."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from small_models import small_config
from threadpoolctl import threadpool_info, threadpool_limits

from colibri_build.quantize.exact import blas_threads_for, matmul_nt, tree_sum


@pytest.mark.parametrize("inner", [1, 2, 31, 128, 1408])
def test_products_are_those_of_float64(inner: int) -> None:
    generator = np.random.default_rng(inner)
    x = generator.standard_normal((5, inner)).astype(np.float32)
    w = generator.standard_normal((7, inner)).astype(np.float32)
    wanted = x.astype(np.float64) @ w.T.astype(np.float64)
    assert np.abs(matmul_nt(x, w) - wanted).max() <= 2.0**-18 * np.sqrt(inner)


def test_the_order_of_summation_cannot_change_a_bit() -> None:
    """This is what a BLAS, its threads and its vector width change; ordinary products fail here."""
    generator = np.random.default_rng(3)
    x = generator.standard_normal((6, 500)).astype(np.float32)
    w = generator.standard_normal((9, 500)).astype(np.float32)
    wanted = matmul_nt(x, w)
    plain_changed = False
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(500)
        assert np.array_equal(matmul_nt(x[:, order], w[:, order]), wanted)
        plain_changed |= not np.array_equal(x[:, order] @ w[:, order].T, x @ w.T)
    assert plain_changed


def test_the_threads_of_the_blas_cannot_change_a_bit() -> None:
    generator = np.random.default_rng(6)
    x = generator.standard_normal((257, 700)).astype(np.float32)
    w = generator.standard_normal((300, 700)).astype(np.float32)
    with threadpool_limits(1):
        wanted = matmul_nt(x, w)
    with threadpool_limits(4):
        assert np.array_equal(matmul_nt(x, w), wanted)


@pytest.mark.parametrize("dim, limited", [(128, True), (2048, False)])
def test_only_small_models_are_kept_to_one_thread(dim: int, limited: bool) -> None:
    with threadpool_limits(2), blas_threads_for(small_config(dim=dim)):
        assert [pool["num_threads"] for pool in threadpool_info()] == [1 if limited else 2]


def test_integers_are_multiplied_exactly() -> None:
    generator = np.random.default_rng(4)
    x = generator.integers(-(2**20), 2**20, (3, 64)).astype(np.float32)
    w = generator.integers(-(2**20), 2**20, (2, 64)).astype(np.float32)
    wanted = [[sum(int(a) * int(b) for a, b in zip(r, c, strict=True)) for c in w.tolist()] for r in x.tolist()]
    assert matmul_nt(x, w).tolist() == wanted


def test_rows_of_zeros_and_tiny_or_huge_values_are_fine() -> None:
    x = np.asarray([[0, 0], [1e-38, 2e-38], [3e38, 1e38]], np.float32)
    got = matmul_nt(x, np.asarray([[1, 1]], np.float32))[:, 0]
    assert got[0] == 0
    assert got[1:] == pytest.approx([3e-38, 4e38], rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000])
def test_tree_sum_is_the_sum(n: int) -> None:
    values = np.random.default_rng(n).standard_normal((n, 3))
    got = tree_sum(values, axis=0)
    for column in range(3):
        wanted = float(sum(Fraction(v) for v in values[:, column].tolist()))
        assert math.isclose(got[column], wanted, rel_tol=1e-12, abs_tol=1e-12)


def test_tree_sum_of_nothing_is_zero() -> None:
    assert tree_sum(np.zeros((0, 4)), axis=0).tolist() == [0.0] * 4
