"""Merges reduced to one byte a token.

A merge makes token `result` of two tokens whose texts are a split of its text, so the length of the left part says which
two. Where ranks go up with the result, and for one result with the left token (as converters of tiktoken files write
them) or with shorter left parts (as converters of SentencePiece files do), the rank need not be stored. What does not
follow these rules is listed in full as an exception; any list of merges can be expressed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NO_SPLIT, LISTED, ANY_SPLIT = 0, 254, 255
Merge = tuple[int, int, int]  # left id, right id, result id


@dataclass(frozen=True)
class MergeCodes:
    """`codes`: for each token NO_SPLIT, the bytes of the one left part that merges, LISTED or ANY_SPLIT.

    `exceptions`: (result, bytes of the left part, result of the last merge before it that is no exception, plus 1),
    by rank.
    """

    codes: bytes
    exceptions: tuple[tuple[int, int, int], ...]
    longest_first: (
        bool  # of the merges to one token, that with the longest left part goes first, else the lowest left id
    )


def merge_codes(tokens: Sequence[bytes], ids: Mapping[bytes, int], merges: Sequence[Merge]) -> MergeCodes:
    """Encode `merges`, which are in the order of their ranks. `ids`: the vocabulary by text."""
    reachable = [merge for merge in merges if _is_split(tokens, ids, merge)]
    by_left = _encode(tokens, ids, reachable, [(result, left) for left, _, result in reachable], False)
    if not by_left.exceptions:
        return by_left
    by_length = _encode(tokens, ids, reachable, [(result, -len(tokens[left])) for left, _, result in reachable], True)
    return min(by_left, by_length, key=lambda codes: len(codes.exceptions))


def _encode(
    tokens: Sequence[bytes],
    ids: Mapping[bytes, int],
    reachable: Sequence[Merge],
    keys: Sequence[tuple[int, int]],
    longest_first: bool,
) -> MergeCodes:
    """Encode merges whose rank is to be that of `keys`."""
    regular = _longest_increase(keys)
    by_result: dict[int, list[int]] = defaultdict(list)
    for index, (_, _, result) in enumerate(reachable):
        by_result[result].append(index)
    codes = bytearray(len(tokens))
    for result, indices in by_result.items():
        codes[result] = _code(tokens, ids, reachable, indices, regular)
    exceptions: list[tuple[int, int, int]] = []
    after = 0
    for left, _, result in reachable:
        if codes[result] == LISTED:
            exceptions.append((result, len(tokens[left]), after))
        else:
            after = result + 1
    return MergeCodes(bytes(codes), tuple(exceptions), longest_first)


def _is_split(tokens: Sequence[bytes], ids: Mapping[bytes, int], merge: Merge) -> bool:
    """Whether text can come to this merge: a token in a spelling of its own never appears in a word."""
    left, right, result = merge
    if any(ids.get(tokens[token]) != token for token in merge):
        return False
    return tokens[left] + tokens[right] == tokens[result]


def _code(
    tokens: Sequence[bytes],
    ids: Mapping[bytes, int],
    merges: Sequence[Merge],
    indices: Sequence[int],
    regular: frozenset[int],
) -> int:
    if not regular.issuperset(indices):
        return LISTED
    text = tokens[merges[indices[0]][2]]
    if len(indices) == 1:
        length = len(tokens[merges[indices[0]][0]])
        return length if length < LISTED else LISTED
    possible = sum(text[:at] in ids and text[at:] in ids for at in range(1, len(text)))
    return ANY_SPLIT if possible == len(indices) else LISTED


def _longest_increase(keys: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Indices of a longest strictly increasing subsequence."""
    ends: list[tuple[int, int]] = []  # least last key of an increase of each length
    at_end: list[int] = []
    previous: list[int] = []
    for index, key in enumerate(keys):
        place = bisect_left(ends, key)
        previous.append(at_end[place - 1] if place else -1)
        if place == len(ends):
            ends.append(key)
            at_end.append(index)
        else:
            ends[place] = key
            at_end[place] = index
    chain: list[int] = []
    index = at_end[-1] if at_end else -1
    while index >= 0:
        chain.append(index)
        index = previous[index]
    return frozenset(chain)
