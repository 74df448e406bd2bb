"""Sets of code points as boolean arrays [0x110000]."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import CodePoints
from colibri_build.checkpoint.unicode_classes import NUMERIC, PARTITION, SPACE

CharSet = NDArray[np.bool_]
CODE_POINTS = 0x110000
_LETTERS = {"L": "Ultmo", "Lu": "U", "Ll": "l", "Lt": "t", "Lm": "m", "Lo": "o", "M": "M", "N": "N", "P": "P", "S": "S"}


@cache
def _letters(runs: str) -> NDArray[np.bytes_]:
    """One letter for each code point."""
    words = runs.split()
    letters = np.array([word[0] for word in words], "S1")
    return np.repeat(letters, [int(word[1:], 36) for word in words])


def _frozen(values: CharSet) -> CharSet:
    values.flags.writeable = False
    return values


@cache
def category(name: str) -> CharSet:
    r"""The set of \p{name}. Raises KeyError for a name that is not among ours."""
    return _frozen(np.isin(_letters(PARTITION), [letter.encode() for letter in _LETTERS[name]]))


@cache
def space() -> CharSet:
    r"""The set of \s."""
    return _frozen(_letters(SPACE) == b"x")


@cache
def numeric() -> CharSet:
    """What the Digits pre-tokenizer isolates."""
    return _frozen(_letters(NUMERIC) == b"x")


def chars(first: int, last: int) -> CharSet:
    """The code points first .. last."""
    values = np.zeros(CODE_POINTS, bool)
    values[first : last + 1] = True
    return values


def ranges(members: CharSet) -> CodePoints:
    """The set as ranges (first, last), ascending and apart."""
    edges = np.flatnonzero(np.diff(members.astype(np.int8), prepend=0, append=0))
    return tuple((int(first), int(end) - 1) for first, end in edges.reshape(-1, 2))
