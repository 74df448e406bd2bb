"""Byte-level BPE vocabularies of GGUF files ("gpt2"): `tokenizer.ggml.pre` names how text is split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizers.models import BPE

from colibri_build.checkpoint.gguf_vocabulary import ADDED, TokenType, Vocabulary
from colibri_build.checkpoint.tokenizer_pipeline import DIGITS, FAMILIES, GPT2_EXPRESSION
from colibri_build.errors import TokenizerError

Json = dict[str, Any]
_EXPRESSIONS = {name: expressions for expressions, name in FAMILIES.items()}


@dataclass(frozen=True)
class _Split:
    """`family` of the expressions. `whole`: a word that is a token is taken whole, whatever the merges say; None: we do
    not know, so every token must be what its merges make.
    """

    family: str
    nfc: bool = False
    whole: bool | None = False
    add_bos: bool = False  # where the file does not say


_LLAMA3 = _Split("llama3", whole=True, add_bos=True)
_SPLITS = {
    "gpt-2": _Split("gpt2"),
    "phi-2": _Split("gpt2"),
    "olmo": _Split("gpt2", nfc=True),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "dbrx": _Split("llama3", whole=None),
    "qwen2": _Split("qwen2", nfc=True),
    "deepseek-coder": _Split("deepseek-coder"),
    "deepseek-v3": _Split("deepseek3"),
    "starcoder": _Split("starcoder"),
    "refact": _Split("starcoder"),
    "smollm": _Split("starcoder"),
    "gpt-4o": _Split("o200k", whole=None),
}


def byte_level_parts(vocabulary: Vocabulary) -> Json:
    """The sections of a tokenizer.json. Raises TokenizerError."""
    name = vocabulary.keys.take("pre")
    if not isinstance(name, str) or name not in _SPLITS:
        raise vocabulary.refused("pre", name, ", ".join(sorted(_SPLITS)))
    merges = vocabulary.texts("merges")
    if merges is None:
        raise vocabulary.refused("merges", None, "a list of merges, which gpt2 vocabularies need")
    vocabulary.keys.take("scores")  # of no meaning in a vocabulary with merges
    if vocabulary.flag("add_space_prefix", False):
        raise vocabulary.refused("add_space_prefix", True, "false in a gpt2 vocabulary")
    split, vocab = _SPLITS[name], _vocab(vocabulary)
    if split.whole is None:
        _check_made_by_merges(vocabulary, vocab, merges)
    return {
        "added_tokens": vocabulary.added_tokens(),
        "normalizer": {"type": "NFC"} if split.nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _pre_tokenizers(_EXPRESSIONS[split.family])},
        "post_processor": vocabulary.template(split.add_bos, False),
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {
            "type": "BPE",
            "unk_token": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": bool(split.whole),
            "vocab": vocab,
            "merges": merges,
        },
    }


def _pre_tokenizers(expressions: tuple[str, ...]) -> list[Json]:
    """The GPT-2 expression is ByteLevel's own."""
    last = expressions[-1] == GPT2_EXPRESSION
    stages = expressions[:-1] if last else expressions
    parts: list[Json] = [
        {"type": "Digits", "individual_digits": True}
        if text == DIGITS
        else {"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated", "invert": False}
        for text in stages
    ]
    return [*parts, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": last}]


def _vocab(vocabulary: Vocabulary) -> dict[str, int]:
    """All tokens, but not the added ones at the end: their text may be that of another token in other spelling."""
    used = vocabulary.of_type(*(kind for kind in TokenType if kind != TokenType.UNUSED))
    added = vocabulary.of_type(*ADDED)
    end = len(used)
    while end and vocabulary.tokens[end - 1] in added:
        end -= 1
    behind = {token for token, id in used.items() if id >= end}
    without_holes = list(used.values()) == list(range(len(used)))
    return {token: id for token, id in used.items() if not without_holes or token not in behind}


def _check_made_by_merges(vocabulary: Vocabulary, vocab: dict[str, int], merges: list[str]) -> None:
    """Refuse a token that is another one's part only: whether text may become it, the file does not say."""
    pairs = [(pair[0], pair[1]) for merge in merges if len(pair := merge.split(" ")) == 2]
    try:
        model = BPE(vocab=vocab, merges=pairs)
    except Exception:  # the library's only class; what is wrong with these merges the reader will say
        return
    added = vocabulary.of_type(*ADDED)
    for token, id in vocab.items():
        if token not in added and [part.id for part in model.tokenize(token)] != [id]:
            raise TokenizerError(
                f"{vocabulary.where}: token {id} {ascii(token)[:60]} is not what its merges make",
                hint="use the published checkpoint, whose tokenizer.json says whether such a word is taken whole",
            )
