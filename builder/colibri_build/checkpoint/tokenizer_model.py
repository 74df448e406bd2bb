"""The `model` section of tokenizer.json: vocabulary and merges of a BPE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from colibri_build.checkpoint.tokenizer_json import (
    JsonObject,
    as_id,
    as_list,
    as_object,
    as_text,
    flag,
    malformed,
    unsupported,
)
from colibri_build.errors import TokenizerError

# Bytes that no UTF-8 text contains; a vocabulary may do without them.
_NEVER_IN_UTF8 = frozenset((0xC0, 0xC1, *range(0xF5, 0x100)))


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's character for each byte: itself where it is printable, else the next free one from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


BYTE_OF_CHAR: Mapping[str, int] = _byte_alphabet()


@dataclass(frozen=True)
class BpeModel:
    """Vocabulary by its spelling in the file, and merges as ids by rank."""

    vocab: Mapping[str, int]
    merges: tuple[tuple[int, int, int], ...]
    ignore_merges: bool


def token_bytes(spelling: str) -> bytes | None:
    """Return the raw bytes that a byte-level spelling stands for; None if it is no such spelling."""
    try:
        return bytes([BYTE_OF_CHAR[char] for char in spelling])
    except KeyError:
        return None


def fallback_byte(spelling: str) -> bytes | None:
    """Return the byte that a token like <0x0A> stands for; None for another token."""
    if len(spelling) != 6 or not spelling.startswith("<0x") or not spelling.endswith(">"):
        return None
    try:
        return bytes.fromhex(spelling[3:5])
    except ValueError:
        return None


def read_model(value: object, vocab_size: int, byte_level: bool = True) -> BpeModel:
    """Read and check the `model` section. Raises TokenizerError."""
    model = as_object(value, "model")
    kind = as_text(model.get("type", "BPE" if "merges" in model else None), "model.type")
    if kind != "BPE":
        unsupported(f"model type {kind!a}")
    vocab = _read_vocab(model.get("vocab"), vocab_size)
    _check_options(model)
    _check_unknown(model, vocab) if byte_level else _check_fallback(model, vocab)
    return BpeModel(vocab, _read_merges(model.get("merges"), vocab), flag(model, "ignore_merges", "model", False))


def _read_vocab(value: object, vocab_size: int) -> dict[str, int]:
    vocab = as_object(value, "model.vocab")
    if not vocab:
        malformed("model.vocab is empty")
    owner: dict[int, str] = {}
    for spelling, token in vocab.items():
        as_text(spelling, "a key of model.vocab")
        if not spelling:
            malformed("model.vocab has a token without characters")
        as_id(token, f"the id of token {spelling!a}", vocab_size)
        if token in owner:
            malformed(f"id {token} belongs to both {owner[token]!a} and {spelling!a}")
        owner[token] = spelling
    return vocab


def _check_options(model: JsonObject) -> None:
    """Refuse options that change the ids and are not implemented."""
    dropout = model.get("dropout")
    if dropout is not None and dropout != 0:
        unsupported(f"model.dropout {dropout!a} (encoding by chance)")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            unsupported(f"model.{key} {model[key]!a}")


def _check_unknown(model: JsonObject, vocab: Mapping[str, int]) -> None:
    """Refuse tokens for unknown bytes where a byte of a byte-level vocabulary is unknown."""
    missing = [byte for char, byte in BYTE_OF_CHAR.items() if char not in vocab and byte not in _NEVER_IN_UTF8]
    if not missing:
        return  # unk_token, fuse_unk and byte_fallback are for bytes without a token: they cannot apply
    byte = f"with no token for byte 0x{min(missing):02X}"
    if flag(model, "byte_fallback", "model", False):
        unsupported(f"model.byte_fallback {byte}")
    if model.get("unk_token") is not None:
        unsupported(f"model.unk_token {model['unk_token']!a} {byte}")


def _check_fallback(model: JsonObject, vocab: Mapping[str, int]) -> None:
    """Refuse a vocabulary of characters that cannot spell every other character in byte tokens."""
    if not flag(model, "byte_fallback", "model", False):
        unsupported("model.byte_fallback false with a decoder 'ByteFallback'")
    missing = [byte for byte in range(256) if f"<0x{byte:02X}>" not in vocab]
    if missing:
        unsupported(f"model.byte_fallback with no token '<0x{missing[0]:02X}>'")


def _read_merges(value: object, vocab: Mapping[str, int]) -> tuple[tuple[int, int, int], ...]:
    """Read merges by rank. Of a pair that is listed twice the later rank counts, as in the `tokenizers` library."""
    ranked: dict[tuple[int, int], int] = {}
    for index, (left, right) in _merge_pairs(as_list(value, "model.merges")):
        for spelling in (left, right, left + right):
            if spelling not in vocab:
                malformed(f"merge {index} ({left!a}, {right!a}) needs token {spelling!a}, which model.vocab lacks")
        pair = (vocab[left], vocab[right])
        ranked.pop(pair, None)
        ranked[pair] = vocab[left + right]
    return tuple((left_id, right_id, result) for (left_id, right_id), result in ranked.items())


def _merge_pairs(merges: list[Any]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield (index, (left, right)) for both spellings of a merge: "a b" and ["a", "b"]."""
    for index, merge in enumerate(merges):
        if isinstance(merge, str):
            if merge.startswith("#version"):
                continue
            parts: list[Any] = merge.split(" ")
        else:
            parts = as_list(merge, f"merge {index}")
        if len(parts) != 2 or not all(isinstance(part, str) and part for part in parts):
            malformed(f"merge {index} is {_short(merge)}, not two tokens")
        yield index, (parts[0], parts[1])


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."


def check_spellings(tokens: Mapping[int, bytes], added_only: frozenset[int]) -> None:
    """Refuse two vocabulary tokens with the same raw bytes: encode could not tell which to take."""
    owner: dict[bytes, int] = {}
    for token, raw in tokens.items():
        if token in added_only:
            continue
        if raw in owner:
            raise TokenizerError(
                f"tokenizer.json: ids {owner[raw]} and {token} both stand for the bytes {raw!r}",
                hint="remove the one that is not spelled in the byte-level alphabet from model.vocab",
            )
        owner[raw] = token
