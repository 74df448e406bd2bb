"""Reads a Hugging Face tokenizer.json into the tokenizer that the firmware runs; what it could not run it refuses."""

from __future__ import annotations

from pathlib import Path

from colibri_build.artifacts import AddedToken, Tokenizer
from colibri_build.checkpoint.tokenizer_json import JsonObject, parse, unsupported
from colibri_build.checkpoint.tokenizer_model import BpeModel, check_spellings, read_model, token_bytes
from colibri_build.checkpoint.tokenizer_parts import (
    check_decoder,
    check_normalizer,
    read_added,
    read_post_processor,
    read_pretokenizer,
)
from colibri_build.errors import TokenizerError

# What other tokenizer formats are called on disk, to tell the user which one was found.
_OTHER_FORMATS = ("tokenizer.model", "vocab.json", "tokenizer.tiktoken", "spiece.model", "tekken.json")


def read_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """Read `folder`/tokenizer.json for a model with `vocab_size` ids.

    Raises TokenizerError for a missing, damaged or unsupported tokenizer; the message names the section.
    """
    path = folder / "tokenizer.json"
    try:
        data = path.read_bytes()
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
    return read_tokenizer_bytes(data, vocab_size)


def read_tokenizer_bytes(json_bytes: bytes, vocab_size: int) -> Tokenizer:
    """Build the tokenizer from the content of a tokenizer.json. Raises TokenizerError.

    `truncation` and `padding` are ignored: they shape batches, and transformers resets them for every call.
    """
    root = parse(json_bytes)
    if root.get("version", "1.0") != "1.0":
        unsupported(f"version {root['version']!a}")
    check_normalizer(root.get("normalizer"))
    add_prefix_space = read_pretokenizer(root.get("pre_tokenizer"))
    check_decoder(root.get("decoder"))
    model = read_model(root.get("model"), vocab_size)
    added = read_added(root.get("added_tokens"), model.vocab, vocab_size)
    return _assemble(root, model, added, add_prefix_space, vocab_size, json_bytes)


def _assemble(
    root: JsonObject,
    model: BpeModel,
    added: tuple[AddedToken, ...],
    add_prefix_space: bool,
    vocab_size: int,
    json_bytes: bytes,
) -> Tokenizer:
    # A spelling outside the byte alphabet stands for its own text, as in the library's decoder.
    raw = {token: token_bytes(name) or name.encode() for name, token in model.vocab.items()}
    raw |= {token.id: token.content for token in added}
    check_spellings(raw, frozenset(token.id for token in added) - frozenset(model.vocab.values()))
    prefix_ids, suffix_ids = read_post_processor(root.get("post_processor"), frozenset(raw), vocab_size)
    return Tokenizer(
        tokens=tuple(raw.get(token, b"") for token in range(vocab_size)),
        merges=model.merges,
        added=added,
        pretokenizer="gpt2",
        add_prefix_space=add_prefix_space,
        ignore_merges=model.ignore_merges,
        prefix_ids=prefix_ids,
        suffix_ids=suffix_ids,
        json_bytes=json_bytes,
    )
