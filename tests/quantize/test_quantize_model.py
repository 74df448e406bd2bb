"""quantize_model: formats, report, progress, and one clear line for each bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_models import model_digest, small_model, token_sequences

from colibri_build.artifacts import Format, Kind
from colibri_build.errors import QuantizeError
from colibri_build.quantize import QuantizeOptions, calibration_from_text, quantize_model
from colibri_build.quantize.kl import compare_models, dequantized
from colibri_build.quantize.policy import choose_formats
from colibri_build.tensor_specs import tensor_specs


def rtn(**changes: Any) -> QuantizeOptions:
    return QuantizeOptions(**{"method": "rtn", "group_size": 32, **changes})


def test_every_tensor_is_there_in_its_kinds_format() -> None:
    model = small_model()
    quantized, report = quantize_model(model, rtn())
    assert list(quantized.tensors) == [spec.name for spec in tensor_specs(model.config)]
    for name, tensor in quantized.tensors.items():
        assert tensor.format is quantized.formats[tensor.spec.kind], name
        assert tensor.codes.shape == (tensor.spec.rows, tensor.spec.cols)
    assert {row.kind: row.tensors for row in report.kinds} == {
        Kind.EMBEDDING: 1,
        Kind.ATTENTION: 8,
        Kind.EXPERT: 24,
        Kind.ROUTER: 2,
        Kind.NORM: 5,
        Kind.LM_HEAD: 1,
    }


def test_the_report_measures_what_is_stored() -> None:
    model = small_model()
    quantized, report = quantize_model(model, rtn())
    stored = dequantized(quantized)
    for row in report.kinds:
        names = [spec.name for spec in tensor_specs(model.config) if spec.kind is row.kind]
        wanted = np.concatenate([model.tensors[name].ravel() for name in names]).astype(np.float64)
        error = np.concatenate([stored[name].ravel() for name in names]) - wanted
        assert row.weights == len(wanted)
        assert math.isclose(row.relative_rms_error, np.linalg.norm(error) / np.linalg.norm(wanted), abs_tol=1e-12)
        assert row.max_abs_error == np.abs(error).max()


def test_more_bits_and_smaller_groups_are_nearer_to_the_original() -> None:
    model = small_model(dim=128, hidden_dim=160, n_layers=1)
    held_out = token_sequences(model.config, 6, 16, seed=3)

    def kl(**changes: Any) -> float:
        return compare_models(model, quantize_model(model, rtn(**changes))[0], held_out).mean_kl

    assert kl(bits=8) < 0.1 * kl(bits=4)
    assert kl(group_size=32) < kl(group_size=128)


@pytest.mark.parametrize("method", ["rtn", "awq"])
def test_progress_counts_to_its_total(method: str) -> None:
    model = small_model()
    ids = token_sequences(model.config, 4, 16)
    calls: list[tuple[str, int, int]] = []
    quantize_model(model, rtn(method=method, calibration_ids=ids), lambda *call: calls.append(call))
    assert [done for _, done, _ in calls] == list(range(1, calls[0][2] + 1))
    assert {total for _, _, total in calls} == {calls[0][2]}


def test_the_same_input_gives_the_same_bytes_and_provenance() -> None:
    model = small_model()
    options = QuantizeOptions(group_size=32, calibration_ids=token_sequences(model.config, 4, 16))
    first, second = (quantize_model(model, options)[0] for _ in range(2))
    assert model_digest(first) == model_digest(second)
    assert first.provenance == second.provenance
    assert first.provenance["source_digest"] == model.digest


def test_provenance_names_the_calibration_text() -> None:
    model = small_model()
    digests = set()
    for seed in (1, 2):
        ids = token_sequences(model.config, 4, 16, seed=seed)
        quantized, _ = quantize_model(model, QuantizeOptions(group_size=32, calibration_ids=ids))
        digests.add(quantized.provenance["calibration_sha256"])
    assert len(digests) == 2


def test_tied_embeddings_share_one_format() -> None:
    assert choose_formats(4, {Kind.LM_HEAD: Format.F16}, tied_embeddings=True)[Kind.EMBEDDING] is Format.F16
    quantized, _ = quantize_model(small_model(tied_embeddings=True), rtn(formats={Kind.EMBEDDING: Format.F16}))
    assert quantized.formats[Kind.LM_HEAD] is Format.F16
    assert "lm_head" not in quantized.tensors


def test_tied_embeddings_cannot_have_two_formats() -> None:
    with pytest.raises(QuantizeError, match="embedding is w8 and lm_head is f16, but this model ties them"):
        choose_formats(4, {Kind.EMBEDDING: Format.W8, Kind.LM_HEAD: Format.F16}, tied_embeddings=True)


@pytest.mark.parametrize(
    "options, message",
    [
        (rtn(group_size=48), r"group size 48 is unknown; try: choose one of 32, 64, 128"),
        (rtn(bits=3), r"bits 3 is unknown; try: choose one of 4, 8"),
        (rtn(method="gptq"), r"method 'gptq' is unknown; try: choose one of rtn, awq"),
        (rtn(formats={Kind.ROUTER: Format.W4}), r"format w4 is not implemented for router tensors; .* f32"),
        (rtn(formats={Kind.EMBEDDING: Format.W4}), r"embedding tensors; try: embedding may be w8 or f16"),
        (QuantizeOptions(), r"method awq needs calibration text, and there is none; try: --calibration FILE"),
        (QuantizeOptions(calibration_ids=[[], []]), r"there is none"),
        (QuantizeOptions(calibration_ids=[[1], [2, 61]]), r"sequence 1 has token 61 at position 1, .* of 61"),
        (QuantizeOptions(calibration_ids=[[-1]]), r"sequence 0 has token -1 at position 0"),
        (QuantizeOptions(calibration_ids=[[1] * 33]), r"sequence 0 has 33 tokens, above the model's context of 32"),
        (QuantizeOptions(calibration_ids=[[1]], min_expert_tokens=0), r"min_expert_tokens 0 is below 1"),
    ],
)
def test_a_choice_that_cannot_be_carried_out_is_one_clear_line(options: QuantizeOptions, message: str) -> None:
    with pytest.raises(QuantizeError, match=message) as caught:
        quantize_model(small_model(), options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad, word", [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_weight_that_is_not_finite_is_refused_by_name_and_place(bad: float, word: str) -> None:
    model = small_model()
    values = model.tensors["layers.1.experts.3.down"].copy()
    values[2, 5] = bad
    broken = replace(model, tensors=dict(model.tensors) | {"layers.1.experts.3.down": values})
    with pytest.raises(QuantizeError, match=rf"layers\.1\.experts\.3\.down holds {word} at \[2, 5\]"):
        quantize_model(broken, rtn())


def test_a_missing_or_misshapen_tensor_is_refused_by_name() -> None:
    model = small_model()
    tensors = dict(model.tensors)
    del tensors["layers.0.k"]
    with pytest.raises(QuantizeError, match=r"layers\.0\.k is missing from small"):
        quantize_model(replace(model, tensors=tensors), rtn())
    tensors = dict(model.tensors) | {"layers.0.k": model.tensors["layers.0.q"]}
    with pytest.raises(QuantizeError, match=r"layers\.0\.k has shape \(48, 48\), the configuration says \(24, 48\)"):
        quantize_model(replace(model, tensors=tensors), rtn())


@pytest.mark.filterwarnings("error")
def test_weights_that_overflow_the_calibration_are_refused_by_layer() -> None:
    model = small_model()
    values = np.full_like(model.tensors["layers.1.q"], 1e38)
    broken = replace(model, tensors=dict(model.tensors) | {"layers.1.q": values})
    options = QuantizeOptions(group_size=32, calibration_ids=token_sequences(model.config, 4, 16))
    with pytest.raises(QuantizeError, match=r"layers\.1: the calibration text drives the activations beyond float32"):
        quantize_model(broken, options)


def test_calibration_text_becomes_one_sequence_a_paragraph() -> None:
    text = 'turn it on\n{"on":1}\r\n\r\nab\n \n\n\nlonger than six\n'
    got = calibration_from_text(text, lambda part: [ord(c) for c in part], 18)
    assert ["".join(map(chr, ids)) for ids in got] == ['turn it on\n{"on":1', "}", "ab", "longer than six"]
