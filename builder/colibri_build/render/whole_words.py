"""Which tokens a word may not be taken for at once: those that merging does not make of their own text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

Merge = tuple[int, int, int]  # left id, right id, result id; a list of them is in the order of their ranks


def unmade_tokens(texts: Mapping[int, Sequence[int]], merges: Sequence[Merge]) -> tuple[int, ...]:
    """The ids among `texts` that merging does not make of their own text, ascending; in most vocabularies none.

    texts: by token, the pieces that its text starts as.
    """
    ranks = {(left, right): rank for rank, (left, right, _) in enumerate(merges)}
    results = [result for _, _, result in merges]
    return tuple(sorted(token for token, pieces in texts.items() if merged(list(pieces), ranks, results) != [token]))


def merged(pieces: list[int], ranks: Mapping[tuple[int, int], int], results: Sequence[int]) -> list[int]:
    """Merge as the tokenizer does: the lowest rank first, of equal ones the leftmost. Changes `pieces`."""
    none = len(results)
    order = [ranks.get(pair, none) for pair in pairwise(pieces)]
    while order:
        rank = min(order)
        if rank == none:
            break
        at = order.index(rank)
        pieces[at : at + 2] = [results[rank]]
        del order[at]
        if at > 0:
            order[at - 1] = ranks.get((pieces[at - 1], pieces[at]), none)
        if at < len(order):
            order[at] = ranks.get((pieces[at], pieces[at + 1]), none)
    return pieces
