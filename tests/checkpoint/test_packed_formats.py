"""A quantized checkpoint holds the values that its program computes with: every nibble in its place, no offset of one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from colibri_build.artifacts import GroupCodes, Model
from colibri_build.checkpoint import quantization_matrix
from colibri_build.checkpoint.reader import read_checkpoint
from support.packed_checkpoint import Format, Packed, Values, i32, pack, write_packed_checkpoint
from support.safetensors_file import entry

FORMATS = {
    "awq": Format("awq"),
    "awq, one scale a row": Format("awq", group_size=-1),
    "awq, groups of 16": Format("awq", group_size=16),
    "gptq": Format("gptq"),
    "gptq, one scale a row": Format("gptq", group_size=-1),
    "gptq, 8 bits": Format("gptq", bits=8),
    "gptq, a last group that is shorter": Format("gptq", group_size=64),
    "gptq in act-order": Format("gptq", act_order=True, symmetric=True),
    "gptq_v2": Format("gptq_v2"),
    "gptq_v2, 8 bits": Format("gptq_v2", bits=8),
    "compressed-tensors": Format("compressed-tensors", symmetric=True, scale_dtype="BF16"),
    "compressed-tensors with zero points": Format("compressed-tensors"),
    "compressed-tensors, 8 bits": Format("compressed-tensors", bits=8, symmetric=True),
    "compressed-tensors, 8 bits with zero points": Format("compressed-tensors", bits=8),
    "compressed-tensors, one scale a row": Format("compressed-tensors", group_size=-1, scale_dtype="F32"),
    "compressed-tensors in act-order": Format("compressed-tensors", act_order=True),
}
_PARTS = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj"}
_EXPERT = {"gate": "w1", "up": "w3", "down": "w2"}


def _published(name: str) -> str | None:
    """The published name of a layer's packed tensor."""
    _, layer, *rest = name.split(".")
    if rest[0] == "experts":
        return f"model.layers.{layer}.block_sparse_moe.experts.{rest[1]}.{_EXPERT[rest[2]]}.weight"
    return f"model.layers.{layer}.{_PARTS[rest[0]]}.weight" if rest[0] in _PARTS else None


def _packed_names(model: Model) -> list[tuple[str, str]]:
    names = [(name, _published(name)) for name in model.tensors if name.startswith("layers.")]
    return [(name, published) for name, published in names if published]


def _multiplied_out(codes: GroupCodes) -> np.ndarray:
    """The value of every code, in binary64."""
    group = np.arange(codes.codes.shape[1]) // codes.group_size
    values = codes.codes.astype(np.float64)
    if codes.zeros is not None:
        values = values - codes.zeros[:, group]
    return values * codes.scales.astype(np.float64)[:, group]


def _check(model: Model, values: Values) -> None:
    for name, published in _packed_names(model):
        np.testing.assert_array_equal(model.tensors[name], values[published], err_msg=name)
    np.testing.assert_array_equal(model.tensors["embedding"], values["model.embed_tokens.weight"])


@pytest.mark.parametrize("name", FORMATS)
def test_values_and_codes_are_those_that_the_layout_says(tmp_path: Path, name: str) -> None:
    """Every value; and codes, where ours can be the same values."""
    how = FORMATS[name]
    values = write_packed_checkpoint(tmp_path, how)
    model = read_checkpoint(tmp_path)
    _check(model, values)
    names = _packed_names(model)
    assert len(names) == 2 * (4 + 4 * 3) and {our for our, _ in names} == set(model.packed)
    for our, published in names:
        packed = model.packed[our]
        assert packed.bits == how.bits
        codes = packed.load()
        if "act-order" in name or "groups of 16" in name:
            assert codes is None
            continue
        assert codes is not None, packed.misfit()
        assert codes.group_size == packed.group_size
        np.testing.assert_array_equal(_multiplied_out(codes), values[published])
        assert (codes.zeros is None) == (how.bits == 8)
        assert codes.codes.dtype == (np.uint8 if how.bits == 4 else np.int8)


def test_pieces_of_a_large_matrix_are_in_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger matrices than these are unpacked in pieces, so that memory does not hold them twice."""
    monkeypatch.setattr(quantization_matrix, "_PIECE", 200)
    values = write_packed_checkpoint(tmp_path, FORMATS["awq"], n_shards=3)
    _check(read_checkpoint(tmp_path), values)


@pytest.mark.parametrize("name", ["awq", "gptq", "compressed-tensors with zero points"])
def test_rows_are_picked_without_the_others(tmp_path: Path, name: str) -> None:
    """Families that join projections pick rows of a stored matrix, in any order."""
    values = write_packed_checkpoint(tmp_path, FORMATS[name])
    stored, _ = read_checkpoint(tmp_path).tensors._parts["layers.0.q"]  # type: ignore[attr-defined]
    wanted = values["model.layers.0.self_attn.q_proj.weight"]
    for index in ((slice(5, 21),), (np.array([30, 2, 17]),), (slice(None), slice(None))[:1], ()):
        np.testing.assert_array_equal(stored.load(index), wanted[index])
        codes = stored.codes(index)
        assert codes is not None
        np.testing.assert_array_equal(_multiplied_out(codes), wanted[index])


def _misfit(folder: Path, how: Format, change: str) -> tuple[Model, Values, str]:
    """The reason that is given for layers.0.q, after one of its numbers was changed."""

    def edit(module: str, matrix: Packed) -> None:
        if module == "model.layers.0.self_attn.q_proj":
            if change == "zero point":
                matrix.zeros[3, 1] = 16
            elif change == "code":
                matrix.codes[3, 40] = 0
            else:
                matrix.scales[3, 1] = np.float32(2.0**-30)

    values = write_packed_checkpoint(folder, how, edit_matrix=edit)
    model = read_checkpoint(folder)
    packed = model.packed["layers.0.q"]
    assert packed.load() is None
    assert model.packed["layers.1.q"].load() is not None
    return model, values, packed.misfit()


def test_what_our_formats_cannot_hold_is_still_read_exactly(tmp_path: Path) -> None:
    """Values stay exact, and the user is told what it was that could not be taken over."""
    narrow = Format("compressed-tensors", symmetric=True, scale_dtype="BF16")
    for how, change, reason in (
        (FORMATS["gptq, 8 bits"], "code", "code -128"),
        (narrow, "scale", "scales that fp16 cannot hold, as 9.31323e-10"),
    ):
        folder = tmp_path / change
        model, values, told = _misfit(folder, how, change)
        assert told == reason
        _check(model, values)


def test_groups_that_are_no_multiple_of_32_are_told(tmp_path: Path) -> None:
    write_packed_checkpoint(tmp_path, FORMATS["awq, groups of 16"])
    assert read_checkpoint(tmp_path).packed["layers.0.q"].misfit() == "groups of 16 are no multiple of 32"


def test_a_quantized_head_is_read(tmp_path: Path) -> None:
    """GPTQ files may hold lm_head packed, too."""
    how = Format("gptq", section={"lm_head": True})
    rng = np.random.default_rng(5)
    codes, zeros = rng.integers(0, 16, (304, 64)), rng.integers(1, 15, (304, 2))
    matrix = Packed(codes, zeros, np.full((304, 2), 0.25), np.arange(64) // 32)

    def edit(entries: dict) -> None:
        del entries["lm_head.weight"]
        entries |= pack("lm_head", matrix, how)

    write_packed_checkpoint(tmp_path, how, edit=edit, vocab_size=304)
    model = read_checkpoint(tmp_path)
    np.testing.assert_array_equal(model.tensors["lm_head"], matrix.values())
    assert model.packed["lm_head"].bits == 4


def test_biases_of_zeros_are_of_no_effect(tmp_path: Path) -> None:
    """Some programs save a bias with every matrix that they pack, whether the model has one or not."""

    def edit(entries: dict) -> None:
        entries["model.layers.0.self_attn.q_proj.bias"] = entry(np.zeros(64), "F16")

    values = write_packed_checkpoint(tmp_path, FORMATS["gptq"], edit=edit)
    _check(read_checkpoint(tmp_path), values)


def test_group_numbers_in_order_are_no_act_order(tmp_path: Path) -> None:
    """Files of desc_act false have g_idx, too, and those of desc_act true may lack any permutation."""
    write_packed_checkpoint(tmp_path, Format("gptq", section={"desc_act": True}))
    assert read_checkpoint(tmp_path).packed["layers.0.q"].load() is not None


def test_group_numbers_that_were_never_set_are_no_act_order(tmp_path: Path) -> None:
    def edit(entries: dict) -> None:
        for name in [name for name in entries if name.endswith(".weight_packed")]:
            cols = 96 if "w2" in name else 64
            entries[name.replace("_packed", "_g_idx")] = i32(np.full(cols, -1))

    values = write_packed_checkpoint(tmp_path, FORMATS["compressed-tensors"], edit=edit)
    _check(read_checkpoint(tmp_path), values)


# Sections as programs wrote them into published checkpoints: every key that they write is known.
_GPTQ_OF_OPTIMUM = """
{"batch_size": 1, "bits": 4, "block_name_to_quantize": null, "cache_block_outputs": true, "damp_percent": 0.01,
"dataset": null, "desc_act": false, "exllama_config": {"version": 1}, "group_size": 32, "max_input_length": null,
"model_seqlen": null, "module_name_preceding_first_block": null, "modules_in_block_to_quantize": null,
"pad_token_id": null, "quant_method": "gptq", "sym": true, "tokenizer": null, "true_sequential": true,
"use_cuda_fp16": false, "use_exllama": true}
"""
_GPTQ_OF_AUTOGPTQ = """
{"bits": 4, "group_size": 32, "damp_percent": 0.1, "desc_act": false, "static_groups": false, "sym": true,
"true_sequential": true, "model_name_or_path": null, "model_file_base_name": "model", "quant_method": "gptq",
"is_marlin_format": false}
"""
_AWQ_OF_AUTOAWQ = """
{"bits": 4, "group_size": 32, "modules_to_not_convert": null, "quant_method": "awq", "version": "gemm", "zero_point": true}
"""
_AWQ_OF_TRANSFORMERS = """
{"backend": "autoawq", "bits": 4, "do_fuse": false, "exllama_config": null, "fuse_max_seq_len": null, "group_size": 32,
"modules_to_fuse": null, "modules_to_not_convert": ["gate"], "quant_method": "awq", "version": "gemm",
"zero_point": true}
"""
_OF_LLM_COMPRESSOR = """
{"config_groups": {"group_0": {"format": "pack-quantized", "input_activations": null, "output_activations": null,
"targets": ["Linear"], "weights": {"actorder": "static", "block_structure": null, "dynamic": false, "group_size": 32,
"num_bits": 4, "observer": "minmax", "observer_kwargs": {}, "scale_dtype": null, "strategy": "group",
"symmetric": true, "type": "int", "zp_dtype": null}}}, "format": "pack-quantized", "global_compression_ratio": 1.7,
"ignore": ["lm_head", "re:.*mlp.gate$"], "kv_cache_scheme": null, "quant_method": "compressed-tensors",
"quantization_status": "compressed", "sparsity_config": {}, "transform_config": {}, "version": "0.11.0"}
"""
_PUBLISHED = {
    "optimum": (Format("gptq", symmetric=True), _GPTQ_OF_OPTIMUM),
    "AutoGPTQ": (Format("gptq", symmetric=True), _GPTQ_OF_AUTOGPTQ),
    "AutoAWQ": (Format("awq"), _AWQ_OF_AUTOAWQ),
    "transformers": (Format("awq"), _AWQ_OF_TRANSFORMERS),
    "llm-compressor": (Format("compressed-tensors", symmetric=True), _OF_LLM_COMPRESSOR),
}


@pytest.mark.parametrize("program", _PUBLISHED)
def test_the_configuration_that_a_program_writes_is_taken(tmp_path: Path, program: str) -> None:
    how, section = _PUBLISHED[program]
    values = write_packed_checkpoint(tmp_path, how, quantization_config=json.loads(section))
    _check(read_checkpoint(tmp_path), values)
