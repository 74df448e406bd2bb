"""Reads a Hugging Face tokenizer.json into the tokenizer that the firmware runs; what it could not run it refuses."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from colibri_build.artifacts import AddedToken, CharacterVocabulary, Tokenizer
from colibri_build.checkpoint.tokenizer_json import parse, unsupported
from colibri_build.checkpoint.tokenizer_model import (
    BpeModel,
    check_spellings,
    fallback_byte,
    read_model,
    token_bytes,
)
from colibri_build.checkpoint.tokenizer_parts import read_added, read_post_processor
from colibri_build.checkpoint.tokenizer_pipeline import BLOCK, Pipeline, read_pipeline
from colibri_build.errors import TokenizerError

# What other tokenizer formats are called on disk, to tell the user which one was found.
_OTHER_FORMATS = ("tokenizer.model", "vocab.json", "tokenizer.tiktoken", "spiece.model", "tekken.json")


def read_tokenizer_file(folder: Path) -> bytes:
    """The content of `folder`/tokenizer.json. Raises TokenizerError where it cannot be read."""
    path = folder / "tokenizer.json"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        found = [name for name in _OTHER_FORMATS if (folder / name).exists()]
        raise TokenizerError(
            f"{folder.name}: no tokenizer.json" + (f", only {', '.join(found)}" if found else ""),
            hint="load it with transformers and save it with `AutoTokenizer.from_pretrained(...).save_pretrained(...)`",
        ) from None
    except OSError as error:
        raise TokenizerError(
            f"{folder.name}/tokenizer.json: {error.strerror}", hint="check the file and its permissions"
        ) from error


def read_tokenizer_bytes(json_bytes: bytes, vocab_size: int) -> Tokenizer:
    """Build the tokenizer from the content of a tokenizer.json. Raises TokenizerError.

    `truncation` and `padding` are ignored: they shape batches, and transformers resets them for every call.
    """
    root = parse(json_bytes)
    if root.get("version", "1.0") != "1.0":
        unsupported(f"version {root['version']!a}")
    pipeline = read_pipeline(root)
    model = read_model(root.get("model"), vocab_size, pipeline.byte_level)
    added = read_added(root.get("added_tokens"), model.vocab, vocab_size, pipeline.byte_level)
    _check_normalized(added, pipeline)
    raw = _texts(model, added, pipeline.byte_level)
    check_spellings(_looked_up(raw, model), frozenset(token.id for token in added) - frozenset(model.vocab.values()))
    prefix_ids, suffix_ids = read_post_processor(root.get("post_processor"), frozenset(raw), vocab_size)
    return Tokenizer(
        tokens=tuple(raw.get(token, b"") for token in range(vocab_size)),
        merges=model.merges,
        added=added,
        pretokenizer=pipeline.family,
        add_prefix_space=pipeline.add_prefix_space,
        ignore_merges=model.ignore_merges,
        prefix_ids=prefix_ids,
        suffix_ids=suffix_ids,
        json_bytes=json_bytes,
        splits=pipeline.splits,
        nfc=pipeline.nfc,
        characters=None if pipeline.byte_level else _characters(model, pipeline),
    )


def _texts(model: BpeModel, added: tuple[AddedToken, ...], byte_level: bool) -> dict[int, bytes]:
    """What each id decodes to: of a vocabulary of characters, with spaces for U+2581."""
    if byte_level:
        # A spelling outside the byte alphabet stands for its own text, as in the library's decoder.
        raw = {token: token_bytes(name) or name.encode() for name, token in model.vocab.items()}
        return raw | {token.id: token.content for token in added}
    names = {token: name for name, token in model.vocab.items()} | {token.id: token.content.decode() for token in added}
    return {token: fallback_byte(name) or name.replace(BLOCK, " ").encode() for token, name in names.items()}


def _looked_up(raw: dict[int, bytes], model: BpeModel) -> dict[int, bytes]:
    """Texts of the tokens that encoding may look up: all but those for bytes."""
    for_bytes = frozenset(token for name, token in model.vocab.items() if fallback_byte(name) is not None)
    return {token: text for token, text in raw.items() if token not in for_bytes}


def _characters(model: BpeModel, pipeline: Pipeline) -> CharacterVocabulary:
    byte_ids = tuple(model.vocab[f"<0x{byte:02X}>"] for byte in range(256))
    for left, right, result in model.merges:
        if not {left, right, result}.isdisjoint(byte_ids):
            unsupported(f"a merge of byte token {({left, right, result} & set(byte_ids)).pop()}")
    return CharacterVocabulary(byte_ids, pipeline.prefix_space, pipeline.strip_space)


def _check_normalized(added: tuple[AddedToken, ...], pipeline: Pipeline) -> None:
    """Refuse added tokens that are looked for in normalized text in a spelling that the normalizer would change."""
    for token in added:
        changed = pipeline.prefix_space == "always" or (not pipeline.byte_level and b" " in token.content)
        if pipeline.nfc:
            changed = not unicodedata.is_normalized("NFC", token.content.decode())
        if token.normalized and changed:
            unsupported(f"normalized true of added token {token.content.decode()!a}, which the normalizer changes,")
