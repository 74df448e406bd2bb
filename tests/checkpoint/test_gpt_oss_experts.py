"""gpt-oss keeps experts as [inputs, outputs] with gate and up in turns, or in MXFP4: one wrong axis makes a stupid model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from colibri_build.artifacts import Format, Kind, Model
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.errors import CheckpointError
from colibri_build.quantize.engine import quantize_model
from colibri_build.quantize.options import QuantizeOptions
from colibri_build.quantize.rtn import dequantize_tensor
from colibri_build.reference.model import ReferenceModel, forward
from support.safetensors_file import Entry, entry, stored_values, write_safetensors
from support.tiny_checkpoint import tiny_config, tiny_tokenizer, write_json

DIM, HIDDEN, EXPERTS, HEADS = 64, 32, 3, 2
LAYER, EXPERT = "model.layers.0", "model.layers.0.mlp.experts"
BLOCKS, SCALES = f"{EXPERT}.gate_up_proj_blocks", f"{EXPERT}.gate_up_proj_scales"
CONFIG = tiny_config(
    architectures=["GptOssForCausalLM"], model_type="gpt_oss", num_hidden_layers=1, num_attention_heads=HEADS,
    num_key_value_heads=1, head_dim=8, num_local_experts=EXPERTS, intermediate_size=HIDDEN, sliding_window=16,
    attention_bias=False,
)  # fmt: skip
SHAPES: dict[str, tuple[int, ...]] = {
    "model.embed_tokens.weight": (301, DIM), "model.norm.weight": (DIM,), "lm_head.weight": (301, DIM),
    f"{LAYER}.input_layernorm.weight": (DIM,), f"{LAYER}.post_attention_layernorm.weight": (DIM,),
    f"{LAYER}.self_attn.q_proj.weight": (HEADS * 8, DIM), f"{LAYER}.self_attn.k_proj.weight": (8, DIM),
    f"{LAYER}.self_attn.v_proj.weight": (8, DIM), f"{LAYER}.self_attn.o_proj.weight": (DIM, HEADS * 8),
    f"{LAYER}.self_attn.sinks": (HEADS,),
    f"{LAYER}.mlp.router.weight": (EXPERTS, DIM), f"{LAYER}.mlp.router.bias": (EXPERTS,),
    f"{EXPERT}.gate_up_proj": (EXPERTS, DIM, 2 * HIDDEN), f"{EXPERT}.gate_up_proj_bias": (EXPERTS, 2 * HIDDEN),
    f"{EXPERT}.down_proj": (EXPERTS, HIDDEN, DIM), f"{EXPERT}.down_proj_bias": (EXPERTS, DIM),
}  # fmt: skip
Bytes = NDArray[np.uint8]
Tensors = dict[str, Any]  # float32 values, or bytes


def plain() -> Tensors:
    rng = np.random.default_rng(5)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def packed() -> Tensors:
    """Every code, and powers of two around 1/16."""
    tensors, rng = plain(), np.random.default_rng(6)
    for name in ("gate_up_proj", "down_proj"):
        experts, inputs, outputs = tensors.pop(f"{EXPERT}.{name}").shape
        shape = (experts, outputs, inputs // 32)
        tensors[f"{EXPERT}.{name}_blocks"] = rng.integers(0, 256, (*shape, 16)).astype(np.uint8)
        tensors[f"{EXPERT}.{name}_scales"] = rng.integers(120, 127, shape).astype(np.uint8)
    return tensors


def stored(values: NDArray[Any]) -> Entry:
    return ("U8", values.shape, values.tobytes()) if values.dtype == np.uint8 else entry(values, "BF16")


def read(folder: Path, tensors: Tensors) -> Model:
    quantized = {"quantization_config": {"quant_method": "mxfp4"}} if any("_blocks" in name for name in tensors) else {}
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", {**CONFIG, **quantized})
    write_safetensors(folder / "model.safetensors", {name: stored(values) for name, values in tensors.items()})
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return read_checkpoint(folder)


def mxfp4_value(code: int, scale: int) -> float:
    """The OCP Microscaling specification: E2M1 with bias 1, times an E8M0 power of two with bias 127."""
    exponent, mantissa = (code >> 1) & 3, code & 1
    magnitude = mantissa * 0.5 if exponent == 0 else (1 + mantissa * 0.5) * 2.0 ** (exponent - 1)
    return (-magnitude if code & 8 else magnitude) * 2.0 ** (scale - 127)


def test_plain_experts_are_transposed_and_their_gate_and_up_taken_apart(tmp_path: Path) -> None:
    tensors = plain()
    model = read(tmp_path, tensors)
    values = {name: stored_values(tensor, "BF16") for name, tensor in tensors.items()}
    for e in range(EXPERTS):
        ours = f"layers.0.experts.{e}"
        both, biases = values[f"{EXPERT}.gate_up_proj"][e], values[f"{EXPERT}.gate_up_proj_bias"][e]
        np.testing.assert_array_equal(model.tensors[f"{ours}.gate"], both[:, ::2].T)
        np.testing.assert_array_equal(model.tensors[f"{ours}.up"], both[:, 1::2].T)
        np.testing.assert_array_equal(model.tensors[f"{ours}.down"], values[f"{EXPERT}.down_proj"][e].T)
        np.testing.assert_array_equal(model.tensors[f"{ours}.gate_bias"], biases[::2])
        np.testing.assert_array_equal(model.tensors[f"{ours}.up_bias"], biases[1::2])
        np.testing.assert_array_equal(model.tensors[f"{ours}.down_bias"], values[f"{EXPERT}.down_proj_bias"][e])
    assert dict(model.packed) == {}


def test_mxfp4_experts_have_the_values_of_the_specification(tmp_path: Path) -> None:
    tensors = packed()
    model = read(tmp_path, tensors)
    blocks, scales = tensors[BLOCKS][2], tensors[SCALES][2]
    for part, first in (("gate", 0), ("up", 1)):
        found = model.tensors[f"layers.0.experts.2.{part}"]
        assert found.shape == (HIDDEN, DIM)
        for row in range(HIDDEN):
            for col in range(DIM):
                byte = int(blocks[2 * row + first, col // 32, col % 32 // 2])
                scale = int(scales[2 * row + first, col // 32])
                assert found[row, col] == mxfp4_value(byte >> 4 if col % 2 else byte & 15, scale)


def test_mxfp4_experts_are_offered_as_codes_of_eight_bits(tmp_path: Path) -> None:
    """Nothing is rounded: code times scale is the value, in every matrix of every expert."""
    model = read(tmp_path, packed())
    names = {f"layers.0.experts.{e}.{part}" for e in range(EXPERTS) for part in ("gate", "up", "down")}
    assert set(model.packed) == names
    for name in names:
        offered = model.packed[name]
        codes = offered.load()
        assert codes is not None and codes.zeros is None
        assert (offered.bits, offered.group_size, codes.group_size) == (8, 32, 32)
        assert (codes.codes.dtype, codes.scales.dtype) == (np.int8, np.float16)
        multiplied = codes.codes * np.repeat(codes.scales.astype(np.float32), 32, axis=1)
        np.testing.assert_array_equal(multiplied, model.tensors[name])


def test_mxfp4_experts_stay_exact_in_a_quantized_model(tmp_path: Path) -> None:
    """With experts in w8, a published gpt-oss loses nothing: the user's firmware has the published weights."""
    model = read(tmp_path, packed())
    quantized, _ = quantize_model(model, QuantizeOptions(method="rtn", group_size=32, formats={Kind.EXPERT: Format.W8}))
    for name in model.packed:
        np.testing.assert_array_equal(dequantize_tensor(quantized.tensors[name], 32), model.tensors[name])
    forward(ReferenceModel(quantized), [5, 17, 200])


@pytest.mark.parametrize("scale", [103, 144, 1, 252])
def test_a_power_of_two_beyond_fp16_is_read_and_not_offered(tmp_path: Path, scale: int) -> None:
    tensors = packed()
    tensors[SCALES][0, 0, 0] = scale
    tensors[BLOCKS][0, 0, 0, 0] = 0x21  # element 0: 0.5, element 1: 1
    model = read(tmp_path, tensors)
    assert model.tensors["layers.0.experts.0.gate"][0, :2].tolist() == [2.0 ** (scale - 128), 2.0 ** (scale - 127)]
    assert model.packed["layers.0.experts.0.gate"].load() is None
    assert model.packed["layers.0.experts.1.gate"].load() is not None


def test_the_scale_of_zeros_is_of_no_effect(tmp_path: Path) -> None:
    tensors = packed()
    tensors[SCALES][0, 0, 0] = 255
    tensors[BLOCKS][0, 0, 0] = 0x80  # zeros of both signs
    codes = read(tmp_path, tensors).packed["layers.0.experts.0.gate"].load()
    assert codes is not None
    assert not codes.codes[0, :32].any()
    assert np.isfinite(codes.scales).all()


def _change(name: str, change: Callable[[Any], Any]) -> Callable[[Tensors], None]:
    def edit(tensors: Tensors) -> None:
        value = change(tensors.pop(name))
        if value is not None:
            tensors[name] = value

    return edit


def _too_large(scales: Bytes) -> Bytes:
    scales[1, 4, 1] = 255
    return scales


BAD: dict[str, tuple[Callable[[], Tensors], Callable[[Tensors], None], str]] = {
    "no scales": (packed, _change(SCALES, lambda _: None), f"the first: {EXPERT}.gate_up_proj [3, 64, 64]"),
    "blocks of 8 bytes": (packed, _change(BLOCKS, lambda b: b[..., :8].copy()), f"{BLOCKS} is U8 [3, 64, 2, 8]"),
    "blocks as numbers": (packed, _change(BLOCKS, lambda b: b.astype(np.float32)), f"{BLOCKS} is BF16"),
    "scales of other experts": (packed, _change(SCALES, lambda s: s[:2].copy()), f"{BLOCKS} is U8 [3, 64, 2, 16]"),
    "scales without groups": (packed, _change(SCALES, lambda s: s[..., 0].copy()), "which is no part of MXFP4"),
    "fewer groups": (
        packed,
        lambda t: (_change(BLOCKS, lambda b: b[:, :, :1].copy())(t), _change(SCALES, lambda s: s[:, :, :1].copy())(t))[0],
        "has shape [3, 64, 32], config.json asks for [3, 64, 64]",
    ),
    "values beyond binary32": (packed, _change(SCALES, _too_large), f"{BLOCKS}"),
    "both forms": (
        packed, lambda t: t.update({f"{EXPERT}.down_proj": plain()[f"{EXPERT}.down_proj"]}), "no use for; the first"
    ),
    "not transposed": (
        plain, _change(f"{EXPERT}.down_proj", lambda d: d.swapaxes(1, 2).copy()),
        "has shape [3, 32, 64], config.json asks for [3, 64, 32]",
    ),
    "experts as matrices": (plain, _change(f"{EXPERT}.down_proj", lambda d: d.reshape(-1, DIM)), "has shape [96, 64]"),
    "no sinks": (plain, _change(f"{LAYER}.self_attn.sinks", lambda _: None), "self_attn.sinks [2]"),
    "no router bias": (plain, _change(f"{LAYER}.mlp.router.bias", lambda _: None), "mlp.router.bias [3]"),
    "NaN": (plain, _change(f"{EXPERT}.down_proj", lambda d: np.full_like(d, np.inf)), f"{EXPERT}.down_proj"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_experts_are_refused_by_name(tmp_path: Path, name: str) -> None:
    make, edit, message = BAD[name]
    tensors = make()
    edit(tensors)
    with pytest.raises(CheckpointError) as caught:
        read(tmp_path, tensors)
    assert message in caught.value.what
    assert caught.value.hint
