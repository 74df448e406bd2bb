"""Activation-aware quantization: what it must not change, what it must win, and whom it leaves out."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import model_digest, outlier_model, small_model, token_sequences

from colibri_build.artifacts import F32, Format, Kind, Model
from colibri_build.quantize import QuantizeOptions, quantize_model
from colibri_build.quantize.awq import LayerInput, LayerPlan, plan_layer
from colibri_build.quantize.float_forward import embed, forward, take_layer
from colibri_build.quantize.folded import FoldedWeights
from colibri_build.quantize.kl import compare_models
from colibri_build.quantize.policy import default_formats
from colibri_build.quantize.scale_search import candidate, channel_levels

GROUP = 32


def awq_options(model: Model, **changes: Any) -> QuantizeOptions:
    ids = token_sequences(model.config, 24, 16)
    return QuantizeOptions(**{"group_size": GROUP, "calibration_ids": ids, **changes})


def folded(model: Model, options: QuantizeOptions) -> tuple[dict[str, F32], list[LayerPlan]]:
    """The model's float weights with the scales that the search chose."""
    formats = default_formats(4) | {Kind.ATTENTION: Format.W4}
    sequences = options.calibration_ids
    x = embed(model.config, model.tensors["embedding"], sequences)
    tensors, plans = dict(model.tensors), []
    for index in range(model.config.n_layers):
        layer = take_layer(model.tensors, model.config, index)
        weights = FoldedWeights(layer, lambda name, layer=layer: layer[name].copy(), f"layers.{index}.")
        entrance = LayerInput(index, weights, x, [len(s) for s in sequences])
        x, plan = plan_layer(model.config, entrance, formats, options)
        tensors |= {f"layers.{index}.{name}": values for name, values in plan.weights.items()}
        plans.append(plan)
    return tensors, plans


SHARED = {"shared_hidden_dim": 24, "shared_gate": True}  # their up takes two scales


@pytest.mark.parametrize("changes", [{}, {"n_kv_heads": 1}, {"n_kv_heads": 4}, {"tied_embeddings": True}, SHARED])
def test_folding_does_not_change_the_function(changes: dict[str, Any]) -> None:
    """A scale folded into the wrong tensor, row or head would be a broken model."""
    model = outlier_model() if not changes else small_model(seed=7, **changes)
    tensors, plans = folded(model, awq_options(model))
    gains = [gain for plan in plans for gain in plan.gains]
    for target in ("attn_norm", ".v", "ffn_norm", ".up"):
        assert any(gain.ratio > 0 for gain in gains if gain.folded_into.endswith(target)), target
    held_out = token_sequences(model.config, 4, 16, seed=9)
    wanted = forward(model.config, model.tensors, held_out)
    got = forward(model.config, tensors, held_out)
    assert np.abs(got - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_awq_is_nearer_to_the_original_than_rtn_where_channels_stand_out() -> None:
    model = outlier_model()
    held_out = token_sequences(model.config, 8, 16, seed=9)
    formats = {Kind.ATTENTION: Format.W4}
    rtn, _ = quantize_model(model, QuantizeOptions(method="rtn", group_size=GROUP, formats=formats))
    awq, report = quantize_model(model, awq_options(model, formats=formats))
    kl_rtn = compare_models(model, rtn, held_out).mean_kl
    kl_awq = compare_models(model, awq, held_out).mean_kl
    assert kl_awq < 0.7 * kl_rtn
    assert all(gain.loss_final <= gain.loss_scaled * 1.001 for gain in report.gains)
    assert all(gain.loss_scaled <= gain.loss_rtn for gain in report.gains)


def silenced(model: Model, expert: int) -> Model:
    """The router of layer 1 never chooses `expert`: a loud constant channel serves it as a bias."""
    tensors = {name: values.copy() for name, values in model.tensors.items()}
    tensors["embedding"][:, 0] = 40
    for layer in range(model.config.n_layers):
        tensors[f"layers.{layer}.ffn_norm"][0] = 1
        tensors[f"layers.{layer}.router"][:, 0] = 0
    tensors["layers.1.router"][expert, 0] = -10
    return replace(model, tensors=tensors)


def test_an_expert_without_tokens_is_rounded_to_nearest_and_named() -> None:
    model = silenced(small_model(seed=8), expert=2)
    quantized, report = quantize_model(model, awq_options(model))
    assert report.expert_tokens[1][2] == 0
    assert [(f.expert, f.tokens, f.needed) for f in report.fallbacks] == [("layers.1.experts.2", 0, GROUP)]
    assert quantized.provenance["rtn_experts"] == ["layers.1.experts.2"]
    assert all(np.all(np.isfinite(t.scales)) for t in quantized.tensors.values() if t.scales is not None)
    down = quantized.tensors["layers.1.experts.2.down"]
    plain, _ = quantize_model(model, QuantizeOptions(method="rtn", group_size=GROUP))
    assert np.array_equal(down.codes, plain.tensors[down.spec.name].codes)


def test_the_threshold_can_be_set() -> None:
    model = small_model()
    _, report = quantize_model(model, awq_options(model, min_expert_tokens=10**6))
    assert len(report.fallbacks) == model.config.n_layers * model.config.n_experts


def test_every_token_is_counted_for_top_k_experts() -> None:
    model = small_model()
    _, report = quantize_model(model, awq_options(model))
    assert report.calibration_tokens == 24 * 16
    assert [sum(layer) for layer in report.expert_tokens] == [24 * 16 * 2] * 2


def test_a_channel_that_is_always_zero_gets_a_finite_scale() -> None:
    levels = channel_levels(np.asarray([0.0, 1.0, 4.0, 0.0]))
    assert levels.tolist() == [0, 0, 128, 0]
    for index in range(20):
        scale = candidate(levels, index)
        assert np.all(np.isfinite(scale))
        assert np.all(scale > 0)


def test_channels_that_are_all_zero_are_not_scaled() -> None:
    assert candidate(channel_levels(np.zeros(5)), 19).tolist() == [1.0] * 5


def test_a_dead_norm_channel_gives_no_nan() -> None:
    model = small_model(seed=11)
    tensors = dict(model.tensors)
    for name in ("layers.0.attn_norm", "layers.0.ffn_norm"):
        dead = tensors[name].copy()
        dead[5] = 0
        tensors[name] = dead
    quantized, _ = quantize_model(replace(model, tensors=tensors), awq_options(model))
    for tensor in quantized.tensors.values():
        assert np.all(np.isfinite(tensor.codes.astype(np.float64)))
        assert tensor.scales is None or np.all(np.isfinite(tensor.scales))


def test_routing_survives_the_folded_scales() -> None:
    """The router is stored in f32 and takes the scale too; a forgotten one would send tokens to wrong experts."""
    model = outlier_model()
    quantized, _ = quantize_model(model, awq_options(model))
    changed = quantized.tensors["layers.0.router"].codes != model.tensors["layers.0.router"]
    assert changed.any()
    norm = quantized.tensors["layers.0.ffn_norm"].codes[0]
    effective = quantized.tensors["layers.0.router"].codes * norm
    wanted = model.tensors["layers.0.router"] * model.tensors["layers.0.ffn_norm"]
    assert np.allclose(effective, wanted, rtol=1e-6)


DIGEST_SCRIPT = """
from small_models import *
from colibri_build.quantize import QuantizeOptions, quantize_model
model = outlier_model()
ids = token_sequences(model.config, 16, 16)
print(model_digest(quantize_model(model, QuantizeOptions(group_size=32, calibration_ids=ids))[0]))
"""


@pytest.mark.parametrize("kernels", ["Prescott", "Haswell"])
def test_bytes_do_not_depend_on_the_kernels_of_the_blas(kernels: str) -> None:
    """Two machines that quantize one checkpoint must make one model folder."""
    model = outlier_model()
    ids = token_sequences(model.config, 16, 16)
    wanted = model_digest(quantize_model(model, QuantizeOptions(group_size=32, calibration_ids=ids))[0])
    here = str(Path(__file__).parent)
    paths = os.pathsep.join([here, *(path for path in sys.path if path)])
    run = subprocess.run(
        [sys.executable, "-c", DIGEST_SCRIPT],
        env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_CORETYPE": kernels},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == wanted
