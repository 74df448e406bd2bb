"""A quantized checkpoint that is damaged, or packed in a way that we do not know, is refused in one line that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri_build.checkpoint.folder import open_folder
from colibri_build.checkpoint.reader import read_checkpoint, read_model_config
from colibri_build.errors import CheckpointError
from support.packed_checkpoint import Format, Packed, i32, quantization_section, write_packed_checkpoint
from support.safetensors_file import Entry, entry
from support.tiny_checkpoint import tiny_config, write_json, write_tiny_checkpoint

Entries = dict[str, Entry]
Q = "model.layers.0.self_attn.q_proj"
AWQ, GPTQ, CT = Format("awq"), Format("gptq"), Format("compressed-tensors")

# name -> (format, keys of quantization_config, what the message says behind "config.json: ")
REFUSED_CONFIGS: dict[str, tuple[Format, dict[str, Any], str]] = {
    "unknown method": (AWQ, {"quant_method": "aqlm"}, '"quantization_config" (quant_method "aqlm") is not supported'),
    "method that is no name": (
        AWQ,
        {"quant_method": ["awq"]},
        '"quantization_config" (quant_method "[\'awq\']") is not',
    ),
    "gptq of two formats": (GPTQ, {"format": "gptq_v2"}, 'quantization_config: "format" = "gptq_v2" is not supported'),
    "no method": (AWQ, {"quant_method": None}, '"quantization_config" (quant_method "None") is not supported'),
    "awq gemv": (AWQ, {"version": "gemv"}, 'quantization_config: "version" = "gemv" is not supported'),
    "awq marlin": (AWQ, {"format": "marlin"}, 'quantization_config: "format" = "marlin" is not supported'),
    "awq llm-awq": (AWQ, {"backend": "llm-awq"}, 'quantization_config: "backend" = "llm-awq" is not supported'),
    "awq 3 bits": (AWQ, {"bits": 3}, 'quantization_config: "bits" = 3 is not supported'),
    "awq without bits": (AWQ, {"bits": None}, 'quantization_config: "bits" is null'),
    "awq without zero points": (AWQ, {"zero_point": False}, 'quantization_config: "zero_point" = false is not'),
    "awq group size 0": (AWQ, {"group_size": 0}, 'quantization_config: "group_size" = 0 is not supported'),
    "awq unknown key": (AWQ, {"smoothing": 2}, 'quantization_config: unknown key "smoothing" = 2 may change'),
    "gptq 3 bits": (GPTQ, {"bits": 3}, 'quantization_config: "bits" = 3 is not supported'),
    "gptq marlin": (
        GPTQ,
        {"checkpoint_format": "marlin"},
        'quantization_config: "checkpoint_format" = "marlin" is not',
    ),
    "gptq for marlin": (GPTQ, {"is_marlin_format": True}, 'quantization_config: "is_marlin_format" = true is not'),
    "gptq in bytes": (GPTQ, {"pack_dtype": "int8"}, 'quantization_config: "pack_dtype" = "int8" is not supported'),
    "gptq mixed": (
        GPTQ,
        {"dynamic": {"+:.*q_proj": {"bits": 8}}},
        "quantization_config: \"dynamic\" gives '+:.*q_proj'",
    ),
    "gptq dynamic list": (GPTQ, {"dynamic": [1]}, 'quantization_config: "dynamic" = [1] is not supported'),
    "gptq rotated": (GPTQ, {"rotation": "hadamard"}, 'quantization_config: "rotation" = "hadamard" is not supported'),
    "other format": (CT, {"format": "float-quantized"}, 'quantization_config: "format" = "float-quantized" is not'),
    "no format": (CT, {"format": None}, 'quantization_config: "format" = null is not supported'),
    "key-value cache": (CT, {"kv_cache_scheme": {"num_bits": 8}}, 'quantization_config: "kv_cache_scheme" = '),
    "sparse": (CT, {"sparsity_config": {"format": "sparse-24"}}, 'quantization_config: "sparsity_config" = '),
    "rotated": (CT, {"transform_config": {"config_groups": {"u": 1}}}, 'quantization_config: "transform_config" = '),
    "no groups": (CT, {"config_groups": {}}, 'quantization_config: "config_groups" = {} is not supported'),
    "status": (CT, {"quantization_status": "frozen"}, 'quantization_config: "quantization_status" = "frozen" is not'),
}
# name -> (path of a key below config_groups.group_0, its value, what the message says)
REFUSED_SCHEMES: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "no weights": (("weights",), None, 'group_0: "weights" is missing'),
    "activations": (("input_activations",), {"num_bits": 8}, 'group_0: "input_activations" = {"num_bits": 8} is not'),
    "preset": ((), ["Linear"], 'group_0: "weights" is missing'),
    "unknown key": (("order",), 1, 'group_0: unknown key "order" = 1'),
    "3 bits": (("weights", "num_bits"), 3, 'group_0: weights: "num_bits" = 3 is not supported'),
    "floats": (("weights", "type"), "float", 'group_0: weights: "type" = "float" is not supported'),
    "blocks": (("weights", "strategy"), "block", 'group_0: weights: "strategy" = "block" is not supported'),
    "dynamic": (("weights", "dynamic"), True, 'group_0: weights: "dynamic" = true is not supported'),
    "key of weights": (("weights", "rounding"), 1, 'group_0: weights: unknown key "rounding" = 1'),
}


def _refused_config(folder: Path, section: dict[str, Any]) -> str:
    write_json(folder / "config.json", tiny_config(quantization_config=section))
    with pytest.raises(CheckpointError) as caught:
        read_model_config(open_folder(folder))
    assert "\n" not in str(caught.value) and caught.value.hint
    return caught.value.what


@pytest.mark.parametrize("name", REFUSED_CONFIGS)
def test_a_quantization_that_we_do_not_know_is_refused_by_its_key(tmp_path: Path, name: str) -> None:
    how, change, message = REFUSED_CONFIGS[name]
    what = _refused_config(tmp_path, quantization_section(how) | change)
    assert what.startswith(f"{tmp_path / 'config.json'}: {message}"), what


@pytest.mark.parametrize("name", REFUSED_SCHEMES)
def test_a_scheme_that_we_do_not_know_is_refused_by_its_key(tmp_path: Path, name: str) -> None:
    path, value, message = REFUSED_SCHEMES[name]
    section = quantization_section(CT)
    place, key = section["config_groups"], "group_0"
    for step in path:
        place, key = place[key], step
    place[key] = value
    what = _refused_config(tmp_path, section)
    assert what.startswith(f"{tmp_path / 'config.json'}: quantization_config: config_groups: {message}"), what


def _without(*names: str) -> Callable[[Entries], None]:
    def edit(entries: Entries) -> None:
        for name in names:
            del entries[name]

    return edit


def _replaced(name: str, new: Entry) -> Callable[[Entries], None]:
    return lambda entries: entries.update({name: new})


def _renamed(old: str, new: str) -> Callable[[Entries], None]:
    return lambda entries: entries.update({new: entries.pop(old)})


def _zeros(dtype: str, *shape: int) -> Entry:
    size = {"I32": 4, "I64": 8, "I8": 1, "F16": 2}[dtype]
    return dtype, shape, bytes(int(np.prod(shape)) * size)


# name -> (format, what is done to the tensors of the file, what the message says)
DAMAGED: dict[str, tuple[Format, Callable[[Entries], None], str]] = {
    "codes missing": (
        AWQ,
        _without(f"{Q}.qweight"),
        f"tensor {Q}.qweight is missing; of {Q} there is only qzeros, scales",
    ),
    "zeros missing": (GPTQ, _without(f"{Q}.qzeros"), f"tensor {Q}.qzeros is missing"),
    "scales missing": (CT, _without(f"{Q}.weight_scale"), f"tensor {Q}.weight_scale is missing"),
    "shape missing": (CT, _without(f"{Q}.weight_shape"), f"tensor {Q}.weight_shape is missing"),
    "all missing": (
        AWQ,
        _without(f"{Q}.qweight", f"{Q}.qzeros", f"{Q}.scales"),
        f"1 of 41 tensors are missing; the first: {Q}.weight [64, 64]",
    ),
    "module renamed": (GPTQ, _renamed(f"{Q}.qweight", f"{Q}x.qweight"), f"tensor {Q}.qweight is missing"),
    "part renamed": (AWQ, _renamed(f"{Q}.scales", f"{Q}.scale"), f"tensor {Q}.scales is missing"),
    "plain too": (
        AWQ,
        _replaced(f"{Q}.weight", entry(np.ones((64, 64)), "F16")),
        f"tensor {Q} is there as {Q}.weight and packed",
    ),
    "codes I64": (
        AWQ,
        _replaced(f"{Q}.qweight", _zeros("I64", 64, 8)),
        f"{Q}.qweight has dtype I64, packed codes are I32",
    ),
    "zeros I8": (CT, _replaced(f"{Q}.weight_zero_point", _zeros("I8", 64, 2)), f"{Q}.weight_zero_point has dtype I8"),
    "scales I32": (AWQ, _replaced(f"{Q}.scales", _zeros("I32", 2, 64)), f"{Q}.scales has dtype I32, scales are F32"),
    "transposed": (
        AWQ,
        _replaced(f"{Q}.qweight", _zeros("I32", 8, 64)),
        f"{Q}.qweight has 8 inputs, no multiple of the group size 32",
    ),
    "nothing in it": (
        Format("gptq", group_size=-1),
        _replaced(f"{Q}.qweight", _zeros("I32", 0, 64)),
        f"{Q}.qweight has shape [0, 64], its matrix asks for [*, *]",
    ),
    "other shape": (
        GPTQ,
        _replaced(f"{Q}.scales", entry(np.ones((4, 64)), "F16")),
        f"{Q}.scales has shape [4, 64], its matrix asks for [2, 64]",
    ),
    "stack": (
        CT,
        _replaced(f"{Q}.weight_packed", _zeros("I32", 1, 64, 8)),
        f"{Q}.weight_packed has shape [1, 64, 8], its matrix asks for [64, *]",
    ),
    "no such scheme": (
        CT,
        _replaced(f"{Q}.weight_scale", entry(np.ones((64, 3)), "F16")),
        f"{Q}.weight_packed has 8 words for 64 inputs and 3 groups with zero points, which is none of config_groups",
    ),
    "zero points of a symmetric scheme": (
        Format("compressed-tensors", symmetric=True),
        _replaced(f"{Q}.weight_zero_point", _zeros("I32", 8, 2)),
        f"{Q}.weight_packed has 8 words for 64 inputs and 2 groups with zero points",
    ),
    "shape of three": (CT, _replaced(f"{Q}.weight_shape", _zeros("I64", 3)), f"{Q}.weight_shape is I64 [3]"),
    "empty shape": (CT, _replaced(f"{Q}.weight_shape", _zeros("I64", 2)), f"{Q}.weight_shape says 0 x 0"),
    "NaN": (
        AWQ,
        _replaced(f"{Q}.scales", entry(np.where(np.arange(128) == 69, np.nan, 1).reshape(2, 64), "F16")),
        f"tensor {Q}.weight holds 32 values that are NaN or infinite; the first at [5, 32]",
    ),
    "group beyond": (
        GPTQ,
        _replaced(f"{Q}.g_idx", i32(np.arange(64) // 16)),
        f"{Q}.g_idx names groups 0..3, there are 2",
    ),
    "group numbers of another size": (GPTQ, _replaced(f"{Q}.g_idx", i32(np.zeros(32))), f"{Q}.g_idx has shape [32]"),
    "bias": (
        GPTQ,
        _replaced(f"{Q}.bias", entry(np.full(64, 0.5), "F16")),
        f"1 tensors that config.json has no use for; the first: {Q}.bias [64]",
    ),
    "nothing packed": (
        AWQ,
        lambda entries: [entries.pop(name) for name in list(entries) if ".q" in name or "scales" in name] and None,
        'no tensor is packed (there is no .qweight), but config.json has a "quantization_config"',
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_parts_are_named(tmp_path: Path, name: str) -> None:
    how, edit, message = DAMAGED[name]
    write_packed_checkpoint(tmp_path, how, edit=edit)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(tmp_path)
    assert message in caught.value.what and "\n" not in str(caught.value) and caught.value.hint, caught.value.what


def test_a_matrix_of_another_shape_contradicts_the_configuration(tmp_path: Path) -> None:
    write_packed_checkpoint(tmp_path, AWQ)
    write_json(
        tmp_path / "config.json", tiny_config(quantization_config=quantization_section(AWQ), num_key_value_heads=4)
    )
    with pytest.raises(CheckpointError, match=r"k_proj\.weight has shape \[32, 64\], config.json asks for \[64, 64\]"):
        read_checkpoint(tmp_path)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    write_packed_checkpoint(tmp_path, AWQ)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(CheckpointError, match=r"model\.safetensors: truncated"):
        read_checkpoint(tmp_path)


def test_packed_tensors_need_their_configuration(tmp_path: Path) -> None:
    """Older programs write quantize_config.json beside config.json, which then says nothing."""
    write_packed_checkpoint(tmp_path, GPTQ, quantization_config=...)
    with pytest.raises(CheckpointError, match=r'qweight is packed, but config\.json has no "quantization_config"'):
        read_checkpoint(tmp_path)


def test_a_configuration_needs_packed_tensors(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path, quantization_config=quantization_section(GPTQ))
    with pytest.raises(CheckpointError, match="no tensor is packed"):
        read_checkpoint(tmp_path)


def test_a_zero_point_that_programs_read_differently_is_refused(tmp_path: Path) -> None:
    """GPTQ stores zero - 1. All ones is 16 to some programs, 0 to others, and spoils the next output's for a third kind."""

    def edit(module: str, matrix: Packed) -> None:
        if module == Q:
            matrix.zeros[3, 1] = 16

    write_packed_checkpoint(tmp_path, GPTQ, edit_matrix=edit)
    with pytest.raises(CheckpointError, match=rf"{Q}\.qzeros holds a zero point of 15 \+ 1") as caught:
        read_checkpoint(tmp_path)
    assert "gptq_v2" in str(caught.value.hint)
