"""The measure that chooses the defaults, on distributions whose divergence is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from colibri_build.quantize.kl import compare_logits, teacher_forced_kl


def test_kl_of_two_coins() -> None:
    """KL(1/2, 1/2 || 1/4, 3/4) = ln(4/3) / 2."""
    kl = teacher_forced_kl(np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]]))
    assert kl[0] == pytest.approx(0.5 * math.log(4 / 3), rel=1e-12)


def test_adding_a_constant_to_the_logits_changes_nothing() -> None:
    logits = np.random.default_rng(0).standard_normal((4, 50)) * 300
    assert np.abs(teacher_forced_kl(logits, logits + 1000)).max() < 1e-10


def test_huge_logits_stay_finite() -> None:
    kl = teacher_forced_kl(np.asarray([[1e4, 0.0]], np.float32), np.asarray([[0.0, 1e4]], np.float32))
    assert kl[0] == pytest.approx(1e4)


def test_agreement_counts_the_positions_with_the_same_best_token() -> None:
    wanted = np.asarray([[1.0, 2, 3], [3, 2, 1], [5, 5, 1]])
    got = np.asarray([[1.0, 2, 4], [1, 2, 1], [5, 5, 1]])
    agreement = compare_logits(wanted, got)
    assert (agreement.tokens, agreement.top1_equal) == (3, 2)
    assert agreement.max_kl >= agreement.mean_kl > 0
