"""Codes that the checkpoint holds already are stored as they are, wherever the format can hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from colibri_build.artifacts import Format, GroupCodes, Kind, Model, PackedTensor, QuantizedTensor, TensorSpec
from colibri_build.errors import QuantizeError
from colibri_build.layout import ALLOWED_FORMATS, GROUP_SIZES
from colibri_build.quantize.policy import formats_of
from colibri_build.quantize.report import TakenOver
from colibri_build.reference.numbers import group_count
from colibri_build.tensor_specs import tensor_specs

_DEFAULT_GROUP_SIZE = 128
_WITH_CODES = (Format.W4, Format.W8)


def default_group_size(model: Model) -> int:
    """The largest of ours that divides every group of the checkpoint's own quantization; 128 without one."""
    sizes = {packed.group_size for packed in model.packed.values() if packed.group_size}
    fitting = [size for size in GROUP_SIZES if all(own % size == 0 for own in sizes)]
    return max(fitting) if sizes and fitting else _DEFAULT_GROUP_SIZE


def own_formats(model: Model, bits: int, group_size: int) -> dict[Kind, Format]:
    """W4 for each kind whose tensors can all be taken over in it; nothing where `bits` asks for 8.

    One that cannot keeps the policy's format for its kind: rounded anew, 4 bits would lose more. Codes are loaded to
    know that, but only of kinds to which the policy gives another format: never those of experts, nearly all weights.
    """
    if bits != 4:
        return {}
    specs: dict[Kind, list[TensorSpec]] = {}
    for spec in tensor_specs(model.config):
        specs.setdefault(spec.kind, []).append(spec)
    policy = formats_of(model.config, bits, {})
    asked = [kind for kind in specs if policy[kind] is not Format.W4 and Format.W4 in ALLOWED_FORMATS[kind]]
    fitting = [kind for kind in asked if all(_fits(model, spec, Format.W4, group_size) for spec in specs[kind])]
    return dict.fromkeys(fitting, Format.W4)


def check_method(model: Model, method: str, formats: Mapping[Kind, Format], group_size: int) -> None:
    """Raise QuantizeError for a method that would scale weights of which some codes can stay."""
    if method == "rtn" or not any(_fits(model, s, formats[s.kind], group_size) for s in tensor_specs(model.config)):
        return
    held = sum(1 for packed in model.packed.values() if packed.group_size)
    raise QuantizeError(
        f"{model.source} is quantized already ({held} tensors): method {method} would change its codes",
        hint="--method rtn takes over those that fit as they are, or quantize the checkpoint that it was made from",
    )


def _fits(model: Model, spec: TensorSpec, fmt: Format, group_size: int) -> bool:
    packed = model.packed.get(spec.name)
    return packed is not None and not isinstance(_codes(packed, fmt, group_size), str)


@dataclass
class Takeover:
    """Takes over the packed tensors of one model, and counts what it could not take over, and why."""

    packed: Mapping[str, PackedTensor]
    group_size: int  # of the model folder
    taken: Counter[Kind] = field(default_factory=Counter)
    requantized: dict[Kind, Counter[str]] = field(default_factory=dict)  # by reason

    def tensor(self, spec: TensorSpec, fmt: Format) -> QuantizedTensor | str | None:
        """The checkpoint's codes in `fmt`, exactly; or why `fmt` cannot hold them; None where there are none."""
        packed = self.packed.get(spec.name)
        if packed is None or fmt not in _WITH_CODES:
            return None
        return take_over(spec, packed, fmt, self.group_size)

    def count(self, kind: Kind, outcome: bool | str | None) -> None:
        """Count what became of a tensor: taken over (True), rounded anew for a reason, or nothing to take over."""
        if isinstance(outcome, str):
            self.requantized.setdefault(kind, Counter())[outcome] += 1
        elif outcome:
            self.taken[kind] += 1

    def rows(self) -> tuple[TakenOver, ...]:
        """One row for each kind that has packed tensors, in the order of `Kind`."""
        kinds = [kind for kind in Kind if self.taken[kind] or kind in self.requantized]
        return tuple(TakenOver(kind, self.taken[kind], dict(self.requantized.get(kind, {}))) for kind in kinds)


def take_over(spec: TensorSpec, packed: PackedTensor, fmt: Format, group_size: int) -> QuantizedTensor | str:
    """`packed` in w4 or w8 with groups of `group_size`, every value as it was; or why that cannot be."""
    codes = _codes(packed, fmt, group_size)
    return codes if isinstance(codes, str) else _stored(spec, codes, fmt, group_size)


def _codes(packed: PackedTensor, fmt: Format, group_size: int) -> GroupCodes | str:
    """The codes that `fmt` can hold; or why it cannot. Loads them only where nothing else speaks against it."""
    if fmt not in _WITH_CODES:
        return f"{fmt} holds no codes"
    if not packed.group_size:
        return packed.misfit()
    if packed.bits > 4 and fmt is Format.W4:
        return f"{packed.bits}-bit codes do not fit w4"
    if packed.group_size % group_size:
        return f"groups of {packed.group_size} are not groups of {group_size}"
    codes = packed.load()
    return packed.misfit() if codes is None else codes


def _stored(spec: TensorSpec, own: GroupCodes, fmt: Format, group_size: int) -> QuantizedTensor:
    """Groups that are split repeat their scale. In w8, a code is what it was above its zero point: -15..15."""
    n_groups = group_count(spec.cols, group_size)
    repeats = own.group_size // group_size
    scales = np.repeat(own.scales, repeats, axis=1)[:, :n_groups]
    if fmt is Format.W4 and own.zeros is not None:
        zeros = np.repeat(own.zeros, repeats, axis=1)[:, :n_groups]
        return QuantizedTensor(spec, fmt, own.codes, scales, zeros)
    codes = own.codes.astype(np.int8, copy=False)
    if own.zeros is not None:
        codes = codes - np.repeat(own.zeros.astype(np.int8), own.group_size, axis=1)[:, : spec.cols]
    return QuantizedTensor(spec, fmt, codes, scales)
