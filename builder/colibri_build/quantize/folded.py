"""The tensors of one layer with AWQ's scales folded in, of which no more is in memory than somebody holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from colibri_build.artifacts import F32
from colibri_build.errors import QuantizeError


class FoldedWeights(Mapping[str, F32]):
    """By short name; each access calls `load`, whose array is its own, and applies what was folded so far, in that order.

    Raises QuantizeError where a folded value overflows.
    """

    def __init__(self, names: Iterable[str], load: Callable[[str], F32], prefix: str) -> None:
        self._names = dict.fromkeys(names)
        self._load, self._prefix = load, prefix  # prefix: of names in messages
        self._folds: dict[str, list[tuple[np.ufunc, F32]]] = {}

    def multiply_columns(self, name: str, factors: F32) -> None:
        """Multiply the columns of a matrix with `factors` [inputs]."""
        self._folds.setdefault(name, []).append((np.multiply, factors))

    def divide(self, name: str, divisors: F32) -> None:
        """Divide the rows of a matrix, or the elements of a vector, by `divisors`."""
        self._folds.setdefault(name, []).append((np.divide, divisors))

    def __getitem__(self, name: str) -> F32:
        values, folds = self._load(name), self._folds.get(name, [])
        with np.errstate(over="ignore"):  # reported below
            for fold, numbers in folds:
                is_of_rows = fold is np.divide and values.ndim > 1
                fold(values, numbers[:, None] if is_of_rows else numbers, out=values)
        if folds and not np.all(np.isfinite(values)):
            raise QuantizeError(f"{self._prefix}{name}: folding the AWQ scales overflows float32", hint="--method rtn")
        return values

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
