"""AWQ checkpoints in AutoAWQ's GEMM packing: X.qweight [inputs, outputs/8], X.qzeros [groups, outputs/8], X.scales.

A word holds eight outputs; its nibbles, the lowest first, are outputs 0, 2, 4, 6, 1, 3, 5, 7. w = (code - zero) * scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colibri_build.artifacts import F32
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.quantization_matrix import I64, CodedRows, PackedMatrix, fields, words_of
from colibri_build.checkpoint.quantization_parts import (
    Parts,
    Quantization,
    damaged,
    require_integers,
    require_scales,
)
from colibri_build.checkpoint.stored import RawTensor

_NIBBLE_OF_OUTPUT = np.array([0, 4, 1, 5, 2, 6, 3, 7])
_BITS = 4
_OUTPUTS = 8  # of a word

# Kernels for this packing; llm-awq and gemv are packings of their own.
_BACKENDS = (
    *("autoawq", "auto", "auto_trainable", "machete", "marlin", "exllama_v2", "exllama_v1"),
    *("gemm", "gemm_triton", "torch_awq", "torch_fused_awq"),
)
# Which program is to compute with it, and how it was made.
_BENIGN = """
act_group_aware batch_size block_name_to_quantize cache_block_outputs damp_percent dataset do_fuse
exllama_config fuse_max_seq_len max_input_length meta model_seqlen module_name_preceding_first_block
modules_in_block_to_quantize modules_to_fuse modules_to_not_convert pad_token_id sym tokenizer true_sequential
"""


def read_awq(keys: ConfigKeys) -> AwqQuantization:
    """`quantization_config` of an AWQ checkpoint. Raises CheckpointError, naming the key."""
    for key in ("version", "format"):
        keys.only(key, "gemm", "GEMM", None)
    if keys.size("bits") != _BITS:
        raise keys.refused("bits", keys.take("bits"), str(_BITS))
    keys.only("backend", *_BACKENDS, None)
    keys.only("zero_point", True)
    keys.only("desc_act", False)
    keys.only("lm_head", False, True)
    group_size = read_group_size(keys)
    keys.finish(_BENIGN.split())
    return AwqQuantization(group_size)


def read_group_size(keys: ConfigKeys) -> int:
    """`group_size`: inputs that share a scale; -1, one scale a row, is given as 0."""
    size = keys.size("group_size", default=128, low=-1)
    if size == 0:
        raise keys.refused("group_size", size, "a size above 0, or -1 for one scale a row")
    return max(size, 0)


@dataclass(frozen=True)
class AwqQuantization(Quantization):
    """`group_size` 0: one scale a row."""

    needed = ("qweight", "qzeros", "scales")
    group_size: int

    def matrix(self, name: str, parts: Parts) -> PackedMatrix:
        """Shapes follow from qweight."""
        codes, zeros, scales = (parts[part] for part in self.needed)
        require_integers(codes, -1, -1)
        n_inputs, n_outputs = codes.shape[0], codes.shape[1] * _OUTPUTS
        group_size = self.group_size or n_inputs
        if n_inputs % group_size:
            raise damaged(codes, f"has {n_inputs} inputs, no multiple of the group size {group_size}")
        require_integers(zeros, n_inputs // group_size, codes.shape[1])
        require_scales(scales, n_inputs // group_size, n_outputs)
        return _AwqMatrix(codes.file, name, "AWQ", (n_outputs, n_inputs), _BITS, group_size, scales, None, codes, zeros)


@dataclass(frozen=True)
class _AwqMatrix(PackedMatrix):
    packed: RawTensor
    zeros: RawTensor

    def _coded(self, rows: I64) -> CodedRows:
        word, shift = rows // _OUTPUTS, _BITS * _NIBBLE_OF_OUTPUT[rows % _OUTPUTS]
        codes = fields(words_of(self.packed)[:, word], shift, _BITS).T
        zeros = fields(words_of(self.zeros)[:, word], shift, _BITS).T
        return CodedRows(np.ascontiguousarray(codes), zeros.astype(np.int16), self._scales(rows))

    def _scales(self, rows: I64) -> F32:
        return np.ascontiguousarray(self.scales.load((slice(None), rows)).T)
