"""The tokenizer of a GGUF file as a tokenizer.json, which is then judged like any other; and its chat template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from colibri_build.artifacts import ChatTemplate
from colibri_build.checkpoint.gguf_byte_level import byte_level_parts
from colibri_build.checkpoint.gguf_sentencepiece import sentencepiece_parts
from colibri_build.checkpoint.gguf_vocabulary import Vocabulary, read_vocabulary
from colibri_build.errors import TokenizerError

Json = dict[str, Any]
_KINDS: Mapping[str, Callable[[Vocabulary], Json]] = MappingProxyType(
    {"gpt2": byte_level_parts, "llama": sentencepiece_parts}
)
_TEMPLATE = "tokenizer.chat_template"


def tokenizer_json(metadata: Mapping[str, Any], where: str) -> bytes:
    """A tokenizer.json of the vocabulary in the metadata. Raises TokenizerError."""
    vocabulary = read_vocabulary(metadata, where)
    if vocabulary.kind not in _KINDS:
        raise vocabulary.refused("model", vocabulary.kind, ", ".join(sorted(_KINDS)))
    parts = _KINDS[vocabulary.kind](vocabulary)
    vocabulary.finish()
    root = {"version": "1.0", "truncation": None, "padding": None, **parts}
    return json.dumps(root, ensure_ascii=False).encode()


def read_chat(metadata: Mapping[str, Any], where: str) -> ChatTemplate | None:
    """The template, and the texts of the special tokens by the names that templates have for them.

    Ids outside of the vocabulary are left out here: files mark roles that no token has with them.
    """
    template = metadata.get(_TEMPLATE)
    if template is None:
        return None
    if not isinstance(template, str):
        raise TokenizerError(f'{where}: "{_TEMPLATE}" is no text', hint="convert the model again")
    ids = read_vocabulary(metadata, where)
    names = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
    texts = {name: ids.text_if_any(key) for key, name in names.items()}
    return ChatTemplate(template, {name: text for name, text in texts.items() if text is not None})
