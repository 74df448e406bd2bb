"""Patterns with alternatives and slots: the machinery below the lists of commands.

A pattern is plain text with `(a|b|)` alternatives, which may nest, and `{slot}` places. A leading `~`
marks a pattern that is no imperative: "could you" cannot be put before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

Fields = dict[str, Any]

# Every JSON object has its keys in this order, whatever the order of the words was.
KEY_ORDER = [
    "act",
    "id",
    "zone",
    "seat",
    "which",
    "what",
    "axis",
    "joint",
    "cmd",
    "to",
    "on",
    "temp",
    "level",
    "pos",
    "speed",
    "freq",
    "flow",
    "pressure",
    "angle",
    "dist",
    "time",
    "delta",
    "unit",
    "dir",
    "mode",
    "color",
    "genre",
]


@dataclass(frozen=True)
class Draw:
    """A random source, and whether held-out wording may be used."""

    rng: Random
    held: bool


Slot = Callable[[Draw], tuple[str, Fields]]


@dataclass(frozen=True)
class Rule:
    """One meaning: the patterns that say it and the JSON fields that they fix."""

    name: str
    base: Fields
    train: tuple[str, ...]
    held: tuple[str, ...]
    weight: float = 1.0
    slots: Mapping[str, Slot] = field(default_factory=dict)


def choice(key: str, options: Mapping[Any, str], held: Mapping[Any, str] | None = None) -> Slot:
    """Make a slot that sets `key` to one of the options; each has its wordings separated by `|`."""
    values = list(options)

    def fill(draw: Draw) -> tuple[str, Fields]:
        value = draw.rng.choice(values)
        words = options[value]
        if held and value in held and draw.held and draw.rng.random() < 0.3:
            words = held[value]
        return draw.rng.choice(words.split("|")), {key: value}

    return fill


def fields_choice(options: list[tuple[Fields, str]]) -> Slot:
    """Make a slot that sets several fields at once."""

    def fill(draw: Draw) -> tuple[str, Fields]:
        fields, words = draw.rng.choice(options)
        return draw.rng.choice(words.split("|")), dict(fields)

    return fill


def _split_top(text: str) -> list[str]:
    """Split at the `|` that lie outside of parentheses."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _first_group(text: str) -> tuple[int, int] | None:
    """Find the first `(...)`, as its begin and end."""
    begin = text.find("(")
    if begin < 0:
        return None
    depth = 0
    for i in range(begin, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return begin, i + 1
    raise ValueError(f"unbalanced pattern: {text}")


def tidy(text: str) -> str:
    """Join the pieces of an expanded pattern with single spaces."""
    return re.sub(r"\s+", " ", text).strip()


def expand(pattern: str, rng: Random) -> str:
    """Choose one of the alternatives in each group of a pattern."""
    while (group := _first_group(pattern)) is not None:
        begin, end = group
        chosen = rng.choice(_split_top(pattern[begin + 1 : end - 1]))
        pattern = pattern[:begin] + chosen + pattern[end:]
    return tidy(pattern)


def expand_all(pattern: str) -> set[str]:
    """List every text that a pattern stands for, with its slots left open."""
    group = _first_group(pattern)
    if group is None:
        return {tidy(pattern)}
    begin, end = group
    texts: set[str] = set()
    for part in _split_top(pattern[begin + 1 : end - 1]):
        texts |= expand_all(pattern[:begin] + part + pattern[end:])
    return texts


def ordered(fields: Fields) -> Fields:
    """Put the keys of an object in the fixed order."""
    return {key: fields[key] for key in KEY_ORDER if key in fields}


@dataclass(frozen=True)
class Said:
    """One command: its words, its meaning and the rule that it came from."""

    text: str
    meaning: Fields
    rule: str
    imperative: bool


def say(rule: Rule, draw: Draw, slots: Mapping[str, Slot]) -> Said:
    """Word a rule once: choose a pattern, its alternatives and its slots."""
    patterns = rule.held if draw.held else rule.train
    pattern = draw.rng.choice(patterns)
    text = expand(pattern.removeprefix("~"), draw.rng)
    fields = dict(rule.base)

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        words, more = (rule.slots.get(name) or slots[name])(draw)
        fields.update(more)
        return words

    text = tidy(re.sub(r"\{(\w+)\}", fill, text))
    return Said(text, ordered(fields), rule.name, not pattern.startswith("~"))
