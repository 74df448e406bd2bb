"""The tensors of one layer with AWQ's scales folded in, of which no more is in memory than somebody holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from colibri_build.artifacts import F32
from colibri_build.errors import QuantizeError


class FoldedWeights(Mapping[str, F32]):
    """By short name; each access calls `load`, whose array is its own, and applies what was folded so far.

    Of one tensor, columns are multiplied before rows are divided. Raises QuantizeError where a folded value overflows.
    """

    def __init__(self, names: Iterable[str], load: Callable[[str], F32], prefix: str) -> None:
        self._names = dict.fromkeys(names)
        self._load, self._prefix = load, prefix  # prefix: of names in messages
        self._factors: dict[str, F32] = {}
        self._divisors: dict[str, F32] = {}

    def multiply_columns(self, name: str, factors: F32) -> None:
        """Multiply the columns of a matrix with `factors` [inputs]."""
        assert name not in self._factors and name not in self._divisors
        self._factors[name] = factors

    def divide(self, name: str, divisors: F32) -> None:
        """Divide the rows of a matrix, or the elements of a vector, by `divisors`."""
        assert name not in self._divisors
        self._divisors[name] = divisors

    def __getitem__(self, name: str) -> F32:
        values = self._load(name)
        factors, divisors = self._factors.get(name), self._divisors.get(name)
        with np.errstate(over="ignore"):  # reported below
            if factors is not None:
                values *= factors
            if divisors is not None:
                values /= divisors if values.ndim == 1 else divisors[:, None]
        if not (factors is None and divisors is None) and not np.all(np.isfinite(values)):
            raise QuantizeError(f"{self._prefix}{name}: folding the AWQ scales overflows float32", hint="--method rtn")
        return values

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
