"""The tensors of a GGUF file under the names that the family's checkpoints are published with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from colibri_build.checkpoint.families.names import LAYER_NAMES, PROJECTIONS, TOP_NAMES, Names
from colibri_build.checkpoint.gguf_header import GgufEntry, short
from colibri_build.checkpoint.gguf_joined import joined_tensors
from colibri_build.checkpoint.gguf_tensor import GgufTensor, Rows
from colibri_build.checkpoint.stored import StoredTensor
from colibri_build.checkpoint.transposed import TransposedTensor
from colibri_build.errors import CheckpointError

ROPE_FACTORS = "rope_freqs.weight"
HEAD = "output.weight"
_TOP = {"token_embd.weight": "embedding", "output_norm.weight": "final_norm", HEAD: "lm_head"}
_LAYER = {
    "attn_norm.weight": "attn_norm",
    "attn_q.weight": "q",
    "attn_k.weight": "k",
    "attn_v.weight": "v",
    "attn_output.weight": "o",
    "attn_q.bias": "q_bias",
    "attn_k.bias": "k_bias",
    "attn_v.bias": "v_bias",
    "attn_output.bias": "o_bias",
    "attn_q_norm.weight": "q_norm",
    "attn_k_norm.weight": "k_norm",
    "ffn_norm.weight": "ffn_norm",
    "post_attention_norm.weight": "ffn_norm",  # of families that do not have the former
    "ffn_gate_inp.weight": "router",
    "ffn_gate_inp.bias": "router_bias",
    "attn_sinks.weight": "sinks",
    "ffn_gate_inp_shexp.weight": "shared_gate",
    "exp_probs_b.bias": "selection_bias",
}
_LATENT = {
    "attn_q_a.weight": "self_attn.q_a_proj.weight",
    "attn_q_a_norm.weight": "self_attn.q_a_layernorm.weight",
    "attn_q_b.weight": "self_attn.q_b_proj.weight",
    "attn_kv_a_mqa.weight": "self_attn.kv_a_proj_with_mqa.weight",
    "attn_kv_a_norm.weight": "self_attn.kv_a_layernorm.weight",
    "attn_kv_b.weight": "self_attn.kv_b_proj.weight",
}
_BLOCK = re.compile(r"blk\.(\d+)\.(.+)")
_DENSE = re.compile(r"ffn_(gate|up|down)\.weight")
_EXPERTS = re.compile(r"ffn_(gate|up|down|gate_up)_exps\.weight")
_ONE_EXPERT = re.compile(r"ffn_(gate|up|down)\.(\d+)\.weight")  # as files of 2023 have them
_SHARED = re.compile(r"ffn_(gate|up|down)_shexp\.weight")
_FUSED_DOWN = {"ffn_down_exps.weight": "down_proj", "ffn_down_exps.bias": "down_proj_bias"}
_EXTRA = re.compile(r"nextn\..+")  # predicts several tokens at once


@dataclass(frozen=True)
class Layout:
    """How one file's tensors become published ones. `permuted`: (heads of q, heads of k) whose rows are interleaved."""

    names: Names
    permuted: tuple[int, int] | None = None


def published_tensors(entries: Iterable[GgufEntry], layout: Layout) -> dict[str, StoredTensor]:
    """By published name. Raises CheckpointError for a tensor that has no such name."""
    found, rest = joined_tensors(entries, layout.names)
    for entry in rest:
        for tensor in _tensors_of(entry, layout):
            if tensor.name in found:
                raise CheckpointError(
                    f"{entry.file}: {entry.name} and another tensor are both {tensor.name}",
                    hint="use a file that llama.cpp's converter made",
                )
            found[tensor.name] = tensor
    return found


def _tensors_of(entry: GgufEntry, layout: Layout) -> Iterator[StoredTensor]:
    if entry.name == ROPE_FACTORS:
        return
    block = _BLOCK.fullmatch(entry.name)
    if entry.name in _TOP:
        yield _tensor(entry, TOP_NAMES[_TOP[entry.name]])
    elif block is not None:
        yield from _tensors_of_layer(entry, f"model.layers.{block[1]}.", block[2], layout)
    else:
        raise _unknown(entry)


def _tensors_of_layer(entry: GgufEntry, prefix: str, name: str, layout: Layout) -> Iterator[StoredTensor]:
    names = layout.names
    ours = _LAYER.get(name, "")
    if published := names.layer.get(ours) or LAYER_NAMES.get(ours):
        yield _attention_or_norm(entry, prefix + published, ours, layout)
    elif name in _LATENT:
        yield _tensor(entry, prefix + _LATENT[name])
    elif _EXTRA.fullmatch(name):
        yield _tensor(entry, prefix + name)
    elif found := _DENSE.fullmatch(name):
        yield _tensor(entry, f"{prefix}{names.dense}.{PROJECTIONS[found[1]]}.weight")
    elif found := _SHARED.fullmatch(name):
        last = "output_linear" if names.joined else PROJECTIONS[found[1]]
        yield _tensor(entry, f"{prefix}{names.shared}.{last}.weight")
    elif found := _ONE_EXPERT.fullmatch(name):
        yield _tensor(entry, _expert_name(prefix, names, int(found[2]), found[1]))
    elif names.alternating and name in _FUSED_DOWN:
        tensor = _tensor(entry, f"{prefix}{names.fused}.{_FUSED_DOWN[name]}")
        yield TransposedTensor.of(tensor) if len(entry.shape) == 3 else tensor
    elif (found := _EXPERTS.fullmatch(name)) and len(entry.shape) == 3:
        yield from _experts(entry, prefix, found[1], names)
    else:
        raise _unknown(entry)


def _experts(entry: GgufEntry, prefix: str, part: str, names: Names) -> Iterator[GgufTensor]:
    """The tensors of single experts in [experts, rows, cols]; or all of them, where they are published as one."""
    if names.joined:
        yield _tensor(entry, f"{prefix}{names.experts}.{'output' if part == 'down' else 'input'}_linear.weight")
        return
    parts = part.split("_")
    n_rows = entry.shape[1] // len(parts)
    for expert in range(entry.shape[0]):
        for number, name in enumerate(parts):
            first = (expert * len(parts) + number) * n_rows
            yield _tensor(entry, _expert_name(prefix, names, expert, name), (n_rows, entry.cols), first=first)


def _expert_name(prefix: str, names: Names, expert: int, part: str) -> str:
    return f"{prefix}{names.experts}.{expert}.{names.expert_parts[part]}.weight"


def _attention_or_norm(entry: GgufEntry, published: str, ours: str, layout: Layout) -> GgufTensor:
    heads = dict(zip("qk", layout.permuted, strict=True)) if layout.permuted else {}
    if ours[0] in heads and ours in ("q", "k", "q_bias", "k_bias"):
        n_rows = entry.shape[0]
        if n_rows % (2 * heads[ours[0]]):
            raise CheckpointError(
                f"{entry.file}: tensor {entry.name} has {n_rows} rows, no multiple of {heads[ours[0]]} heads of pairs",
                hint="download the file again",
            )
        order = _pairs_apart(n_rows, heads[ours[0]])
        return _tensor(entry, published, order=order, by_element=len(entry.shape) == 1)
    if ours == "shared_gate" and len(entry.shape) == 1:
        return _tensor(entry, published, (1, *entry.shape))
    return _tensor(entry, published)


def _pairs_apart(n_rows: int, n_heads: int) -> Rows:
    """Where published rows are. The two that RoPE turns together are neighbours in the file, half a head apart there."""
    return np.arange(n_rows).reshape(n_heads, -1, 2).swapaxes(1, 2).ravel()


def _tensor(
    entry: GgufEntry,
    published: str,
    shape: tuple[int, ...] | None = None,
    *,
    first: int = 0,
    order: Rows | None = None,
    by_element: bool = False,
) -> GgufTensor:
    shape = entry.shape if shape is None else shape
    return GgufTensor(entry.file, published, entry.kind.name, shape, (entry,), first, order, by_element)


def _unknown(entry: GgufEntry) -> CheckpointError:
    return CheckpointError(
        f"{entry.file}: tensor {short(entry.name)} {list(entry.shape)} is not supported",
        hint="take the model as transformers publishes it, if it has one more part than the family's others",
    )
