"""Patterns with alternatives and slots: the machinery below the lists of commands.

A pattern is plain text with `(a|b|)` alternatives, which may nest, and `{slot}` places. A leading `~`
marks a pattern that is no imperative: "could you" cannot be put before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from .split import Part, divide

Fields = dict[str, Any]

# Every JSON object has its keys in this order, whatever the order of the words was.
KEY_ORDER = (
    "act id zone seat which what axis joint cmd to on temp level pos "
    "speed freq flow pressure angle dist time delta unit dir mode color genre"
).split()


@dataclass(frozen=True)
class Draw:
    """A random source, and the part whose wording is wanted beside that of training."""

    rng: Random
    part: Part = "train"

    def word(self, pool: Sequence[str], share: float) -> str:
        """Choose from a pool: for test and validation, a share comes from the wording held out for them."""
        parts = divide(tuple(pool))
        own = parts[self.part]
        return self.rng.choice(own if own and self.rng.random() < share else parts["train"])


Slot = Callable[[Draw], tuple[str, Fields]]


@dataclass(frozen=True, eq=False)
class Rule:
    """One meaning: the JSON fields that it fixes and the patterns that say it, one a line.

    In a pattern, `{slot?}` stands for a slot, with a blank before it, that may be left out.
    """

    name: str
    base: Fields
    text: str
    weight: float = 1.0
    slots: Mapping[str, Slot] = field(default_factory=dict)

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """All patterns of the rule, of every part."""
        lines = dict.fromkeys(line.strip() for line in self.text.splitlines() if line.strip())
        return tuple(re.sub(r"\{(\w+)\?\}", r"( {\1}|)", line) for line in lines)

    def of(self, part: Part) -> tuple[str, ...]:
        """List the patterns of one part."""
        return divide(self.patterns)[part]

    @cached_property
    def closed(self) -> dict[Part, frozenset[str]]:
        """For each part, the expanded texts that it may not use, for another part has them."""
        test, dev = (
            frozenset(text for p in self.of(part) for text in expand_all(p.removeprefix("~")))
            for part in ("test", "dev")
        )
        return {"train": test | dev, "dev": test, "test": frozenset()}

    def draw_text(self, draw: Draw) -> tuple[str, bool]:
        """Choose a pattern and its alternatives; return the text and whether it is an imperative."""
        patterns, closed = self.of(draw.part), self.closed[draw.part]
        while True:
            pattern = draw.rng.choice(patterns)
            text = expand(pattern.removeprefix("~"), draw.rng)
            if text not in closed:
                return text, not pattern.startswith("~")


def choice(key: str, options: Mapping[Any, str]) -> Slot:
    """Make a slot that sets `key` to one of the options; each has its wordings separated by `|`."""
    values = list(options)
    pools = {value: tuple(words.split("|")) for value, words in options.items()}

    def fill(draw: Draw) -> tuple[str, Fields]:
        value = draw.rng.choice(values)
        return draw.word(pools[value], 0.3), {key: value}

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
    text, imperative = rule.draw_text(draw)
    fields = dict(rule.base)

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        words, more = (rule.slots.get(name) or slots[name])(draw)
        fields.update(more)
        return words

    text = tidy(re.sub(r"\{(\w+)\}", fill, text))
    return Said(text, ordered(fields), rule.name, imperative)
