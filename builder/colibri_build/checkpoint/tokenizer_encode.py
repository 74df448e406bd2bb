"""Encode and decode text on the host with the `tokenizers` library, which is what the firmware must equal."""

from __future__ import annotations

from functools import lru_cache

import tokenizers

from colibri_build.artifacts import Tokenizer


@lru_cache(maxsize=4)
def _library_tokenizer(json_bytes: bytes) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer.from_buffer(json_bytes)
    library.no_truncation()  # as the firmware, which tells of a prompt that is too long
    library.no_padding()
    return library


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of a text, the ids that the model's template puts around it included."""
    return list(_library_tokenizer(tokenizer.json_bytes).encode(text).ids)


def decode_ids(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The text that the firmware prints for these ids: special tokens are left out, broken UTF-8 becomes U+FFFD."""
    special = {token.id for token in tokenizer.added if token.special}
    pieces = (tokenizer.tokens[i] for i in ids if i not in special)
    return b"".join(pieces).decode("utf-8", errors="replace")
