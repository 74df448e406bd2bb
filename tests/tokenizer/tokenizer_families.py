"""A library tokenizer for each family that docs/tokenizers.md names, over vocabularies trained here."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from tokenizer_corpus import SENTENCES, corpus, plain
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

Json = dict[str, Any]
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + "?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + "?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
DEEPSEEK3 = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]
DEEPSEEK_CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]
DEEPSEEK_LLM = [
    "[\r\n]",
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u0370-\u0373\u1e00-\u1f15\U00010400-\U0001044f]+",
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    r"\s+$",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    r"\p{N}+",
]


def byte_level_splits(expressions: list[str], *more: Json, use_regex: bool = False) -> Json:
    splits = [
        {"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated", "invert": False} for text in expressions
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    return {"type": "Sequence", "pretokenizers": [*splits, *more, byte_level]}


def _digits(individual: bool) -> Json:
    return {"type": "Digits", "individual_digits": individual}


def _byte_level(pre_tokenizer: Json, **changes: object) -> Tokenizer:
    root = json.loads(plain().to_str()) | {"pre_tokenizer": pre_tokenizer} | changes
    return Tokenizer.from_str(json.dumps(root))


@cache
def _characters() -> tuple[dict[str, int], list[list[str]]]:
    """Vocabulary and merges as a SentencePiece model has them: special tokens, bytes, merges, characters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    trainer = trainers.BpeTrainer(vocab_size=1200, show_progress=False, limit_alphabet=300)
    tokenizer.train_from_iterator([*SENTENCES * 3, corpus()[:40000], "a    b\n\n  c   d " * 20], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    results = [left + right for left, right in model["merges"]]
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *results]
    names += [name for name in model["vocab"] if name not in set(results)]
    return {name: index for index, name in enumerate(dict.fromkeys(names))}, model["merges"]


BLOCK = "\u2581"
PREPEND: Json = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": BLOCK},
        {"type": "Replace", "pattern": {"String": " "}, "content": BLOCK},
    ],
}


def sentencepiece_root(
    vocab: dict[str, int],
    merges: list[list[str]],
    normalizer: Json | None,
    pre_tokenizer: Json | None,
    strip: bool = True,
) -> Json:
    """tokenizer.json of a SentencePiece vocabulary whose first ids are <unk>, <s>, </s>."""
    decoders: list[Json] = [
        {"type": "Replace", "pattern": {"String": BLOCK}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if strip:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": c, **flags} for i, c in enumerate(("<unk>", "<s>", "</s>"))],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": vocab,
            "merges": merges,
        },
    }


def _sentencepiece(normalizer: Json | None, pre_tokenizer: Json | None, strip: bool = True) -> Tokenizer:
    vocab, merges = _characters()
    return Tokenizer.from_str(json.dumps(sentencepiece_root(vocab, merges, normalizer, pre_tokenizer, strip)))


def _metaspace(scheme: str, split: bool) -> Tokenizer:
    return _sentencepiece(None, {"type": "Metaspace", "replacement": BLOCK, "prepend_scheme": scheme, "split": split})


FAMILIES: dict[str, Callable[[], Tokenizer]] = {
    "llama3": lambda: _byte_level(byte_level_splits([LLAMA3])),
    "qwen2": lambda: _byte_level(byte_level_splits([QWEN2]), normalizer={"type": "NFC"}),
    "qwen3.5": lambda: _byte_level(byte_level_splits([QWEN35]), normalizer={"type": "NFC"}),
    "o200k": lambda: _byte_level(byte_level_splits([O200K])),
    "deepseek3": lambda: _byte_level(byte_level_splits(DEEPSEEK3)),
    "deepseek-coder": lambda: _byte_level(byte_level_splits(DEEPSEEK_CODER, _digits(True))),
    "deepseek-llm": lambda: _byte_level(byte_level_splits(DEEPSEEK_LLM)),
    "starcoder": lambda: _byte_level(byte_level_splits([], _digits(True), use_regex=True)),
    "digit-runs": lambda: _byte_level(byte_level_splits([], _digits(False), use_regex=True)),
    "llama2": lambda: _sentencepiece(PREPEND, None),
    "metaspace-first": lambda: _metaspace("first", False),
    "metaspace-always": lambda: _metaspace("always", True),
    "metaspace-never": lambda: _metaspace("never", False),
    "replace-only": lambda: _sentencepiece(PREPEND["normalizers"][1], None, strip=False),
}
