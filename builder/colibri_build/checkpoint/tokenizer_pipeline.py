"""Normalizer, pre-tokenizer and decoder of tokenizer.json: two ways to put them together are known."""

from __future__ import annotations

from dataclasses import dataclass

from colibri_build.artifacts import SplitStage
from colibri_build.checkpoint.tokenizer_json import (
    JsonObject,
    as_object,
    as_text,
    component,
    flag,
    flatten,
    malformed,
    unsupported,
)
from colibri_build.checkpoint.tokenizer_pattern import compile_pattern, digits_pattern

GPT2_EXPRESSION = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_DEEPSEEK3 = (
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_O200K = (
    r"[^\r\n\p{L}\p{N}]?" + _UPPER + "*" + _LOWER + r"+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?" + _UPPER + "+" + _LOWER + r"*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIGITS, _DIGIT_RUNS = "Digits, each", "Digits, runs"  # stand for the Digits pre-tokenizer among the expressions
FAMILIES = {
    (GPT2_EXPRESSION,): "gpt2",
    (DIGITS, GPT2_EXPRESSION): "starcoder",
    (_QWEN2 % r"\p{N}{1,3}",): "llama3",
    (_QWEN2 % r"\p{N}",): "qwen2",
    (r"\p{N}{1,3}", _CJK, _DEEPSEEK3): "deepseek3",
    ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", DIGITS): "deepseek-coder",
    (_O200K,): "o200k",
}
BLOCK = "\u2581"


@dataclass(frozen=True)
class Pipeline:
    """What happens to text before and after the model. `prefix_space` and `strip_space` as in CharacterVocabulary."""

    expressions: tuple[str, ...]
    splits: tuple[SplitStage, ...]
    nfc: bool = False
    byte_level: bool = True
    add_prefix_space: bool = False
    prefix_space: str = "plain"
    strip_space: bool = False

    @property
    def family(self) -> str:
        """Name of the family whose expressions these are; "" for others."""
        return FAMILIES.get(self.expressions, "")


def read_pipeline(root: JsonObject) -> Pipeline:
    """Read the three sections. Raises TokenizerError for a combination that the runtime does not have."""
    decoder = flatten(root.get("decoder"), "decoder", "decoders")
    names = [name for name, _ in decoder]
    if names == ["ByteLevel"]:
        return _read_byte_level(root)
    if names[:3] != ["Replace", "ByteFallback", "Fuse"] or names[3:] not in ([], ["Strip"]):
        unsupported(f"decoder {' + '.join(names) or 'null'!a}")
    return _read_characters(root, decoder)


def _read_byte_level(root: JsonObject) -> Pipeline:
    normalizers = [name for name, _ in flatten(root.get("normalizer"), "normalizer", "normalizers")]
    for name in normalizers:
        if name != "NFC":
            unsupported(f"normalizer {name!a}")
    parts = flatten(root.get("pre_tokenizer"), "pre_tokenizer", "pretokenizers")
    names = [name for name, _ in parts]
    if not names or names[-1] != "ByteLevel" or not {*names[:-1]} <= {"Split", "Digits"}:
        unsupported(f"pre_tokenizer {' + '.join(names) or 'null'!a}")
    expressions = [_split_expression(holder) if name == "Split" else _digits(holder) for name, holder in parts[:-1]]
    if flag(parts[-1][1], "use_regex", "pre_tokenizer", True):
        expressions.append(GPT2_EXPRESSION)
    add_prefix_space = flag(parts[-1][1], "add_prefix_space", "pre_tokenizer", True)
    if add_prefix_space and len(parts) > 1:
        unsupported(f"pre_tokenizer {' + '.join(names)!a} with add_prefix_space true")
    return Pipeline(tuple(expressions), _compiled(expressions), bool(normalizers), True, add_prefix_space)


def _compiled(expressions: list[str]) -> tuple[SplitStage, ...]:
    return tuple(
        digits_pattern(text == DIGITS) if text in (DIGITS, _DIGIT_RUNS) else compile_pattern(text)
        for text in expressions
    )


def _digits(holder: JsonObject) -> str:
    return DIGITS if flag(holder, "individual_digits", "pre_tokenizer", False) else _DIGIT_RUNS


def _split_expression(split: JsonObject) -> str:
    pattern = as_object(split.get("pattern"), "pre_tokenizer.pattern")
    if "Regex" not in pattern:
        unsupported(f"pre_tokenizer 'Split' by {ascii(pattern)[:60]}")
    if split.get("behavior") != "Isolated" or flag(split, "invert", "pre_tokenizer", False):
        unsupported(f"pre_tokenizer 'Split' with behavior {split.get('behavior')!a} or invert")
    return as_text(pattern["Regex"], "pre_tokenizer.pattern.Regex")


def _read_characters(root: JsonObject, decoder: list[tuple[str, JsonObject]]) -> Pipeline:
    if _replacement(decoder[0][1], "decoder") != (BLOCK, " "):
        unsupported("decoder 'Replace' of other text than U+2581 by a space")
    strip = len(decoder) == 4
    if strip and [decoder[3][1].get(key) for key in ("content", "start", "stop")] != [" ", 1, 0]:
        unsupported("decoder 'Strip' of other text than one space at the start")
    normalizers = flatten(root.get("normalizer"), "normalizer", "normalizers")
    prefix, by_space = (
        _read_metaspace(root) if root.get("pre_tokenizer") is not None else (_read_prepend(normalizers), False)
    )
    if root.get("pre_tokenizer") is not None and normalizers:
        unsupported(f"normalizer {normalizers[0][0]!a} with pre_tokenizer 'Metaspace'")
    expressions = ["[ ][^ ]*|[^ ]+"] if by_space else []
    return Pipeline(tuple(expressions), _compiled(expressions), False, False, False, prefix, strip)


def _replacement(holder: JsonObject, where: str) -> tuple[object, object]:
    return as_object(holder.get("pattern"), f"{where}.pattern").get("String"), holder.get("content")


def _read_prepend(normalizers: list[tuple[str, JsonObject]]) -> str:
    """prefix_space of a normalizer that replaces spaces by U+2581, one more in front of each stretch or not."""
    names = [name for name, _ in normalizers]
    if names not in (["Prepend", "Replace"], ["Replace"]):
        unsupported(f"normalizer {' + '.join(names) or 'null'!a} with a decoder 'ByteFallback'")
    if _replacement(normalizers[-1][1], "normalizer") != (" ", BLOCK):
        unsupported("normalizer 'Replace' of other text than a space by U+2581")
    if len(names) == 1:
        return "plain"
    if normalizers[0][1].get("prepend") != BLOCK:
        unsupported("normalizer 'Prepend' of other text than U+2581")
    return "always"


def _read_metaspace(root: JsonObject) -> tuple[str, bool]:
    """prefix_space, and whether each space starts a word."""
    name, holder = component(root["pre_tokenizer"], "pre_tokenizer")
    if name != "Metaspace":
        unsupported(f"pre_tokenizer {name!a} with a decoder 'ByteFallback'")
    if holder.get("replacement") != BLOCK:
        unsupported(f"pre_tokenizer 'Metaspace' with replacement {holder.get('replacement')!a}")
    if "prepend_scheme" not in holder and not flag(holder, "add_prefix_space", "pre_tokenizer", True):
        unsupported("pre_tokenizer 'Metaspace' with add_prefix_space and no prepend_scheme")
    scheme = holder.get("prepend_scheme", "always")
    prefixes = {"always": "unless", "first": "first", "never": "plain"}
    if scheme not in prefixes:
        malformed(f"pre_tokenizer.prepend_scheme is {scheme!a}, not always, first or never")
    return prefixes[scheme], flag(holder, "split", "pre_tokenizer", True)
