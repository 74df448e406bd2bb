"""Checkpoints of compressed-tensors in its format pack-quantized.

X.weight_packed [outputs, ceil(inputs / codes a word)], X.weight_scale [outputs, groups], X.weight_shape, and where it is
not symmetric X.weight_zero_point [ceil(outputs / codes a word), groups]. A word holds 32/bits numbers, the first in the
lowest bits, each plus 2^(bits-1). w = (code - zero) * scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from colibri_build.artifacts import F32
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.quantization_matrix import (
    I64,
    CodedRows,
    PackedMatrix,
    fields,
    integers_of,
    words_of,
)
from colibri_build.checkpoint.quantization_parts import (
    Parts,
    Quantization,
    damaged,
    read_order,
    require_integers,
    require_scales,
)
from colibri_build.checkpoint.stored import RawTensor
from colibri_build.errors import CheckpointError

_FORMAT = "pack-quantized"
_BITS = (4, 8)
_BENIGN = ("global_compression_ratio", "ignore", "version")
_BENIGN_OF_WEIGHTS = ("observer", "observer_kwargs", "scale_dtype", "zp_dtype")


@dataclass(frozen=True)
class _Scheme:
    bits: int
    group_size: int  # 0: one scale a row
    symmetric: bool


def read_compressed(keys: ConfigKeys) -> CompressedQuantization:
    """`quantization_config` of a compressed-tensors checkpoint. Raises CheckpointError, naming the key."""
    keys.only("format", _FORMAT)
    if not keys.has("format"):
        raise keys.refused("format", None, f'"{_FORMAT}"')
    keys.only("quantization_status", "compressed", None)
    for key in ("kv_cache_scheme", "moe_sparsity_config"):
        keys.only(key, None)
    for key in ("sparsity_config", "transform_config"):
        keys.only(key, None, {})
    schemes = tuple(_read_groups(keys))
    keys.finish(_BENIGN)
    return CompressedQuantization(schemes)


def _read_groups(keys: ConfigKeys) -> Iterator[_Scheme]:
    """The schemes of `config_groups`; which matrix has which, its tensors show."""
    groups = keys.take("config_groups")
    if not isinstance(groups, dict) or not groups:
        raise keys.refused("config_groups", groups, "an object of schemes")
    for name, group in groups.items():
        where = f"{keys.where}: config_groups: {name}"
        if not isinstance(group, dict) or not isinstance(group.get("weights"), dict):
            raise CheckpointError(f'{where}: "weights" is missing', hint="supported: a scheme with integer weights")
        scheme = ConfigKeys(group, where)
        scheme.take("targets")
        scheme.only("format", _FORMAT, None)
        for key in ("input_activations", "output_activations"):
            scheme.only(key, None)
        weights = ConfigKeys(scheme.take("weights"), f"{where}: weights")
        scheme.finish()
        yield _read_weights(weights)


def _read_weights(keys: ConfigKeys) -> _Scheme:
    bits = keys.size("num_bits", default=8)
    if bits not in _BITS:
        raise keys.refused("num_bits", bits, "4 or 8")
    keys.only("type", "int")
    keys.only("strategy", "group", "channel", None)
    keys.only("dynamic", False)
    keys.only("block_structure", None)
    keys.only("actorder", None, False, "weight", "static", "group", "dynamic")  # weight_g_idx says what it is
    group_size = keys.size("group_size", default=0, low=-1)
    if keys.take("strategy") == "channel":
        group_size = 0
    symmetric = keys.flag("symmetric", True)
    keys.finish(_BENIGN_OF_WEIGHTS)
    return _Scheme(bits, max(group_size, 0), symmetric)


@dataclass(frozen=True)
class CompressedQuantization(Quantization):
    """Schemes that a matrix may have."""

    needed = ("weight_packed", "weight_scale", "weight_shape")
    optional = ("weight_zero_point", "weight_g_idx")
    schemes: tuple[_Scheme, ...]

    def matrix(self, name: str, parts: Parts) -> PackedMatrix:
        """Bits and group size follow from the shapes; they must be those of a scheme."""
        codes, scales, shape = (parts[part] for part in self.needed)
        n_outputs, n_inputs = _read_shape(shape)
        require_integers(codes, n_outputs, -1)
        require_scales(scales, n_outputs, -1)
        zeros, n_groups = parts.get("weight_zero_point"), scales.shape[1]
        scheme = self._scheme(codes, (n_inputs, codes.shape[1], n_groups), zeros is None)
        if zeros is not None:
            require_integers(zeros, -(-n_outputs // (32 // scheme.bits)), n_groups)
        group_size = scheme.group_size or n_inputs
        order = read_order(parts.get("weight_g_idx"), n_inputs, n_groups, group_size)
        return _CompressedMatrix(
            codes.file,
            name,
            _FORMAT,
            (n_outputs, n_inputs),
            scheme.bits,
            group_size,
            scales,
            order,
            codes,
            zeros,
        )

    def _scheme(self, codes: RawTensor, sizes: tuple[int, int, int], symmetric: bool) -> _Scheme:
        n_inputs, n_words, n_groups = sizes
        for scheme in self.schemes:
            words, groups = -(-n_inputs * scheme.bits // 32), -(-n_inputs // (scheme.group_size or n_inputs))
            if (words, groups, scheme.symmetric) == (n_words, n_groups, symmetric):
                return scheme
        zero_points = "without" if symmetric else "with"
        raise damaged(
            codes,
            f"has {n_words} words for {n_inputs} inputs and {n_groups} groups {zero_points} zero points, "
            "which is none of config_groups",
        )


def _read_shape(tensor: RawTensor) -> tuple[int, int]:
    if tensor.dtype not in ("I32", "I64") or tensor.shape != (2,):
        raise damaged(tensor, f"is {tensor.dtype} {list(tensor.shape)}, the shape of a matrix is two integers")
    n_outputs, n_inputs = (int(size) for size in integers_of(tensor))
    if n_outputs < 1 or n_inputs < 1:
        raise damaged(tensor, f"says {n_outputs} x {n_inputs}")
    return n_outputs, n_inputs


@dataclass(frozen=True)
class _CompressedMatrix(PackedMatrix):
    packed: RawTensor
    zeros: RawTensor | None

    def _coded(self, rows: I64) -> CodedRows:
        per_word = 32 // self.bits
        shifts = self.bits * np.arange(per_word)
        codes = fields(words_of(self.packed)[rows][:, :, None], shifts, self.bits).reshape(rows.size, -1)
        scales = self._scales(rows)
        if self.zeros is None:
            zeros = np.full(scales.shape, 1 << (self.bits - 1), np.int16)
        else:
            words = words_of(self.zeros)[rows // per_word]
            zeros = fields(words, shifts[rows % per_word][:, None], self.bits).astype(np.int16)
        return CodedRows(np.ascontiguousarray(codes[:, : self.shape[1]]), zeros, scales)

    def _scales(self, rows: I64) -> F32:
        return self.scales.load((rows,))
