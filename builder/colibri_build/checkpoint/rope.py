"""Rotary positions as a config.json describes them: `rope_parameters` (transformers 5), or `rope_theta`, `rope_scaling`
and `partial_rotary_factor` (before). Every rule is transformers' `modeling_rope_utils`, computed in binary64.

Two of its rules change their frequencies with the length of the text: dynamic NTK beyond max_position_embeddings, and
longrope beyond original_max_position_embeddings. The context is limited to where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.errors import CheckpointError

F64 = NDArray[np.float64]
_LEAST_THETA = 1.0  # below, angles would be larger than positions: sine and cosine are made for |angle| < 1e6


@dataclass(frozen=True)
class Rope:
    """Fields of ModelConfig. `frequencies` is empty where `theta` says all."""

    theta: float
    rotary_dim: int
    frequencies: tuple[float, ...]
    factor: float
    max_context: int


@dataclass(frozen=True)
class _Given:
    """What the rules compute with; keys of `scaling` that a rule reads count as taken."""

    scaling: ConfigKeys
    theta: float
    dim: int
    max_context: int
    original_context: int | None

    def base(self) -> F64:
        return np.asarray(1.0 / self.theta ** (np.arange(0, self.dim, 2, dtype=np.float64) / self.dim))

    def original(self) -> int:
        """The context before it was extended."""
        given = self.scaling.size("original_max_position_embeddings", default=self.max_context)
        return self.original_context or given

    def number(self, key: str, default: float | None = None) -> float:
        value = self.scaling.positive(key, default or 0.0)
        if value == 0.0:
            raise CheckpointError(f'{self.scaling.where}: "{key}" is missing', hint="this rope_type needs it")
        return value


def read_rope(
    keys: ConfigKeys,
    head_dim: int,
    *,
    theta: float,
    partial: float = 1.0,
    scaling: Mapping[str, Any] = MappingProxyType({}),
    mscale: bool = False,
) -> Rope:
    """Read every key that concerns RoPE. `theta`, `partial`, `scaling` are the class's defaults. Raises CheckpointError.

    mscale: the class takes the factor of sine and cosine from `short_mscale` (`long_mscale` beyond the original context).
    """
    max_context = keys.size("max_position_embeddings")
    original = keys.size("original_max_position_embeddings", default=0) or None
    rule, given_theta, given_partial = _merged(keys, scaling)
    if partial == 1.0 and given_partial not in (None, 1.0):
        raise keys.refused("partial_rotary_factor", given_partial, "1.0 in this family")
    partial = given_partial if given_partial is not None else partial
    rotary_dim = int(head_dim * partial)
    if rotary_dim < 2 or rotary_dim % 2 or rotary_dim > head_dim:
        raise CheckpointError(
            f"{keys.where}: RoPE turns {rotary_dim} of {head_dim} elements of a head",
            hint="partial_rotary_factor must give an even number up to head_dim",
        )
    kind = rule.take("rope_type") or rule.take("type") or "default"
    rule.take("type")
    rules = _MSCALE_RULES if mscale else _RULES
    if not isinstance(kind, str) or kind not in rules:
        raise rule.refused("rope_type", kind, ", ".join(rules))
    given = _Given(rule, given_theta or theta, rotary_dim, max_context, original)
    frequencies, factor, limit = rules[kind](given)
    rule.finish()
    listed = () if frequencies is None else tuple(float(value) for value in frequencies.astype(np.float32))
    return Rope(given.theta, 0 if rotary_dim == head_dim else rotary_dim, listed, factor, limit)


def _merged(keys: ConfigKeys, default: Mapping[str, Any]) -> tuple[ConfigKeys, float | None, float | None]:
    """The object with the rule's own keys; rope_theta and partial_rotary_factor, which stand inside or outside of it."""
    given = any(keys.take(key) is not None for key in ("rope_scaling", "rope_parameters"))
    found = {} if given else dict(default)
    theta, partial = _number(keys, "rope_theta"), _number(keys, "partial_rotary_factor")
    where = keys.where
    for key in ("rope_scaling", "rope_parameters"):
        value = keys.take(key)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise keys.refused(key, value, 'null or {"rope_type": "default"}')
        where = f"{keys.where}: {key}"
        inner = ConfigKeys(value, where)
        theta = _agreed(keys, key, "rope_theta", theta, _number(inner, "rope_theta"))
        partial = _agreed(keys, key, "partial_rotary_factor", partial, _number(inner, "partial_rotary_factor"))
        own = {name: item for name, item in value.items() if name not in ("rope_theta", "partial_rotary_factor")}
        if found and own and found != own:
            raise CheckpointError(
                f'{keys.where}: "rope_scaling" and "rope_parameters" differ',
                hint="keep the one that the model was trained with",
            )
        found = found or own
    return ConfigKeys(found, where), theta, partial


def _number(keys: ConfigKeys, key: str) -> float | None:
    low = _LEAST_THETA if key == "rope_theta" else 0.0
    return keys.positive(key, 0.0, low=low) if keys.take(key) is not None else None


def _agreed(keys: ConfigKeys, key: str, name: str, outer: float | None, inner: float | None) -> float | None:
    if outer is not None and inner is not None and outer != inner:
        raise CheckpointError(
            f'{keys.where}: "{name}" = {outer} and "{key}.{name}" = {inner} differ',
            hint="keep the value that the model was trained with",
        )
    return inner if inner is not None else outer


Rule = Callable[[_Given], tuple[F64 | None, float, int]]  # frequencies (None: from theta), factor, longest context


def _default(given: _Given) -> tuple[None, float, int]:
    return None, 1.0, given.max_context


def _linear(given: _Given) -> tuple[F64, float, int]:
    return given.base() / given.number("factor"), 1.0, given.max_context


def _dynamic(given: _Given) -> tuple[None, float, int]:
    given.number("factor")
    given.original()
    return None, 1.0, given.max_context


def _yarn(given: _Given) -> tuple[F64, float, int]:
    """YaRN (Peng et al. 2023): high frequencies stay, low ones are divided by the factor, a ramp lies between."""
    if given.theta <= 1:
        raise CheckpointError(f'{given.scaling.where}: "rope_theta" = {given.theta}', hint="YaRN needs one above 1")
    original = given.original()
    factor = given.scaling.positive("factor", given.max_context / original)
    fast, slow = given.scaling.positive("beta_fast", 32.0), given.scaling.positive("beta_slow", 1.0)
    low, high = (_yarn_dimension(given, turns, original) for turns in (fast, slow))
    if given.scaling.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, given.dim - 1)
    high = high + 0.001 if low == high else high
    ramp = np.clip((np.arange(given.dim // 2) - low) / (high - low), 0, 1)
    base = given.base()
    return base / factor * ramp + base * (1 - ramp), _yarn_factor(given.scaling, factor), given.max_context


def _yarn_dimension(given: _Given, turns: float, original: int) -> float:
    """The element whose frequency makes `turns` turns in the original context."""
    return given.dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(given.theta))


def _yarn_factor(scaling: ConfigKeys, factor: float) -> float:
    def grown(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    given = scaling.positive("attention_factor", 0.0)
    mscale, all_dim = scaling.number("mscale", 0.0), scaling.number("mscale_all_dim", 0.0)
    if given:
        return given
    return grown(mscale) / grown(all_dim) if mscale and all_dim else grown(1.0)


def _llama3(given: _Given) -> tuple[F64, float, int]:
    """Llama 3.1: as YaRN in spirit, with the ramp over wavelengths."""
    factor, original = given.number("factor"), given.original()
    low, high = given.number("low_freq_factor"), given.number("high_freq_factor")
    if low >= high:
        raise CheckpointError(
            f'{given.scaling.where}: "low_freq_factor" = {low} is not below "high_freq_factor" = {high}',
            hint="correct the configuration",
        )
    base = given.base()
    turns = original * base / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - smooth) * base / factor + smooth * base, 1.0, given.max_context


def _longrope(given: _Given) -> tuple[F64, float, int]:
    """LongRoPE within the original context: one factor for each frequency."""
    original = given.original()
    if original > given.max_context:
        raise CheckpointError(
            f"{given.scaling.where}: the original context of {original} is longer than max_position_embeddings = "
            f"{given.max_context}",
            hint="correct the configuration",
        )
    factor = given.scaling.positive("factor", given.max_context / original)
    _factors(given, "long_factor")
    grown = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    attention = given.scaling.positive("attention_factor", grown)
    return given.base() / _factors(given, "short_factor"), attention, original


def _longrope_mscale(given: _Given) -> tuple[F64, float, int]:
    """LongRoPE with the factor that the configuration names."""
    frequencies, _, limit = _longrope(given)
    given.number("long_mscale")
    return frequencies, given.number("short_mscale"), limit


def _factors(given: _Given, key: str) -> F64:
    value = given.scaling.take(key)
    ok = isinstance(value, list) and all(isinstance(item, int | float) and item > 0 for item in value)
    if not ok or len(value) != given.dim // 2:
        raise given.scaling.refused(key, value, f"a list of {given.dim // 2} numbers above 0")
    return np.asarray(value, np.float64)


_RULES: Mapping[str, Rule] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
}
_MSCALE_RULES: Mapping[str, Rule] = {"default": _default, "longrope": _longrope_mscale}
