"""The searches judge by a float forward pass: it must know every feature of every family, or AWQ optimises another model."""

from __future__ import annotations

import numpy as np
import pytest

from colibri_build.artifacts import Model
from colibri_build.quantize.engine import quantize_model
from colibri_build.quantize.float_forward import forward
from colibri_build.quantize.kl import compare_logits, dequantized
from colibri_build.quantize.options import QuantizeOptions
from colibri_build.reference.model import ReferenceModel
from colibri_build.reference.model import forward as reference_forward
from support.features import FEATURES, feature_model

TEXT = [5, 17, 200, 45, 9, 211, 77, 104, 3, 250]
KL_LIMIT = 1e-5


@pytest.mark.parametrize("name", FEATURES)
def test_the_float_forward_pass_is_the_references_model(name: str) -> None:
    """The reference, which tests/oracle compares with transformers, differs from it by its activation codes alone."""
    model = feature_model(name)
    got = forward(model.config, dequantized(model), [TEXT])
    wanted, _ = reference_forward(ReferenceModel(model), TEXT)
    assert compare_logits(wanted, got).max_kl <= KL_LIMIT


@pytest.mark.parametrize("name", FEATURES)
def test_folded_scales_change_nothing_but_the_rounding(name: str) -> None:
    """AWQ moves scales between tensors: in 8 bits, where rounding is small, the model must stay the same one."""
    model = feature_model(name)
    original = Model(model.config, dequantized(model), model.tokenizer, "random", "0" * 64)
    calibration = [[(7 * i + 3 * j) % 299 for i in range(16)] for j in range(6)]
    options = QuantizeOptions(method="awq", bits=8, group_size=32, calibration_ids=calibration, min_expert_tokens=1)
    quantized, report = quantize_model(original, options)
    wanted = forward(model.config, original.tensors, [TEXT])
    got = forward(model.config, dequantized(quantized), [TEXT])
    assert any(gain.ratio > 0 for gain in report.gains), "no scale was folded: this proves nothing"
    assert float(np.median(np.abs(wanted - got))) < 0.05 * float(wanted.std())
