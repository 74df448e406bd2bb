"""SentencePiece BPE vocabularies of GGUF files ("llama"): pieces with scores; the merges follow from them."""

from __future__ import annotations

from typing import Any

from colibri_build.checkpoint.gguf_vocabulary import TokenType, Vocabulary
from colibri_build.checkpoint.tokenizer_pipeline import BLOCK
from colibri_build.errors import TokenizerError

Json = dict[str, Any]


def sentencepiece_parts(vocabulary: Vocabulary) -> Json:
    """The sections of a tokenizer.json. Raises TokenizerError."""
    pre = vocabulary.keys.take("pre", "default")
    if pre != "default":
        raise vocabulary.refused("pre", pre, '"default" in a llama vocabulary')
    if vocabulary.flag("remove_extra_whitespaces", False):
        raise vocabulary.refused("remove_extra_whitespaces", True, "false")
    if vocabulary.keys.take("precompiled_charsmap"):
        raise vocabulary.refused("precompiled_charsmap", "...", "none: text that is not normalized")
    prefix = vocabulary.flag("add_space_prefix", True)
    unknown = vocabulary.text_of("unknown")
    merges = vocabulary.texts("merges")
    return {
        "added_tokens": vocabulary.added_tokens(),
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(prefix)},
        "pre_tokenizer": None,
        "post_processor": vocabulary.template(True, False),
        "decoder": {"type": "Sequence", "decoders": _decoders(prefix)},
        "model": {
            "type": "BPE",
            "unk_token": unknown,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocabulary.of_type(*(kind for kind in TokenType if kind != TokenType.UNUSED)),
            "merges": _merges(vocabulary) if merges is None else merges,
        },
    }


def _normalizers(prefix: bool) -> list[Json]:
    replace: Json = {"type": "Replace", "pattern": {"String": " "}, "content": BLOCK}
    return [*([{"type": "Prepend", "prepend": BLOCK}] if prefix else []), replace]


def _decoders(prefix: bool) -> list[Json]:
    parts: list[Json] = [
        {"type": "Replace", "pattern": {"String": BLOCK}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    return [*parts, *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else [])]


def _merges(vocabulary: Vocabulary) -> list[list[str]]:
    """Every way to put a piece together from two others, the best score first, as transformers orders them.

    Of pieces with one score, which SentencePiece joins from the left, those with the longer left part come first.
    Control tokens, unknown and bytes are never joined.
    """
    scores = vocabulary.keys.take("scores")
    if not isinstance(scores, list) or len(scores) != len(vocabulary.tokens):
        raise TokenizerError(
            f'{vocabulary.where}: "tokenizer.ggml.scores" is no list of {len(vocabulary.tokens)} numbers',
            hint="a llama vocabulary needs scores; convert the model again",
        )
    pieces = vocabulary.of_type(TokenType.NORMAL)
    found: list[tuple[float, int, int, str, str]] = []
    for piece, id in pieces.items():
        cuts = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        pairs = [(left, right) for left, right in cuts if left in pieces and right in pieces]
        pairs.sort(key=lambda pair: (pieces[pair[0]], pieces[pair[1]]))
        found += [(scores[id], len(left), len(right), left, right) for left, right in pairs]
    found.sort(key=lambda item: item[:3], reverse=True)
    return [[left, right] for *_, left, right in found]
