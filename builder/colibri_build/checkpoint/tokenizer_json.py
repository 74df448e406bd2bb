"""Typed access to an untrusted tokenizer.json: every wrong type or missing key becomes one TokenizerError line."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from colibri_build.errors import TokenizerError

JsonObject = dict[str, Any]

EXPORT_HINT = "save the tokenizer again with a current `tokenizers` or `transformers` release"
SUPPORTED_HINT = (
    "take a checkpoint with a byte-level BPE tokenizer: model BPE, pre_tokenizer and decoder ByteLevel with the GPT-2 "
    "expression, no normalizer"
)


def malformed(what: str) -> NoReturn:
    """Raise for a file that breaks the format."""
    raise TokenizerError(f"tokenizer.json: {what}", hint=EXPORT_HINT)


def unsupported(what: str) -> NoReturn:
    """Raise for a feature that we would have to imitate and do not."""
    raise TokenizerError(f"tokenizer.json: {what} is not supported", hint=SUPPORTED_HINT)


def parse(data: bytes) -> JsonObject:
    """Parse a whole tokenizer.json. Duplicate keys are an error: they would hide a token."""
    try:
        root = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        malformed(f"not UTF-8 at byte {error.start} of {len(data)}")
    except json.JSONDecodeError as error:
        malformed(f"not JSON at line {error.lineno}, column {error.colno} ({len(data)} bytes): {error.msg}")
    except (ValueError, RecursionError) as error:
        malformed(f"not JSON ({len(data)} bytes): {type(error).__name__}")
    return as_object(root, "the file")


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                malformed(f"key {key!a} appears twice in one object")
            seen.add(key)
    return result


def as_object(value: object, where: str) -> JsonObject:
    """Check that `value` is a JSON object."""
    if not isinstance(value, dict):
        malformed(f"{where} must be an object, found {_kind(value)}")
    return value


def as_list(value: object, where: str) -> list[Any]:
    """Check that `value` is a JSON array."""
    if not isinstance(value, list):
        malformed(f"{where} must be an array, found {_kind(value)}")
    return value


def as_text(value: object, where: str) -> str:
    """Check that `value` is a string that UTF-8 can express (no lone surrogate)."""
    if not isinstance(value, str):
        malformed(f"{where} must be a string, found {_kind(value)}")
    if any("\ud800" <= char <= "\udfff" for char in value):
        malformed(f"{where} holds a lone surrogate: {value!a}")
    return value


def as_id(value: object, where: str, vocab_size: int) -> int:
    """Check that `value` is a token id below `vocab_size`."""
    if isinstance(value, bool) or not isinstance(value, int):
        malformed(f"{where} must be an integer, found {_kind(value)}")
    if not 0 <= value < vocab_size:
        raise TokenizerError(
            f"tokenizer.json: {where} is {value}, the model has ids 0 to {vocab_size - 1}",
            hint="take tokenizer.json and config.json (vocab_size) from the same checkpoint",
        )
    return value


def flag(holder: JsonObject, key: str, where: str, default: bool) -> bool:
    """Read a boolean; null and absence mean `default`."""
    value = holder.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        malformed(f"{where}.{key} must be true or false, found {_kind(value)}")
    return value


def component(value: object, where: str) -> tuple[str, JsonObject]:
    """Return type name and object of a pipeline component."""
    holder = as_object(value, where)
    return as_text(holder.get("type"), f"{where}.type"), holder


def flatten(value: object, where: str, list_key: str) -> list[tuple[str, JsonObject]]:
    """Return a component, or the components of a Sequence of any depth, in order. Null is an empty list."""
    if value is None:
        return []
    flat: list[tuple[str, JsonObject]] = []
    stack: list[object] = [value]
    while stack:
        name, holder = component(stack.pop(), where)
        if name == "Sequence":
            stack.extend(reversed(as_list(holder.get(list_key), f"{where}.{list_key}")))
        else:
            flat.append((name, holder))
    return flat


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), f"the number {value}")
