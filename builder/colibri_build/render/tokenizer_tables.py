"""Renders tokenizer_tables.c: everything that the C tokenizer looks up, laid out at build time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from colibri_build import __version__
from colibri_build.artifacts import AddedToken, SplitAlternative, SplitAtom, SplitStage, Tokenizer
from colibri_build.errors import RenderError
from colibri_build.render.c_data import c_list, c_string
from colibri_build.render.environment import render
from colibri_build.render.merge_codes import NO_SPLIT, MergeCodes, merge_codes
from colibri_build.render.split_tables import SplitTables, split_tables
from colibri_build.render.token_hash import TokenHash, build_token_hash, pack_bits
from colibri_build.render.whole_words import unmade_tokens

ABI = 1  # COLIBRI_ABI of the runtime that these tables are for
MOST_ADDED = 0xFFFF  # AddedSet.starts are uint16_t
# As in runtime_c/tokenizer/tables.h and steps.h.
TOKENS_A_BLOCK = 8
LENGTH_LISTED = 255
RUN_BYTES = 1000
# Of changed text, 16 bytes a token fit, and a whole word in any case.
TEXT_BYTES = "MODEL_CONTEXT > 4095 ? MODEL_CONTEXT * 16 : MAX_WORD_BYTES + 1"


@dataclass(frozen=True)
class TokenizerTables:
    """Context of tokenizer_tables.c.j2: C text, or numbers. runtime_c/tokenizer/*.h say what each table is."""

    version: str
    digest: str
    abi: int
    vocab_size: int
    texts: str
    block_starts: str
    lengths: str
    long_lengths: str
    n_long_lengths: int
    unmade_ids: str
    n_unmade_ids: int
    silent_ids: str
    n_silent_ids: int
    seed: int
    pilots: str
    slots: str
    n_buckets: int
    n_slots: int
    slot_bits: int
    byte_ids: str
    splits: str
    exceptions: str
    n_exceptions: int
    longest_first: str
    first_added: str
    second_added: str
    first_added_starts: str
    second_added_starts: str
    prefix_ids: str
    n_prefix_ids: int
    suffix_ids: str
    n_suffix_ids: int
    class_runs: str
    n_class_runs: int
    ascii_classes: str
    atoms: str
    alternatives: str
    stages: str
    n_stages: int
    steps: tuple[tuple[str, str], ...]  # (member, function) of TokenizerSteps
    text_bytes: str  # 1 if no step changes text
    max_token_bytes: int
    max_piece_bytes: int


def tokenizer_tables_source(tokenizer: Tokenizer) -> str:
    """Return the C source of the tables. The same tokenizer gives the same bytes.

    Raises RenderError for more added tokens or a larger pre-tokenizer than the runtime holds.
    """
    tables = tokenizer_tables(tokenizer)
    return render("tokenizer_tables.c.j2", tables) + render("tokenizer_steps.c.j2", tables)


def tokenizer_tables(tokenizer: Tokenizer) -> TokenizerTables:
    """Lay out the tables of `tokenizer`."""
    if len(tokenizer.added) > MOST_ADDED:
        raise RenderError(
            f"tokenizer: {len(tokenizer.added)} added tokens, the tables hold {MOST_ADDED}",
            hint="take a checkpoint with fewer added tokens",
        )
    ids = _ids_by_text(tokenizer)
    codes = merge_codes(tokenizer.tokens, ids, tokenizer.merges)
    keys = _keys(tokenizer, ids, codes)
    kept = frozenset(keys.values())
    unmade = _unmade(tokenizer, ids, keys)
    special = {token.id for token in tokenizer.added if token.special}
    silent = sorted(special & kept)
    texts = [
        b"" if index in special and index not in kept else _printed(tokenizer, index)
        for index in range(len(tokenizer.tokens))
    ]
    longest = max(1, *map(len, tokenizer.tokens))
    parts: dict[str, Any] = {
        **_text_context(texts),
        **_hash_context(build_token_hash(keys), len(texts)),
        **_added_context(tokenizer.added),
        **_split_context(split_tables(_stages(tokenizer, keys))),
    }
    exceptions = sorted((*row, order) for order, row in enumerate(codes.exceptions))
    return TokenizerTables(
        version=__version__,
        digest=hashlib.sha256(tokenizer.json_bytes).hexdigest(),
        abi=ABI,
        vocab_size=len(texts),
        unmade_ids=c_list(unmade),
        n_unmade_ids=len(unmade),
        silent_ids=c_list(silent),
        n_silent_ids=len(silent),
        byte_ids=c_list("NO_TOKEN" if index is None else index for index in _byte_ids(tokenizer, ids)),
        splits=c_string(codes.codes),
        exceptions=c_rows(exceptions),
        n_exceptions=len(exceptions),
        longest_first="true" if codes.longest_first else "false",
        prefix_ids=c_list(tokenizer.prefix_ids),
        n_prefix_ids=len(tokenizer.prefix_ids),
        suffix_ids=c_list(tokenizer.suffix_ids),
        n_suffix_ids=len(tokenizer.suffix_ids),
        steps=_steps(tokenizer, ids),
        text_bytes=TEXT_BYTES if tokenizer.nfc or tokenizer.add_prefix_space or tokenizer.characters else "1",
        max_token_bytes=longest,
        # Each byte may become U+FFFD, and so may what was pending.
        max_piece_bytes=3 * longest + 3 if tokenizer.characters is None else 3 * RUN_BYTES + longest,
        **parts,
    )


def _ids_by_text(tokenizer: Tokenizer) -> dict[bytes, int]:
    """Map texts to the vocabulary's tokens.

    Two tokens may have the same text if one of them is an added token; merging never makes that one. One that starts
    with a space cannot be in a byte-level vocabulary by its own spelling at all. Tokens for bytes have no text.
    """
    added = {token.id for token in tokenizer.added}
    if tokenizer.characters is not None:
        added.update(tokenizer.characters.byte_ids)
        return {text: index for index, text in enumerate(tokenizer.tokens) if text and index not in added}
    ids = {token.content: token.id for token in tokenizer.added if not token.content.startswith(b" ")}
    return ids | {text: index for index, text in enumerate(tokenizer.tokens) if text and index not in added}


def _keys(tokenizer: Tokenizer, ids: Mapping[bytes, int], codes: MergeCodes) -> dict[bytes, int]:
    """What the hash table holds: results of merges, whole words where they are looked up, and characters."""
    characters = tokenizer.characters is not None
    return {
        text: index
        for text, index in ids.items()
        if tokenizer.ignore_merges
        or codes.codes[index] != NO_SPLIT
        or (characters and len(text.decode(errors="ignore")) == 1)
    }


def _unmade(tokenizer: Tokenizer, ids: Mapping[bytes, int], keys: Mapping[bytes, int]) -> tuple[int, ...]:
    """Keys that merging does not make; none where a word that is a token is taken whole whatever merging makes."""
    if tokenizer.ignore_merges:
        return ()
    first = _byte_ids(tokenizer, ids)
    texts = {}
    for text, index in keys.items():
        if tokenizer.characters is None:
            pieces = [first[byte] for byte in text]
        else:
            pieces = [ids.get(char.encode()) for char in text.decode(errors="replace")]
        texts[index] = [-1 if piece is None else piece for piece in pieces]
    return unmade_tokens(texts, tokenizer.merges)


def _printed(tokenizer: Tokenizer, index: int) -> bytes:
    """The text of a token; none of a token for a byte, which the runtime prints by its number."""
    characters = tokenizer.characters
    return b"" if characters is not None and index in characters.byte_ids else tokenizer.tokens[index]


def _byte_ids(tokenizer: Tokenizer, ids: Mapping[bytes, int]) -> list[int | None]:
    if tokenizer.characters is not None:
        return list(tokenizer.characters.byte_ids)
    return [ids.get(bytes([byte])) for byte in range(256)]


def _steps(tokenizer: Tokenizer, ids: Mapping[bytes, int]) -> tuple[tuple[str, str], ...]:
    normalize = "normalize_nfc" if tokenizer.nfc else "NULL"
    if tokenizer.characters is None:
        prepare = "prepare_prefix_space" if tokenizer.add_prefix_space else "NULL"
        known = "" if None not in _byte_ids(tokenizer, ids) else "_known"
        word, push, finish = f"bytes_encode_word{known}", "bytes_push", "bytes_finish"
    else:
        prepare = f"prepare_spaces_{tokenizer.characters.prefix_space}"
        strip = "_strip" if tokenizer.characters.strip_space else ""
        word, push, finish = "chars_encode_word", f"chars_push{strip}", f"chars_finish{strip}"
    names = ("normalize", "prepare", "encode_word", "push", "finish")
    return tuple(zip(names, (normalize, prepare, word, push, finish), strict=True))


def _stages(tokenizer: Tokenizer, keys: Mapping[bytes, int]) -> tuple[SplitStage, ...]:
    """The pre-tokenizer's; or, where no token goes from a word into the next one's spaces, words by spaces.

    Merging cannot cross such a border, so that the ids stay the same, and words stay short.
    """
    if tokenizer.splits or tokenizer.characters is None or tokenizer.ignore_merges:
        return tokenizer.splits
    if any(b" " in text.lstrip(b" ") for text in keys):
        return ()
    space, others = ((32, 32),), ((0, 31), (33, 0x10FFFF))
    spaces, word = SplitAtom(space, 0, 0xFFFFFFFF), SplitAtom(others, 1, 0xFFFFFFFF)
    return ((SplitAlternative((spaces, word)), SplitAlternative((SplitAtom(space, 1, 0xFFFFFFFF),))),)


def _text_context(texts: Sequence[bytes]) -> dict[str, str | int]:
    lengths = [len(text) for text in texts]
    long = [(index, length) for index, length in enumerate(lengths) if length >= LENGTH_LISTED]
    starts = list(accumulate(lengths, initial=0))
    return {
        "texts": c_string(b"".join(texts)),
        "block_starts": c_list(starts[: len(texts) : TOKENS_A_BLOCK]),
        "lengths": c_string(
            bytes(min(length, LENGTH_LISTED) for length in lengths) + bytes(-len(lengths) % TOKENS_A_BLOCK)
        ),
        "long_lengths": c_rows(long),
        "n_long_lengths": len(long),
    }


def _hash_context(table: TokenHash, vocab_size: int) -> dict[str, str | int]:
    bits = max(1, (vocab_size - 1).bit_length())
    return {
        "seed": table.seed,
        "pilots": c_string(table.pilots.astype(np.uint8).tobytes()),
        "slots": c_string(pack_bits(table.slots, bits)),
        "n_buckets": len(table.pilots),
        "n_slots": len(table.slots),
        "slot_bits": bits,
    }


def _added_context(added: Iterable[AddedToken]) -> dict[str, str]:
    context: dict[str, str] = {}
    tokens = sorted(added, key=lambda token: token.content)
    for name, normalized in (("first", False), ("second", True)):
        chosen = [token for token in tokens if token.normalized == normalized]
        context[f"{name}_added"] = c_rows(
            (c_string(token.content), len(token.content), token.id, token.lstrip + 2 * token.rstrip) for token in chosen
        )
        context[f"{name}_added_starts"] = c_list(_starts([token.content[0] for token in chosen], 256))
    return context


def _split_context(tables: SplitTables) -> dict[str, str | int]:
    alternatives = [(f"{first:#x}", f"{ends:#x}", *rest) for first, ends, *rest in tables.alternatives]
    return {
        "class_runs": c_list(tables.class_runs),
        "n_class_runs": len(tables.class_runs),
        "ascii_classes": c_list(tables.ascii_classes),
        "atoms": c_rows((f"{mask:#x}", least, f"{most}U") for mask, least, most in tables.atoms),
        "alternatives": c_rows(alternatives),
        "stages": c_rows((f"{first:#x}", *rest) for first, *rest in tables.stages),
        "n_stages": len(tables.stages),
    }


def _starts(sorted_keys: Sequence[int], n_keys: int) -> list[int]:
    """Index of the first element for each key 0..n_keys-1, and the number of elements."""
    counts = [0] * n_keys
    for key in sorted_keys:
        counts[key] += 1
    return list(accumulate(counts, initial=0))


def c_rows(rows: Iterable[Sequence[object]]) -> str:
    """Rows of an array of structs. Empty: one of zeros."""
    lines = ["\n    {" + ", ".join(map(str, row)) + "}" for row in rows]
    return ",".join(lines) if lines else "{0}"
