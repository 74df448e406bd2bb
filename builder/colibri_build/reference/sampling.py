"""Sampling and the logits hash, bit for bit as docs/numerics.md defines them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32
from colibri_build.reference.numbers import exp, lane_sum

_MASK = (1 << 64) - 1
_HASH_START = 14695981039346656037
_HASH_FACTOR = 6364136223846793005


class SplitMix64:
    """The random numbers of a seeded generation: a 64-bit counter, mixed."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def next(self) -> int:
        """Return the next number, 0 .. 2^64 - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def uniform(self) -> np.float32:
        """Return a multiple of 2^-24 in [0, 1)."""
        return np.float32(self.next() >> 40) * np.float32(2.0**-24)


def pick_greedy(logits: F32) -> int:
    """Index of the largest of finite logits [vocab_size]; ties take the lower index."""
    return int(np.argmax(logits))


def pick(logits: F32, temperature: float, top_p: float, rng: SplitMix64) -> int:
    """Choose a token from finite logits [vocab_size]; temperature 0 is greedy and draws no number.

    `temperature` and `top_p` (0 < top_p <= 1) are rounded to binary32 first. Raises ValueError for logits that are not
    finite.
    """
    if not np.all(np.isfinite(logits)):
        raise ValueError(f"{np.count_nonzero(~np.isfinite(logits))} of {logits.size} logits are not finite")
    if np.float32(temperature) == 0:
        return pick_greedy(logits)
    with np.errstate(over="ignore"):
        e = exp((logits - np.max(logits)) * (np.float32(1) / np.float32(temperature)))
    order, sums = _kept(logits, e, np.float32(top_p))
    target = rng.uniform() * sums[-1]
    above = np.flatnonzero(sums > target)
    return int(order[above[0] if above.size else -1])


def _kept(logits: F32, e: F32, top_p: np.float32) -> tuple[NDArray[np.intp], F32]:
    """Return indices in the order of the draw, cut at top_p, and their sequential running sums of e."""
    if top_p >= 1:
        return np.arange(logits.size), _running_sum(e)
    order = np.argsort(-logits, kind="stable")
    sums = _running_sum(e[order])
    reached = np.flatnonzero(sums >= top_p * lane_sum(e))
    n = int(reached[0]) + 1 if reached.size else sums.size
    return order[:n], sums[:n]


def _running_sum(terms: F32) -> F32:
    """Sequential binary32 sums; np.add.accumulate is defined as one addition after another."""
    return np.asarray(np.add.accumulate(terms, dtype=np.float32), np.float32)


@lru_cache(maxsize=4)
def _powers(n: int) -> NDArray[np.uint64]:
    """Factor^n .. Factor^0 mod 2^64, [n + 1]."""
    factors = np.full(n + 1, _HASH_FACTOR, np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)[::-1]


class LogitsHash:
    """A polynomial over the bits of every logits vector that a token was chosen from, mod 2^64."""

    def __init__(self) -> None:
        self._value = _HASH_START

    def update(self, logits: F32) -> None:
        """Append one vector of float32."""
        bits = np.ascontiguousarray(logits, dtype=np.float32).view(np.uint32).astype(np.uint64)
        powers = _powers(bits.size)
        tail = int(np.sum(bits * powers[1:], dtype=np.uint64))
        self._value = (self._value * int(powers[0]) + tail) & _MASK

    def hexdigest(self) -> str:
        """Return the hash as 16 hexadecimal digits."""
        return f"{self._value:016x}"
