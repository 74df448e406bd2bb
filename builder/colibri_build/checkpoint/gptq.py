"""GPTQ checkpoints: X.qweight [inputs / codes a word, outputs], X.qzeros [groups, outputs / codes a word], X.scales.

A word holds 32/bits codes of one output, or zero points of as many outputs, the first in the lowest bits.
w = (code - zero) * scale. Version 1 stores zero - 1 and version 2 zero. X.g_idx [inputs] names the group of each input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colibri_build.artifacts import F32
from colibri_build.checkpoint.awq import read_group_size
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.quantization_matrix import I64, CodedRows, PackedMatrix, fields, words_of
from colibri_build.checkpoint.quantization_parts import (
    Parts,
    Quantization,
    read_order,
    require_integers,
    require_scales,
)
from colibri_build.checkpoint.stored import RawTensor
from colibri_build.errors import CheckpointError

_FORMATS = ("gptq", "gptq_v2")

# How it was made, and which program is to compute with it. What desc_act and sym mean is in the tensors.
_BENIGN = """
act_group_aware backend batch_size block_name_to_quantize cache_block_outputs damp_auto_increment damp_percent dataset
desc_act disable_exllama exllama_config max_input_length meta model_file_base_name model_name_or_path model_seqlen
module_name_preceding_first_block modules_in_block_to_quantize modules_to_not_convert mse pad_token_id static_groups
sym tokenizer true_sequential use_cuda_fp16 use_exllama
"""


def read_gptq(keys: ConfigKeys) -> GptqQuantization:
    """`quantization_config` of a GPTQ checkpoint. Raises CheckpointError, naming the key."""
    bits = keys.size("bits")
    if bits not in (4, 8):
        raise keys.refused("bits", bits, "4 or 8")
    first_version = _read_format(keys) == _FORMATS[0]
    keys.only("method", "gptq", None)
    keys.only("pack_dtype", "int32", None)
    keys.only("is_marlin_format", False)
    keys.only("use_marlin", False)
    keys.only("lm_head", False, True)
    for key in ("adapter", "rotation"):
        keys.only(key, None)
    _refuse_exceptions(keys)
    group_size = read_group_size(keys)
    keys.finish(_BENIGN.split())
    return GptqQuantization(bits, group_size, first_version)


def _read_format(keys: ConfigKeys) -> str:
    """Newer programs write `format`, older ones `checkpoint_format`, some both; the oldest neither."""
    found: list[str] = []
    for key in ("checkpoint_format", "format"):
        keys.only(key, *_FORMATS, None)
        found += [value] if (value := keys.take(key)) else []
    if len(set(found)) > 1:
        raise keys.refused("format", found[1], f'"{found[0]}", as checkpoint_format says')
    return found[0] if found else _FORMATS[0]


def _refuse_exceptions(keys: ConfigKeys) -> None:
    """`dynamic` may leave modules out ("-:pattern"), which the files show; other bits for some are not supported."""
    dynamic = keys.take("dynamic") or {}
    if not isinstance(dynamic, dict):
        raise keys.refused("dynamic", dynamic, "an object of patterns")
    others = [name for name in dynamic if not name.startswith("-:")]
    if others:
        raise CheckpointError(
            f'{keys.where}: "dynamic" gives {others[0]!r} a quantization of its own, which is not supported',
            hint="quantize all modules alike, or leave some out with -:",
        )


@dataclass(frozen=True)
class GptqQuantization(Quantization):
    """`group_size` 0: one scale a row."""

    needed = ("qweight", "qzeros", "scales")
    optional = ("g_idx",)
    bits: int
    group_size: int
    first_version: bool

    def matrix(self, name: str, parts: Parts) -> PackedMatrix:
        """Shapes follow from qweight."""
        codes, zeros, scales = (parts[part] for part in self.needed)
        require_integers(codes, -1, -1)
        per_word = 32 // self.bits
        n_inputs, n_outputs = codes.shape[0] * per_word, codes.shape[1]
        group_size = self.group_size or n_inputs
        n_groups = -(-n_inputs // group_size)
        require_integers(zeros, n_groups, -(-n_outputs // per_word))
        require_scales(scales, n_groups, n_outputs)
        order = read_order(parts.get("g_idx"), n_inputs, n_groups, group_size)
        if self.first_version:
            _refuse_overflow(zeros, self.bits)
        return _GptqMatrix(
            codes.file,
            name,
            "GPTQ",
            (n_outputs, n_inputs),
            self.bits,
            group_size,
            scales,
            order,
            codes,
            zeros,
            int(self.first_version),
        )


def _refuse_overflow(zeros: RawTensor, bits: int) -> None:
    """A stored zero point of all ones plus one is 2^bits to some programs, 0 to others, and a carry to a third kind."""
    largest = (1 << bits) - 1
    words = words_of(zeros)
    for shift in range(0, 32, bits):
        if (fields(words, np.array(shift), bits) == largest).any():
            raise CheckpointError(
                f"{zeros.file}: tensor {zeros.name} holds a zero point of {largest} + 1, which programs read differently",
                hint="save the checkpoint in format gptq_v2, which says what is meant",
            )


@dataclass(frozen=True)
class _GptqMatrix(PackedMatrix):
    packed: RawTensor
    zeros: RawTensor
    zero_offset: int  # to add to the stored zero points

    def _coded(self, rows: I64) -> CodedRows:
        per_word = 32 // self.bits
        shifts = self.bits * np.arange(per_word)
        words = words_of(self.packed)[:, rows].T  # [rows, inputs / per_word]
        codes = fields(words[:, :, None], shifts, self.bits).reshape(rows.size, -1)
        zeros = fields(words_of(self.zeros)[:, rows // per_word], shifts[rows % per_word], self.bits).T
        return CodedRows(codes, zeros.astype(np.int16) + np.int16(self.zero_offset), self._scales(rows))

    def _scales(self, rows: I64) -> F32:
        return np.ascontiguousarray(self.scales.load((slice(None), rows)).T)
