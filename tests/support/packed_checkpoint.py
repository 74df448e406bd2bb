"""Tiny quantized checkpoints, packed number by number from the published layouts of AutoAWQ, GPTQ, compressed-tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.safetensors_file import Entry, entry, stored_values
from support.tiny_checkpoint import tiny_config, tiny_tensors, tiny_tokenizer, write_json, write_weights

Array = NDArray[Any]
_PLAIN = ("embed_tokens", "norm", ".gate.", "lm_head")  # of these names, nothing is quantized


@dataclass(frozen=True)
class Format:
    """One way to pack. `group_size` -1: one scale a row. `section`: more keys of quantization_config."""

    method: str  # "awq", "gptq", "gptq_v2" or "compressed-tensors"
    bits: int = 4
    group_size: int = 32
    symmetric: bool = False
    scale_dtype: str = "F16"
    act_order: bool = False
    section: dict[str, Any] = field(default_factory=dict)


@dataclass
class Packed:
    """A matrix [outputs, inputs] as numbers: codes and zeros unsigned, zeros and scales [outputs, groups]."""

    codes: Array
    zeros: Array
    scales: Array
    order: Array  # [inputs]: group of each

    def values(self) -> NDArray[np.float32]:
        """What a reader must find, computed in binary64."""
        difference = self.codes.astype(np.float64) - self.zeros[:, self.order]
        return (difference * self.scales.astype(np.float64)[:, self.order]).astype(np.float32)


def random_matrix(generator: np.random.Generator, shape: tuple[int, int], how: Format) -> Packed:
    """Every code and every zero point that the format has, and scales that keep values near 1/sqrt(inputs)."""
    outputs, inputs = shape
    group_size = inputs if how.group_size < 0 else how.group_size
    groups, top = -(-inputs // group_size), 1 << how.bits
    low = 1 if how.bits == 8 and how.method.startswith("gptq") else 0
    codes = generator.integers(low, top, shape)
    zeros = generator.integers(1, top - 1, (outputs, groups))
    if how.symmetric or how.bits == 8:
        zeros = np.full((outputs, groups), top // 2)
        codes = np.maximum(codes, 1) if how.bits == 8 else codes
    scales = generator.uniform(0.5, 1.5, (outputs, groups)) * (2.0 / top) / np.sqrt(inputs)
    order = np.arange(inputs) // group_size
    if how.act_order:
        order = generator.permutation(order)
    halves = stored_values(scales.astype(np.float32), "F16")
    return Packed(codes, zeros, stored_values(halves, how.scale_dtype), order)


def _pack_last(numbers: Array, bits: int, order: tuple[int, ...] | None = None) -> Array:
    """Words along the last axis, in the lowest bits the first number, or that of `order`; the tail is zeros."""
    per_word = 32 // bits
    padded = np.pad(numbers.astype(np.uint32), ((0, 0), (0, -numbers.shape[-1] % per_word)))
    words = np.zeros((len(padded), padded.shape[-1] // per_word), np.uint32)
    for place, number in enumerate(order or range(per_word)):
        words |= padded[:, number::per_word] << np.uint32(bits * place)
    return words.view(np.int32)


def i32(values: Array) -> Entry:
    """An I32 tensor."""
    return "I32", values.shape, values.astype("<i4").tobytes()


def pack(module: str, matrix: Packed, how: Format) -> dict[str, Entry]:
    """The tensors of one matrix by their names in the file."""
    if how.method == "compressed-tensors":
        return _compressed(module, matrix, how)
    scales = entry(matrix.scales.T, how.scale_dtype)
    if how.method == "awq":
        order = (0, 2, 4, 6, 1, 3, 5, 7)
        codes, zeros = (_pack_last(part.T, 4, order) for part in (matrix.codes, matrix.zeros))
        return {f"{module}.qweight": i32(codes), f"{module}.qzeros": i32(zeros), f"{module}.scales": scales}
    codes = _pack_last(matrix.codes, how.bits).T
    zeros = _pack_last(matrix.zeros.T - (how.method == "gptq"), how.bits)
    return {
        f"{module}.qweight": i32(codes),
        f"{module}.qzeros": i32(zeros),
        f"{module}.scales": scales,
        f"{module}.g_idx": i32(matrix.order),
    }


def _compressed(module: str, matrix: Packed, how: Format) -> dict[str, Entry]:
    shape = np.array(matrix.codes.shape, "<i8")
    parts = {
        f"{module}.weight_packed": i32(_pack_last(matrix.codes, how.bits)),
        f"{module}.weight_scale": entry(matrix.scales, how.scale_dtype),
        f"{module}.weight_shape": ("I64", (2,), shape.tobytes()),
    }
    if not how.symmetric:
        parts[f"{module}.weight_zero_point"] = i32(_pack_last(matrix.zeros.T, how.bits).T)
    if how.act_order:
        parts[f"{module}.weight_g_idx"] = i32(matrix.order)
    return parts


def quantization_section(how: Format) -> dict[str, Any]:
    """`quantization_config` as the program that made the checkpoint would write it."""
    if how.method == "awq":
        section: dict[str, Any] = {"quant_method": "awq", "bits": how.bits, "group_size": how.group_size}
        section |= {"version": "gemm", "zero_point": True, "modules_to_not_convert": ["gate"]}
    elif how.method == "compressed-tensors":
        weights = {
            "num_bits": how.bits,
            "type": "int",
            "symmetric": how.symmetric,
            "strategy": "group" if how.group_size > 0 else "channel",
            "group_size": how.group_size if how.group_size > 0 else None,
            "dynamic": False,
            "actorder": "group" if how.act_order else None,
            "block_structure": None,
            "observer": "minmax",
            "observer_kwargs": {},
        }
        group = {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}
        section = {"quant_method": how.method, "format": "pack-quantized", "quantization_status": "compressed"}
        section |= {"config_groups": {"group_0": group}, "ignore": ["lm_head", "re:.*gate$"], "kv_cache_scheme": None}
        section |= {"global_compression_ratio": None}
    else:
        section = {"quant_method": "gptq", "bits": how.bits, "group_size": how.group_size, "desc_act": how.act_order}
        section |= {"sym": how.symmetric, "checkpoint_format": how.method, "true_sequential": True, "damp_percent": 0.1}
        section |= {"dynamic": {"-:.*gate$": {}}, "lm_head": False, "pack_dtype": "int32", "static_groups": False}
        section |= {"meta": {"quantizer": ["gptqmodel:2.1.0"]}}
    return section | how.section


Values = dict[str, NDArray[np.float32]]


def write_packed_checkpoint(
    folder: Path,
    how: Format,
    *,
    edit_matrix: Callable[[str, Packed], None] | None = None,
    edit: Callable[[dict[str, Entry]], None] | None = None,
    n_shards: int = 1,
    seed: int = 0,
    **overrides: Any,
) -> Values:
    """Write a tiny Mixtral to `folder`, its projections and experts packed; returns the values by published name.

    edit_matrix: changes a matrix, given its module's name, before it is packed. edit: changes the tensors of the file.
    overrides: keys of config.json.
    """
    config = tiny_config(**{"quantization_config": quantization_section(how), "dtype": "float16", **overrides})
    generator = np.random.default_rng(seed)
    entries: dict[str, Entry] = {}
    values: Values = {}
    for name, plain in tiny_tensors(config, seed).items():
        if any(part in name for part in _PLAIN):
            entries[name], values[name] = entry(plain, "F16"), stored_values(plain, "F16")
            continue
        module = name.removesuffix(".weight")
        matrix = random_matrix(generator, plain.shape, how)
        if edit_matrix is not None:
            edit_matrix(module, matrix)
        entries |= pack(module, matrix, how)
        values[name] = matrix.values()
    if edit is not None:
        edit(entries)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_weights(folder, entries, n_shards)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return values
