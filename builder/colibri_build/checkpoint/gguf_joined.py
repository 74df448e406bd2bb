"""Published tensors that a GGUF file has in two: gate and up of families that join them, keys and values of latent heads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from colibri_build.artifacts import F32
from colibri_build.checkpoint.families.names import Names
from colibri_build.checkpoint.gguf_header import DOWNLOAD_AGAIN, GgufEntry
from colibri_build.checkpoint.gguf_tensor import GgufTensor
from colibri_build.checkpoint.stored import Index, StoredTensor
from colibri_build.checkpoint.transposed import TransposedTensor
from colibri_build.errors import CheckpointError

_PARTS = re.compile(r"blk\.(\d+)\.(ffn_(?:gate|up)_(exps|shexp)|attn_[kv]_b)\.(weight|bias)")


def joined_tensors(entries: Iterable[GgufEntry], names: Names) -> tuple[dict[str, StoredTensor], list[GgufEntry]]:
    """Those that are made of two, by published name; and the entries that are none's part."""
    pairs: dict[str, dict[str, GgufEntry]] = {}
    rest: list[GgufEntry] = []
    for entry in entries:
        found = _PARTS.fullmatch(entry.name)
        name = _published(found, names) if found else None
        if found is None or name is None:
            rest.append(entry)
        else:
            pairs.setdefault(f"model.layers.{found[1]}.{name}", {})[found[2]] = entry
    return {name: _joined(name, parts, names.alternating) for name, parts in pairs.items()}, rest


def _published(found: re.Match[str], names: Names) -> str | None:
    """The published tensor that a part belongs to, below its layer; None: it is one by itself."""
    where, end = found[3], found[4]
    if names.alternating and where == "exps":
        return f"{names.fused}.gate_up_proj{'_bias' if end == 'bias' else ''}"
    if end == "bias" or (where and not names.joined):
        return None
    if where is None:
        return "self_attn.kv_b_proj.weight"
    return f"{names.experts if where == 'exps' else names.shared}.input_linear.weight"


def _joined(name: str, parts: Mapping[str, GgufEntry], alternating: bool) -> StoredTensor:
    """The parts in order of name are gate and up, or k and v."""
    found = [parts[part] for part in sorted(parts)]
    if len(found) != 2:
        raise CheckpointError(
            f"{found[0].file}: {found[0].name} is there, but not the other half of {name}", hint=DOWNLOAD_AGAIN
        )
    first, second = found
    if ".attn_" in first.name:
        return _latent(name, first, second)
    if not alternating:
        return _gate_and_up(name, first, second)
    both = _alternating(name, first, second)
    return TransposedTensor.of(both) if len(both.shape) == 3 else both


def _gate_and_up(name: str, gate: GgufEntry, up: GgufEntry) -> GgufTensor:
    """[..., 2 * width, dim]: of each expert the rows of gate, then those of up."""
    if gate.shape != up.shape or len(gate.shape) < 2:
        raise _differ(gate, up)
    *outer, width, cols = gate.shape
    rows = np.arange(gate.rows).reshape(-1, width)
    order = np.concatenate([rows, rows + gate.rows], axis=1).ravel()
    return GgufTensor(gate.file, name, _kinds(gate, up), (*outer, 2 * width, cols), (gate, up), order=order)


def _alternating(name: str, gate: GgufEntry, up: GgufEntry) -> GgufTensor:
    """[experts, 2 * width, dim], or biases [experts, 2 * width]: rows of gate and of up in turns."""
    if gate.shape != up.shape or len(gate.shape) not in (2, 3):
        raise _differ(gate, up)
    bias = len(gate.shape) == 2
    n_rows = gate.rows * (gate.cols if bias else 1)
    order = np.stack([np.arange(n_rows), np.arange(n_rows) + n_rows], axis=-1).ravel()
    shape = (gate.shape[0], 2 * gate.shape[1], *gate.shape[2:])
    return GgufTensor(gate.file, name, _kinds(gate, up), shape, (gate, up), order=order, by_element=bias)


def _latent(name: str, key: GgufEntry, value: GgufEntry) -> StoredTensor:
    if len(key.shape) != 3 or len(value.shape) != 3 or (key.shape[0], key.shape[1]) != (value.shape[0], value.cols):
        raise _differ(key, value)
    rows = key.shape[0] * (key.shape[2] + value.shape[1])
    return LatentTensor(key.file, name, _kinds(key, value), (rows, value.cols), key, value)


def _differ(first: GgufEntry, second: GgufEntry) -> CheckpointError:
    return CheckpointError(
        f"{first.file}: {first.name} {list(first.shape)} and {second.name} {list(second.shape)} do not belong together",
        hint=DOWNLOAD_AGAIN,
    )


def _kinds(first: GgufEntry, second: GgufEntry) -> str:
    return first.kind.name if first.kind == second.kind else f"{first.kind.name} and {second.kind.name}"


@dataclass(frozen=True)
class LatentTensor(StoredTensor):
    """kv_b_proj [heads * (keys + values), rank] of `key` [heads, rank, keys], transposed, and `value` [heads, values, rank].

    Its codes would lie across the groups: it is quantized anew.
    """

    key: GgufEntry
    value: GgufEntry

    @property
    def supported(self) -> bool:
        """Whether the library can dequantize both."""
        return self._part(self.key).supported and self._part(self.value).supported

    @property
    def by_rows(self) -> bool:
        """Any part of it needs all of it."""
        return False

    def load(self, index: Index = ()) -> F32:
        """All of it is dequantized, one layer's."""
        keys, values = self._part(self.key).load().swapaxes(1, 2), self._part(self.value).load()
        whole: F32 = np.concatenate([keys, values], axis=1).reshape(self.shape)
        return np.asarray(whole[index])

    def non_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """As for any other tensor."""
        bad = ~np.isfinite(self.load())
        if not bad.any():
            return None
        first = np.unravel_index(int(bad.argmax()), self.shape)
        return int(np.count_nonzero(bad)), tuple(int(i) for i in first)

    def _part(self, entry: GgufEntry) -> GgufTensor:
        return GgufTensor(entry.file, entry.name, entry.kind.name, entry.shape, (entry,))
