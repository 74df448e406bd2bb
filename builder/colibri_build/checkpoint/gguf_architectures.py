"""The architectures of GGUF files that can be read, by `general.architecture`.

What a file leaves out is what llama.cpp computes for its architecture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from colibri_build.checkpoint.gguf_metadata import Metadata, common_values, head_size, rope_values

Values = dict[str, Any]  # of config.json
Facts = Mapping[str, Any]  # what the tensors tell: vocab_size, tied, attention_bias, rope_factors


@dataclass(frozen=True)
class Architecture:
    """One architecture. `permuted`: the converter interleaves the two halves of each head of q and k."""

    name: str
    read: Callable[[Metadata, Facts], Values]
    permuted: bool = False


def _plain(data: Metadata, facts: Facts) -> Values:
    """Plain attention, RoPE over whole heads."""
    values = common_values(data, facts)
    size = head_size(data, values)
    return {**values, "head_dim": size, **rope_values(data, facts, size, values["max_position_embeddings"])}


def _experts(data: Metadata, count: str) -> Values:
    return {count: data.size("expert_count"), "num_experts_per_tok": data.size("expert_used_count")}


def _read_llama(data: Metadata, facts: Facts) -> Values:
    """Llama, or with experts Mixtral."""
    values = _plain(data, facts)
    values["intermediate_size"] = data.size("feed_forward_length")
    data.only("tensor_data_layout", "Meta AI original pth")  # the interleaved rows that the converter makes, too
    if data.size("expert_count", 0, low=0) == 0:
        data.only("expert_used_count", 0)
        return {"model_type": "llama", **values, "attention_bias": facts["attention_bias"]}
    data.only("expert_weights_norm", True)
    data.only("expert_gating_func", 1)
    window = {"sliding_window": data.size("attention.sliding_window")} if data.has("attention.sliding_window") else {}
    return {"model_type": "mixtral", **values, **_experts(data, "num_local_experts"), **window}


_ALL = (Architecture("llama", _read_llama, permuted=True),)
ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType({item.name: item for item in _ALL})
