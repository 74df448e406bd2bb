"""Encode text on the host with the `tokenizers` library, which is what the firmware must equal."""

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
