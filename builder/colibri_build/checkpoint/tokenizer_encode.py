"""Encode text on the host with the `tokenizers` library, which is what the firmware must equal."""

from __future__ import annotations

from functools import lru_cache

import tokenizers

from colibri_build.artifacts import ChatForm, Tokenizer


@lru_cache(maxsize=4)
def _library_tokenizer(json_bytes: bytes) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer.from_buffer(json_bytes)
    library.no_truncation()  # as the firmware, which tells of a prompt that is too long
    library.no_padding()
    return library


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of a text, the ids that the model's template puts around it included."""
    return list(_library_tokenizer(tokenizer.json_bytes).encode(text).ids)


def encode_prompt(json_bytes: bytes, text: str, chat: ChatForm) -> list[int]:
    """Token ids of a text in its chat form, as `apply_chat_template` of transformers gives them.

    `json_bytes`: tokenizer.json. The ids that its template puts around a plain text are not added.
    """
    whole = chat.prefix + (text.strip() if chat.trim else text) + chat.suffix
    return list(_library_tokenizer(json_bytes).encode(whole, add_special_tokens=False).ids)
