"""From the tensors of a quantized checkpoint's files to matrices: parts of one matrix found, checked and joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from colibri_build.checkpoint.quantization_matrix import I64, PackedMatrix, integers_of
from colibri_build.checkpoint.stored import PLAIN_DTYPES, RawTensor, StoredTensor
from colibri_build.errors import CheckpointError

Parts = Mapping[str, RawTensor]  # by suffix

_INTEGERS = ("I32", "I64")
_DAMAGED = "download the file again, or quantize the model again"


class Quantization(ABC):
    """How the matrices of one checkpoint are packed: the tensors X.<part> are the matrix X.weight."""

    needed: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def matrix(self, name: str, parts: Parts) -> PackedMatrix:
        """The matrix that these parts are. Raises CheckpointError where they contradict each other."""


def join_parts(found: Mapping[str, StoredTensor], quantization: Quantization | None) -> Mapping[str, StoredTensor]:
    """Every tensor of the files, packed ones as one matrix each. Raises CheckpointError, naming the tensor."""
    if quantization is None:
        _refuse_unexplained(found)
        return found
    grouped: dict[str, dict[str, RawTensor]] = {}
    joined: dict[str, StoredTensor] = {}
    for name, tensor in found.items():
        module, _, part = name.rpartition(".")
        if part in (*quantization.needed, *quantization.optional) and isinstance(tensor, RawTensor):
            grouped.setdefault(module, {})[part] = tensor
        else:
            joined[name] = tensor
    if not grouped:
        raise CheckpointError(
            f'no tensor is packed (there is no .{quantization.needed[0]}), but config.json has a "quantization_config"',
            hint='remove "quantization_config" from config.json if the weights are plain numbers',
        )
    for module, parts in grouped.items():
        _refuse_incomplete(module, parts, quantization)
        name = f"{module}.weight"
        if name in joined:
            raise CheckpointError(f"tensor {module} is there as {name} and packed", hint="remove the stale file")
        joined[name] = quantization.matrix(name, parts)
    return joined


def _refuse_unexplained(found: Mapping[str, StoredTensor]) -> None:
    packed = next((name for name in found if name.rpartition(".")[2] in ("qweight", "weight_packed")), None)
    if packed is not None:
        raise CheckpointError(
            f'{found[packed].file}: tensor {packed} is packed, but config.json has no "quantization_config"',
            hint="put the content of quantize_config.json or quant_config.json there, with its quant_method",
        )


def _refuse_incomplete(module: str, parts: Parts, quantization: Quantization) -> None:
    missing = [part for part in quantization.needed if part not in parts]
    if missing:
        raise CheckpointError(
            f"tensor {module}.{missing[0]} is missing; of {module} there is only {', '.join(sorted(parts))}",
            hint="the download is incomplete, or config.json belongs to another checkpoint",
        )


def is_idle_bias(name: str, found: Mapping[str, StoredTensor]) -> bool:
    """Whether a tensor is the bias of zeros that some programs save with every matrix that they pack."""
    module, _, part = name.rpartition(".")
    bias = found[name]
    if part != "bias" or not isinstance(found.get(f"{module}.weight"), PackedMatrix) or not bias.supported:
        return False
    return not np.any(bias.load())


def require_integers(tensor: RawTensor, *shape: int) -> None:
    """Raise CheckpointError unless a tensor is I32 of this shape; -1: of any size above 0."""
    if tensor.dtype != "I32":
        raise _wrong(tensor, f"has dtype {tensor.dtype}, packed codes are I32")
    _require_shape(tensor, shape)


def require_scales(tensor: RawTensor, *shape: int) -> None:
    """Raise CheckpointError unless a tensor holds floating-point numbers in this shape; -1: of any size above 0."""
    if not tensor.supported:
        raise _wrong(tensor, f"has dtype {tensor.dtype}, scales are {', '.join(PLAIN_DTYPES)}")
    _require_shape(tensor, shape)


def _require_shape(tensor: RawTensor, shape: tuple[int, ...]) -> None:
    fits = len(shape) == len(tensor.shape) and all(
        want == is_ or (want == -1 and is_ > 0) for want, is_ in zip(shape, tensor.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("*" if size < 0 else str(size) for size in shape)
        raise _wrong(tensor, f"has shape {list(tensor.shape)}, its matrix asks for [{wanted}]")


def read_order(tensor: RawTensor | None, n_inputs: int, n_groups: int, group_size: int) -> I64 | None:
    """The group of each input, where that is not runs of `group_size`. Raises CheckpointError."""
    if tensor is None:
        return None
    if tensor.dtype not in _INTEGERS:
        raise _wrong(tensor, f"has dtype {tensor.dtype}, group numbers are I32")
    _require_shape(tensor, (n_inputs,))
    order = integers_of(tensor)
    if (order == -1).all() or np.array_equal(order, np.arange(n_inputs) // group_size):
        return None  # never set, or without effect
    if order.min() < 0 or order.max() >= n_groups:
        raise _wrong(tensor, f"names groups {order.min()}..{order.max()}, there are {n_groups}")
    return order


def _wrong(tensor: RawTensor, what: str) -> CheckpointError:
    return CheckpointError(f"{tensor.file}: tensor {tensor.name} {what}", hint=_DAMAGED)


def damaged(tensor: RawTensor, what: str) -> CheckpointError:
    """The error for a part of a matrix that cannot be right."""
    return _wrong(tensor, what)
