"""The object "model" of config.json: a ModelConfig as JSON, and every rule that its values obey."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any

from colibri_build.artifacts import GroupScore, ModelConfig, QkNorm, Scoring

_LARGEST = 2**31 - 1
_REQUIRED = tuple(field.name for field in fields(ModelConfig) if field.default is MISSING)
_DEFAULTS: Mapping[str, Any] = {
    field.name: field.default for field in fields(ModelConfig) if field.default is not MISSING
}


class ModelObjectError(ValueError):
    """What is wrong with the object, in words that follow the name of the file."""


def model_object(config: ModelConfig) -> dict[str, Any]:
    """The JSON object of a configuration; a field with a default is there only if it differs from it."""
    return {name: value for name, value in asdict(config).items() if name not in _DEFAULTS or value != _DEFAULTS[name]}


def read_model_object(value: Mapping[str, Any]) -> ModelConfig:
    """A configuration from JSON. Raises ModelObjectError for the first thing that is wrong."""
    missing, unknown = sorted(set(_REQUIRED) - set(value)), sorted(set(value) - set(_REQUIRED) - set(_DEFAULTS))
    if missing or unknown:
        parts = [f"missing {', '.join(missing)}"] if missing else []
        parts += [f"unknown {', '.join(unknown)}"] if unknown else []
        raise ModelObjectError(f'keys of "model": {"; ".join(parts)}')
    for name, item in value.items():
        expected, ok = _RULES[name]
        _require(name, item, expected, ok(item))
        _require(name, item, "absent where it is the default", name not in _DEFAULTS or item != _DEFAULTS[name])
    config = ModelConfig(**{name: _typed(name, item) for name, item in value.items()})
    for name, expected, consistent in _relations(config):
        _require(name, value.get(name, _DEFAULTS.get(name)), expected, consistent)
    return config


def _require(name: str, value: Any, expected: str, ok: bool) -> None:
    if not ok:
        raise ModelObjectError(f'"model.{name}" is {json.dumps(value)}, not {expected}')


def _typed(name: str, value: Any) -> Any:
    """Lists are tuples and names are enumerations in a ModelConfig."""
    if isinstance(value, list):
        return tuple(value)
    return _ENUMS[name](value) if name in _ENUMS else value


_ENUMS: Mapping[str, Callable[[str], Any]] = {"qk_norm": QkNorm, "scoring": Scoring, "group_score": GroupScore}


def _is_integer(value: Any, low: int = 0, high: int = _LARGEST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def _is_layer_list(value: Any) -> bool:
    return isinstance(value, list) and all(_is_integer(item) for item in value) and value == sorted(set(value))


Rule = tuple[str, Callable[[Any], bool]]
_SIZE: Rule = ("an integer above 0", lambda value: _is_integer(value, 1))
_COUNT: Rule = ("0 or more", _is_integer)
_FLAG: Rule = ("true or false", lambda value: isinstance(value, bool))
_POSITIVE: Rule = ("a finite number above 0", _is_positive)
_LAYERS: Rule = ("a list of layers in order", _is_layer_list)


def _one_of(names: type[QkNorm] | type[Scoring] | type[GroupScore]) -> Rule:
    return " or ".join(names), lambda value: value in list(names)


_RULES: Mapping[str, Rule] = {
    "family": ("a name", lambda value: isinstance(value, str)),
    **dict.fromkeys(("n_layers", "dim", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "max_context"), _SIZE),
    **dict.fromkeys(("hidden_dim", "n_experts", "top_k", "sliding_window", "rotary_dim"), _COUNT),
    **dict.fromkeys(("kv_rank", "q_rank", "value_dim"), _COUNT),
    **dict.fromkeys(("dense_hidden_dim", "shared_hidden_dim"), _COUNT),
    **dict.fromkeys(("norm_topk", "tied_embeddings", "rope_interleaved", "qkv_bias", "o_bias"), _FLAG),
    **dict.fromkeys(("shared_gate", "selection_bias", "layer_norm", "attention_sinks"), _FLAG),
    **dict.fromkeys(("router_bias", "expert_bias", "head_bias"), _FLAG),
    **dict.fromkeys(("rms_eps", "attention_scale", "clip_qkv", "rope_factor", "routed_scale"), _POSITIVE),
    **dict.fromkeys(("embedding_scale", "residual_scale", "logits_divisor"), _POSITIVE),
    **dict.fromkeys(("router_jitter", "swiglu_limit", "swiglu_alpha"), _POSITIVE),
    **dict.fromkeys(("n_groups", "top_groups"), _SIZE),
    **dict.fromkeys(("full_layers", "dense_layers"), _LAYERS),
    "rope_theta": ("a finite number, 1 or more", lambda value: _is_positive(value) and value >= 1),
    "rope_frequencies": (
        "a list of finite numbers, 0 or more",
        lambda value: isinstance(value, list) and all(item == 0 or _is_positive(item) for item in value),
    ),
    "qk_norm": _one_of(QkNorm),
    "scoring": _one_of(Scoring),
    "group_score": _one_of(GroupScore),
    "eos_ids": (
        "a list of ids",
        lambda value: isinstance(value, list) and all(_is_integer(i, -_LARGEST) for i in value),
    ),
    "bos_id": ("null or an id", lambda value: value is None or _is_integer(value, -_LARGEST)),
}


def _relations(c: ModelConfig) -> list[tuple[str, str, bool]]:
    """What fields must be to one another: (field, what it must be, whether it is)."""
    n_moe, high = c.n_expert_layers, c.vocab_size - 1
    rotary = c.rotary_dim or c.head_dim
    return [
        ("dense_layers", f"layers below n_layers = {c.n_layers}", all(layer < c.n_layers for layer in c.dense_layers)),
        ("full_layers", f"layers below n_layers = {c.n_layers}", all(layer < c.n_layers for layer in c.full_layers)),
        ("n_experts", "above 0 where a layer has experts, else 0", (c.n_experts > 0) == (n_moe > 0)),
        ("hidden_dim", "above 0 where a layer has experts, else 0", (c.hidden_dim > 0) == (n_moe > 0)),
        ("top_k", f"1..n_experts = {c.n_experts}", min(1, c.n_experts) <= c.top_k <= c.n_experts),
        ("dense_hidden_dim", "above 0 with dense_layers, else 0", (c.dense_hidden_dim > 0) == bool(c.dense_layers)),
        ("n_kv_heads", f"a divisor of n_heads = {c.n_heads}", c.n_heads % c.n_kv_heads == 0),
        ("head_dim", "an even number", c.head_dim % 2 == 0),
        ("rotary_dim", f"an even number up to head_dim = {c.head_dim}", rotary % 2 == 0 and rotary <= c.head_dim),
        ("rope_frequencies", f"{rotary // 2} numbers", len(c.rope_frequencies) in (0, rotary // 2)),
        ("kv_rank", "0 without heads that turn in part, and without kv heads of their own", _latent_fits(c)),
        ("q_rank", "0 without kv_rank", c.kv_rank > 0 or c.q_rank == 0),
        ("n_groups", f"a divisor of n_experts = {c.n_experts}", c.n_experts % c.n_groups == 0),
        ("top_groups", f"1..n_groups = {c.n_groups}", c.top_groups <= c.n_groups),
        ("top_k", f"at most the experts of {c.top_groups} groups", _groups_suffice(c)),
        ("scoring", "without norm_topk, groups and selection_bias, and top_k 2, for sparsemixer", _mixer_fits(c)),
        ("router_jitter", "0 without sparsemixer", c.scoring is Scoring.SPARSEMIXER or c.router_jitter == 0),
        ("swiglu_alpha", "above 0 with swiglu_limit, else 0", (c.swiglu_alpha > 0) == (c.swiglu_limit > 0)),
        ("router_bias", "false where no layer has experts", n_moe > 0 or not c.router_bias),
        ("expert_bias", "false where no layer has experts", n_moe > 0 or not c.expert_bias),
        ("group_score", "max where a group has one expert", _group_score_fits(c)),
        ("eos_ids", f"a list of ids 0..{high}", _are_ids(c.eos_ids, high)),
        ("bos_id", f"null or an id 0..{high}", c.bos_id is None or 0 <= c.bos_id <= high),
    ]


def _are_ids(ids: tuple[int, ...], high: int) -> bool:
    return bool(ids) and len(set(ids)) == len(ids) and min(ids) >= 0 and max(ids) <= high


def _latent_fits(c: ModelConfig) -> bool:
    return c.kv_rank == 0 or (0 < c.rotary_dim < c.head_dim and c.n_kv_heads == c.n_heads)


def _groups_suffice(c: ModelConfig) -> bool:
    return c.top_k <= c.n_experts // c.n_groups * c.top_groups


def _mixer_fits(c: ModelConfig) -> bool:
    plain = c.top_k == 2 and not c.norm_topk and c.n_groups == 1 and not c.selection_bias
    return plain or c.scoring is not Scoring.SPARSEMIXER


def _group_score_fits(c: ModelConfig) -> bool:
    return c.group_score is GroupScore.MAX or c.n_experts // c.n_groups >= 2
