"""MXFP4 (OCP Microscaling): 4-bit floats in groups of 32 that share a power of two. gpt-oss publishes its experts so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, GroupCodes
from colibri_build.checkpoint.stored import Index, RawTensor, StoredTensor, count_bad
from colibri_build.errors import CheckpointError

GROUP = 32
_BYTES = GROUP // 2  # of a group: its element 2i is the low half of byte i, its element 2i + 1 the high one
# Twice the value of each code: sign, two bits of exponent, one of mantissa.
_DOUBLED = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
_BIAS = 128  # scale byte e: 2^(e - 127), of values; of doubled ones, half of it
_FP16_EXPONENTS = (-24, 15)  # powers of two that fp16 holds
_OVERFLOWING = 253  # the least scale byte with which some value exceeds binary32


@dataclass(frozen=True)
class Mxfp4Tensor(StoredTensor):
    """A stack of matrices [experts, outputs, inputs] in two tensors of bytes."""

    blocks: RawTensor  # U8 [experts, outputs, groups, 16]
    scales: RawTensor  # U8 [experts, outputs, groups]

    @classmethod
    def of(cls, blocks: RawTensor, scales: RawTensor) -> Mxfp4Tensor:
        """Raises CheckpointError where the two do not belong together."""
        for tensor, shape in ((blocks, (*scales.shape, _BYTES)), (scales, scales.shape[:3])):
            if tensor.dtype != "U8" or tensor.shape != shape or len(scales.shape) != 3:
                raise CheckpointError(
                    f"{tensor.file}: tensor {tensor.name} is {tensor.dtype} {list(tensor.shape)}, which is no part of MXFP4",
                    hint=f"U8 {list(shape)} is needed, beside {scales.name} {list(scales.shape)}; download the file again",
                )
        experts, outputs, groups = scales.shape
        return cls(blocks.file, blocks.name, "MXFP4", (experts, outputs, groups * GROUP), blocks, scales)

    @property
    def packing(self) -> tuple[int, int]:
        """Twice the values are integers up to 12: codes of w8, too many of them for w4."""
        return 8, GROUP

    def load(self, index: Index = ()) -> F32:
        """The values, each of which is a binary32 number."""
        doubled, exponents = self._parts(index)
        with np.errstate(over="ignore"):  # `non_finite` has refused it
            values = np.ldexp(doubled.astype(np.float32), exponents[..., None])
        return values.reshape(*values.shape[:-2], -1)

    def codes(self, index: Index = ()) -> GroupCodes | None:
        """Codes and scales of one matrix or some of its rows. None: a power of two is beyond fp16."""
        doubled, exponents = self._parts(index)
        used = np.where(doubled.any(axis=-1), exponents, 0)
        low, high = _FP16_EXPONENTS
        if used.size and (used.min() < low or used.max() > high):
            return None
        scales = np.ldexp(np.float32(1), used).astype(np.float16)
        return GroupCodes(GROUP, doubled.reshape(len(doubled), -1), scales, None)

    def misfit(self, index: Index = ()) -> str:
        """The one thing that w8 cannot hold."""
        return "a power of two that fp16 cannot hold"

    def non_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """Looks at the values only where a scale makes some of them too large."""
        if int(np.max(_mapped(self.scales), initial=0)) < _OVERFLOWING:
            return None
        size = math.prod(self.shape[1:])
        experts = range(self.shape[0])
        return count_bad(((expert * size, ~np.isfinite(self.load((expert,)))) for expert in experts), self.shape)

    def _parts(self, index: Index) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
        """Doubled values [..., groups, 32] and the exponents [..., groups] of their powers of two."""
        blocks = np.asarray(_mapped(self.blocks)[index])
        doubled = np.stack([_DOUBLED[blocks & 15], _DOUBLED[blocks >> 4]], axis=-1)
        return doubled.reshape(*blocks.shape[:-1], GROUP), _mapped(self.scales)[index].astype(np.int32) - _BIAS


def _mapped(tensor: RawTensor) -> NDArray[Any]:
    return np.memmap(tensor.file, "u1", "r", tensor.offset, tensor.shape)
