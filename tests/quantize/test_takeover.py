"""Codes of a quantized checkpoint are stored as they are: not one value changes, and what is rounded anew is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from small_models import small_model

from colibri_build.artifacts import F32, Format, GroupCodes, Kind, Model, PackedTensor, QuantizedModel, TensorSpec
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.cli_view import quantize_table
from colibri_build.errors import QuantizeError
from colibri_build.quantize import QuantizeOptions, QuantizeReport, quantize_model
from colibri_build.quantize.rtn import dequantize_tensor
from colibri_build.quantize.takeover import default_group_size, take_over
from colibri_build.reference.model import ReferenceModel
from colibri_build.tensor_specs import tensor_specs
from support import packed_checkpoint
from support.gguf_file import write_tiny_gguf
from support.packed_checkpoint import Packed, write_packed_checkpoint

Edit = Callable[[str, Packed], None]


def _model(folder: Path, edit_matrix: Edit | None = None, **how: Any) -> Model:
    overrides: dict[str, Any] = how.pop("config", {})
    chosen = packed_checkpoint.Format(**{"method": "awq", **how})
    write_packed_checkpoint(folder, chosen, edit_matrix=edit_matrix, **overrides)
    return read_checkpoint(folder)


def _quantized(model: Model, **options: object) -> tuple[QuantizedModel, QuantizeReport]:
    chosen = {"method": "rtn", "group_size": default_group_size(model), **options}
    return quantize_model(model, QuantizeOptions(**chosen))  # type: ignore[arg-type]


def _bits(values: F32) -> np.ndarray:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def _check_exact(model: Model, quantized: QuantizedModel, *kinds: Kind) -> None:
    """Every bit of every value of these kinds."""
    names = [spec.name for spec in tensor_specs(model.config) if spec.kind in kinds]
    assert names
    for name in names:
        stored = dequantize_tensor(quantized.tensors[name], quantized.group_size)
        np.testing.assert_array_equal(_bits(stored), _bits(model.tensors[name]), err_msg=name)


def test_a_checkpoint_in_4_bits_is_stored_bit_for_bit(tmp_path: Path) -> None:
    """Without any option: the checkpoint's own group size, and w4 for all that it holds in 4 bits."""
    model = _model(tmp_path)
    quantized, report = _quantized(model)
    assert quantized.group_size == 32
    assert quantized.formats[Kind.EXPERT] is Format.W4 and quantized.formats[Kind.ATTENTION] is Format.W4
    assert quantized.formats[Kind.LM_HEAD] is Format.W8
    _check_exact(model, quantized, Kind.EXPERT, Kind.ATTENTION)
    errors = {row.kind: row for row in report.kinds}
    assert errors[Kind.EXPERT].max_abs_error == errors[Kind.ATTENTION].max_abs_error == 0
    assert errors[Kind.EXPERT].weights == 2 * 4 * 3 * 64 * 96
    assert [(row.kind, row.taken, row.requantized) for row in report.taken_over] == [
        (Kind.ATTENTION, 8, {}),
        (Kind.EXPERT, 24, {}),
    ]


@pytest.mark.parametrize(
    "how", [{}, {"method": "gptq"}, {"method": "gptq_v2", "bits": 8}, {"method": "compressed-tensors", "bits": 8}]
)
def test_w8_holds_codes_of_both_widths(tmp_path: Path, how: dict[str, object]) -> None:
    model = _model(tmp_path, **how)
    quantized, _ = _quantized(model, bits=8)
    assert quantized.formats[Kind.EXPERT] is Format.W8
    _check_exact(model, quantized, Kind.EXPERT, Kind.ATTENTION)


@pytest.mark.parametrize("own, chosen", [(64, 32), (96, 32), (-1, 128), (-1, 32)])
def test_a_group_is_split_into_groups_with_the_same_scale(tmp_path: Path, own: int, chosen: int) -> None:
    """A source group may hold several of ours, also where the row is no multiple of them."""
    model = _model(tmp_path, method="gptq", group_size=own, config={"intermediate_size": 192})
    quantized, report = _quantized(model, group_size=chosen)
    _check_exact(model, quantized, Kind.EXPERT, Kind.ATTENTION)
    assert all(not row.requantized for row in report.taken_over)


def test_the_reference_computes_what_the_checkpoint_says(tmp_path: Path) -> None:
    """Both formats hold the checkpoint's values, so their logits are the same to the last bit."""
    model = _model(tmp_path, method="gptq")
    in_4_bits, _ = _quantized(model)
    in_8_bits, _ = _quantized(model, bits=8)
    assert in_4_bits.formats != in_8_bits.formats
    answers = []
    for quantized in (in_4_bits, in_8_bits):
        reference = ReferenceModel(quantized)
        answers.append([reference.step(token).logits for token in (5, 17, 80)])
    dequantized = {name: dequantize_tensor(tensor, in_4_bits.group_size) for name, tensor in in_4_bits.tensors.items()}
    assert all(np.array_equal(dequantized[name], model.tensors[name]) for name in model.packed)
    np.testing.assert_array_equal(answers[0], answers[1])


def test_the_default_group_size_is_the_largest_that_divides_all(tmp_path: Path) -> None:
    assert default_group_size(small_model()) == 128
    for own, ours in ((32, 32), (64, 64), (96, 32), (-1, 128)):
        model = _model(tmp_path / str(own), method="gptq", group_size=own, config={"intermediate_size": 192})
        assert default_group_size(model) == ours


def test_a_group_of_ours_that_is_too_large_is_told(tmp_path: Path) -> None:
    quantized, report = _quantized(_model(tmp_path), group_size=64)
    assert quantized.formats[Kind.ATTENTION] is Format.W8
    assert [row.line() for row in report.taken_over] == [
        "0 of 8 packed attention tensors were taken over as they are; 8 requantized: groups of 32 are not groups of 64",
        "0 of 24 packed expert tensors were taken over as they are; 24 requantized: groups of 32 are not groups of 64",
    ]


def test_what_was_rounded_anew_is_told_with_its_reason(tmp_path: Path) -> None:
    """One matrix with a scale that fp16 cannot hold: it is rounded, the others are not, and the user learns why."""

    def edit(module: str, matrix: Packed) -> None:
        if module.endswith("layers.1.block_sparse_moe.experts.2.w1"):
            matrix.scales[0, 0] = np.float32(2.0**-30)

    model = _model(tmp_path, edit, method="compressed-tensors", symmetric=True, scale_dtype="BF16")
    quantized, report = _quantized(model)
    reason = "1 requantized: scales that fp16 cannot hold, as 9.31323e-10"
    line = f"23 of 24 packed expert tensors were taken over as they are; {reason}"
    assert report.taken_over[1].line() == line
    assert quantized.provenance["taken_over"][1] == line
    printed = [str(part) for part in quantize_table(report).renderables]
    assert f"{line}." in printed
    _check_exact(model, quantized, Kind.ATTENTION)


def test_8_bit_codes_do_not_become_4_bits_in_silence(tmp_path: Path) -> None:
    _, report = _quantized(_model(tmp_path, method="gptq", bits=8))
    lines = [row.line() for row in report.taken_over]
    assert lines[0] == "8 of 8 packed attention tensors were taken over as they are"
    assert re.search("24 requantized: 8-bit codes do not fit w4", lines[1])


def test_a_format_of_the_users_comes_first(tmp_path: Path) -> None:
    model = _model(tmp_path)
    quantized, _ = _quantized(model, formats={Kind.ATTENTION: Format.W8})
    assert quantized.formats[Kind.ATTENTION] is Format.W8 and quantized.formats[Kind.EXPERT] is Format.W4
    _check_exact(model, quantized, Kind.EXPERT, Kind.ATTENTION)


def test_a_kind_that_is_packed_in_part_keeps_the_policys_format(tmp_path: Path) -> None:
    """w4 for the rest of its tensors would lose what the checkpoint still has."""
    model = _model(tmp_path)
    packed = {name: tensor for name, tensor in model.packed.items() if name != "layers.1.o"}
    quantized, report = _quantized(replace(model, packed=packed))
    assert quantized.formats[Kind.ATTENTION] is Format.W8
    assert report.taken_over[0].line() == "7 of 7 packed attention tensors were taken over as they are"


def test_one_misfit_keeps_the_policys_format_for_its_kind(tmp_path: Path) -> None:
    """4 bits a second time would lose more than w8, which holds the other tensors' codes as well."""

    def edit(module: str, matrix: Packed) -> None:
        if module.endswith("layers.1.self_attn.v_proj"):
            matrix.scales[0, 0] = np.float32(2.0**-30)

    model = _model(tmp_path, edit, method="compressed-tensors", symmetric=True, scale_dtype="BF16")
    quantized, report = _quantized(model)
    assert quantized.formats[Kind.ATTENTION] is Format.W8 and quantized.formats[Kind.EXPERT] is Format.W4
    assert report.taken_over[0].taken == 7
    others = {
        name: tensor for name, tensor in quantized.tensors.items() if name in model.packed and name != "layers.1.v"
    }
    for name, tensor in others.items():
        np.testing.assert_array_equal(
            dequantize_tensor(tensor, quantized.group_size), model.tensors[name], err_msg=name
        )


def test_minima_that_are_no_zero_points_are_rounded_anew_as_plain_weights_are(tmp_path: Path) -> None:
    """Q4_1 of a converter: nothing can stay, so attention gets the policy's 8 bits, and AWQ may do its best."""
    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", kind=GGMLQuantizationType.Q4_1))
    quantized, report = _quantized(model)
    assert quantized.formats[Kind.ATTENTION] is Format.W8 and quantized.formats[Kind.EXPERT] is Format.W4
    assert [row.taken for row in report.taken_over] == [0] * len(report.taken_over)
    errors = {row.kind: row for row in report.kinds}
    assert 0 < errors[Kind.ATTENTION].relative_rms_error < 0.01
    _quantized(model, method="awq", calibration_ids=[[1, 2, 3]])


def test_act_order_is_rounded_anew_as_plain_weights_are(tmp_path: Path) -> None:
    """Its codes cannot stay, so w4 for attention would only lose, and AWQ may do its best."""
    model = _model(tmp_path, method="gptq", act_order=True)
    quantized, report = _quantized(model)
    assert quantized.group_size == 128
    assert quantized.formats[Kind.ATTENTION] is Format.W8 and quantized.formats[Kind.EXPERT] is Format.W4
    assert report.taken_over[0].line() == (
        "0 of 8 packed attention tensors were taken over as they are; "
        "8 requantized: groups are not runs of inputs (act-order)"
    )
    _quantized(model, method="awq", calibration_ids=[[1, 2, 3]])


def test_awq_is_refused_where_codes_are_to_stay(tmp_path: Path) -> None:
    with pytest.raises(QuantizeError) as caught:
        _quantized(_model(tmp_path), method="awq", calibration_ids=[[1, 2, 3]])
    assert "is quantized already (32 tensors): method awq would change its codes" in caught.value.what
    assert "--method rtn" in str(caught.value.hint)


def test_a_model_without_codes_says_nothing_of_them() -> None:
    quantized, report = quantize_model(small_model(), QuantizeOptions(method="rtn", group_size=32))
    assert report.taken_over == () and "taken_over" not in quantized.provenance


def test_scales_of_either_sign_and_zero_keep_their_bits() -> None:
    """GGUF files have negative scales; a product of zero and a negative scale is -0."""
    spec = TensorSpec("layers.0.q", Kind.ATTENTION, 2, 40)
    codes = np.tile(np.arange(16, dtype=np.uint8), 5).reshape(2, 40)
    own = GroupCodes(32, codes, np.array([[-0.5, 0.25], [0, -2]], np.float16), np.array([[0, 15], [3, 8]], np.uint8))
    values = (codes.astype(np.float32) - own.zeros[:, np.arange(40) // 32]) * own.scales[:, np.arange(40) // 32]
    for fmt in (Format.W4, Format.W8):
        tensor = take_over(spec, PackedTensor(4, 32, lambda: own, lambda: ""), fmt, 32)
        assert not isinstance(tensor, str)
        np.testing.assert_array_equal(_bits(dequantize_tensor(tensor, 32)), _bits(values))
