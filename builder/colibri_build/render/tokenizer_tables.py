"""Renders tokenizer_tables.c: everything that the C tokenizer looks up, laid out at build time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from colibri_build import __version__
from colibri_build.artifacts import AddedToken, Tokenizer
from colibri_build.errors import RenderError
from colibri_build.render.environment import render

ABI = 1  # COLIBRI_ABI of the runtime that these tables are for
COLUMNS = 120
MOST_ADDED = 0xFFFF  # AddedSet.starts are uint16_t


@dataclass(frozen=True)
class TokenizerTables:
    """Context of tokenizer_tables.c.j2: C text, or numbers. runtime_c/tokenizer/tables.h says what each table is."""

    version: str
    digest: str
    abi: int
    vocab_size: int
    pieces: str
    piece_starts: str
    max_piece_bytes: int
    byte_ids: str
    merge_starts: str
    merge_rights: str
    merge_results: str
    merge_ranks: str  # empty: ranks go up with the ids of the results
    sorted_ids: str
    n_sorted_ids: int
    first_added: str
    second_added: str
    first_added_starts: str
    second_added_starts: str
    prefix_ids: str
    n_prefix_ids: int
    suffix_ids: str
    n_suffix_ids: int
    add_prefix_space: str
    max_token_bytes: int


def tokenizer_tables_source(tokenizer: Tokenizer) -> str:
    """Return the C source of the tables. The same tokenizer gives the same bytes.

    Raises RenderError for a pre-tokenizer that the runtime lacks, or too many added tokens.
    """
    return render("tokenizer_tables.c.j2", tokenizer_tables(tokenizer))


def tokenizer_tables(tokenizer: Tokenizer) -> TokenizerTables:
    """Lay out the tables of `tokenizer`."""
    _check(tokenizer)
    special = {token.id for token in tokenizer.added if token.special}
    pieces = [b"" if index in special else raw for index, raw in enumerate(tokenizer.tokens)]
    by_bytes = _ids_by_bytes(tokenizer)
    byte_ids = [by_bytes.get(bytes([byte])) for byte in range(256)]
    by_pair = sorted((left, right, rank, result) for rank, (left, right, result) in enumerate(tokenizer.merges))
    sorted_ids = [by_bytes[raw] for raw in sorted(by_bytes)] if tokenizer.ignore_merges else []
    first, second = (_sorted_added(tokenizer.added, normalized) for normalized in (False, True))
    vocab_size = len(tokenizer.tokens)
    return TokenizerTables(
        version=__version__,
        digest=hashlib.sha256(tokenizer.json_bytes).hexdigest(),
        abi=ABI,
        vocab_size=vocab_size,
        pieces=c_string(b"".join(pieces)),
        piece_starts=c_list(accumulate(map(len, pieces), initial=0)),
        max_piece_bytes=3 * max(map(len, pieces)) + 3,  # each byte may become U+FFFD, and so may what was pending
        byte_ids=c_list("NO_TOKEN" if index is None else index for index in byte_ids),
        merge_starts=c_list(_starts([left for left, *_ in by_pair], vocab_size)),
        merge_rights=c_list(right for _, right, _, _ in by_pair),
        merge_results=c_list(result for _, _, _, result in by_pair),
        merge_ranks="" if _ranks_are_ids(tokenizer) else c_list(rank for _, _, rank, _ in by_pair),
        sorted_ids=c_list(sorted_ids),
        n_sorted_ids=len(sorted_ids),
        first_added=_c_added(first),
        second_added=_c_added(second),
        first_added_starts=c_list(_starts([token.content[0] for token in first], 256)),
        second_added_starts=c_list(_starts([token.content[0] for token in second], 256)),
        prefix_ids=c_list(tokenizer.prefix_ids),
        n_prefix_ids=len(tokenizer.prefix_ids),
        suffix_ids=c_list(tokenizer.suffix_ids),
        n_suffix_ids=len(tokenizer.suffix_ids),
        add_prefix_space="true" if tokenizer.add_prefix_space else "false",
        max_token_bytes=max(1, *map(len, tokenizer.tokens)),
    )


def _check(tokenizer: Tokenizer) -> None:
    if tokenizer.pretokenizer != "gpt2":
        raise RenderError(
            f"tokenizer: the runtime has no pre-tokenizer '{tokenizer.pretokenizer}'",
            hint="take a checkpoint whose tokenizer.json splits by the GPT-2 expression",
        )
    if len(tokenizer.added) > MOST_ADDED:
        raise RenderError(
            f"tokenizer: {len(tokenizer.added)} added tokens, the tables hold {MOST_ADDED}",
            hint="take a checkpoint with fewer added tokens",
        )


def _ids_by_bytes(tokenizer: Tokenizer) -> dict[bytes, int]:
    """Map raw bytes to the vocabulary's token.

    Two tokens may have the same bytes if one of them is an added token; merging never makes that one. One that starts
    with a space cannot be in the vocabulary by its own spelling at all.
    """
    added = {token.id for token in tokenizer.added}
    by_bytes = {token.content: token.id for token in tokenizer.added if not token.content.startswith(b" ")}
    by_bytes |= {raw: index for index, raw in enumerate(tokenizer.tokens) if raw and index not in added}
    return by_bytes


def _ranks_are_ids(tokenizer: Tokenizer) -> bool:
    """Whether ids of merge results go up with the rank, as a trained BPE numbers them."""
    results = [result for _, _, result in tokenizer.merges]
    return all(a < b for a, b in pairwise(results))


def _starts(sorted_keys: Sequence[int], n_keys: int) -> list[int]:
    """Index of the first element for each key 0..n_keys-1, and the number of elements."""
    counts = [0] * n_keys
    for key in sorted_keys:
        counts[key] += 1
    return list(accumulate(counts, initial=0))


def _sorted_added(added: Iterable[AddedToken], normalized: bool) -> list[AddedToken]:
    return sorted((token for token in added if token.normalized == normalized), key=lambda token: token.content)


def _c_added(tokens: Sequence[AddedToken]) -> str:
    rows = [f"\n    {{{c_string(token.content)}, {len(token.content)}, {token.id}}}" for token in tokens]
    return ",".join(rows) if rows else "{0}"


def c_list(values: Iterable[int | str]) -> str:
    """Elements of an initialiser, wrapped; longer than a line, it stands on lines of its own. Empty: one 0."""
    words = [str(value) for value in values] or ["0"]
    width = max(map(len, words)) + 2
    per_line = (COLUMNS - 4) // width
    if len(words) <= 4:
        return ", ".join(words)
    rows = (", ".join(words[start : start + per_line]) for start in range(0, len(words), per_line))
    return "\n    " + ",\n    ".join(rows) + "\n"


# Octal escapes have a fixed length, so a digit may follow; `?` could be part of a trigraph.
_C_BYTE = [chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in range(256)]


def c_string(data: bytes) -> str:
    """Return a C literal for `data`; longer than half a line, it stands on lines of its own."""
    lines: list[str] = []
    line: list[str] = []
    room = COLUMNS - 6
    for byte in data:
        text = _C_BYTE[byte]
        if len(text) > room:
            lines.append("".join(line))
            line, room = [], COLUMNS - 6
        line.append(text)
        room -= len(text)
    lines.append("".join(line))
    if len(lines) == 1 and len(lines[0]) <= COLUMNS // 2:
        return f'"{lines[0]}"'
    return "".join(f'\n    "{text}"' for text in lines)
