"""Lays out the pre-tokenizer: classes of code points, and the alternatives over them (runtime_c/tokenizer/split.h)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import CodePoints, SplitAlternative, SplitStage
from colibri_build.errors import RenderError

_CODE_POINTS = 0x110000
MOST_ATOMS, MOST_STAGES, MOST_SETS, MOST_CLASSES = 8, 8, 63, 64  # as in split.h


@dataclass(frozen=True)
class SplitTables:
    """Numbers of the tables. Rows of `alternatives`: first, not before, atoms, number of them, tail, number of them."""

    class_runs: tuple[int, ...]
    ascii_classes: bytes
    atoms: tuple[tuple[int, int, int], ...]
    alternatives: tuple[tuple[int, int, int, int, int, int], ...]
    stages: tuple[tuple[int, int, int], ...]  # first, alternatives, number of them


def split_tables(stages: Sequence[SplitStage]) -> SplitTables:
    """Lay out the stages. Raises RenderError for more than the runtime has room for."""
    sets = list(dict.fromkeys(_sets(alternative for stage in stages for alternative in stage)))
    classes, masks = _partition(sets)
    layout = _Layout(dict(zip(sets, masks, strict=True)))
    starts = [layout.place(stage) for stage in stages]
    placed = tuple(
        (layout.first_of(start, len(stage)), start, len(stage)) for start, stage in zip(starts, stages, strict=True)
    )
    runs = _runs(classes)
    _require(len(stages), MOST_STAGES, "stages")
    return SplitTables(
        tuple(start << 6 | kind for start, kind in runs),
        classes[:128].tobytes(),
        tuple(layout.atoms),
        tuple(layout.alternatives),
        placed,
    )


def _require(found: int, most: int, what: str) -> None:
    if found > most:
        raise RenderError(
            f"tokenizer: the pre-tokenizer has {found} {what}, the runtime holds {most}",
            hint="take a checkpoint with a simpler pre-tokenizer",
        )


def _sets(alternatives: Iterable[SplitAlternative]) -> Iterable[CodePoints]:
    for alternative in alternatives:
        yield from (atom.chars for atom in alternative.atoms)
        yield alternative.not_before
        yield from _sets(alternative.tail)


def _partition(sets: Sequence[CodePoints]) -> tuple[NDArray[np.uint8], list[int]]:
    """Split the code points into the fewest classes that each set is a union of.

    Returns the class of each code point, and for each set the mask of its classes.
    """
    _require(len(sets), MOST_SETS, "sets of characters")
    signature = np.zeros(_CODE_POINTS, np.uint64)
    for index, ranges in enumerate(sets):
        for first, last in ranges:
            signature[first : last + 1] |= np.uint64(1 << index)
    kinds, classes = np.unique(signature, return_inverse=True)
    _require(len(kinds), MOST_CLASSES, "classes of characters")
    masks = [sum(1 << at for at, kind in enumerate(kinds.tolist()) if kind >> index & 1) for index in range(len(sets))]
    return classes.astype(np.uint8), masks


def _runs(classes: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """(first code point, class) of each run, ascending; a run lasts until the next one."""
    starts = np.flatnonzero(np.diff(classes, prepend=np.uint8(255)) != 0)
    return [(int(start), int(classes[start])) for start in starts]


class _Layout:
    """Collects atoms and alternatives; those of one list stand one after the other."""

    def __init__(self, masks: dict[CodePoints, int]) -> None:
        self.masks = masks
        self.atoms: list[tuple[int, int, int]] = []
        self.alternatives: list[tuple[int, int, int, int, int, int]] = []

    def place(self, alternatives: Sequence[SplitAlternative]) -> int:
        """Lay out alternatives behind their tails; returns the index of the first."""
        tails = [self.place(alternative.tail) if alternative.tail else 0 for alternative in alternatives]
        first = len(self.alternatives)
        for alternative, tail in zip(alternatives, tails, strict=True):
            _require(len(alternative.atoms), MOST_ATOMS, "runs in an alternative")
            atoms = [(self.masks[atom.chars], atom.least, atom.most) for atom in alternative.atoms]
            row = (self._first(atoms), self.masks[alternative.not_before], len(self.atoms), len(atoms))
            self.alternatives.append((*row, tail, len(alternative.tail)))
            self.atoms.extend(atoms)
        return first

    def first_of(self, start: int, n: int) -> int:
        """Mask of what a match of any of n alternatives can start with."""
        first = 0
        for row in self.alternatives[start : start + n]:
            first |= row[0]
        return first

    def _first(self, atoms: Iterable[tuple[int, int, int]]) -> int:
        """Mask of what a match can start with."""
        first = 0
        for mask, least, _ in atoms:
            first |= mask
            if least > 0:
                break
        return first
