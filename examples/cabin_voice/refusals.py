"""What the device cannot do: requests that get the polite refusal.

REFUSALS are asked of it in training and in the test. ODD_REQUESTS are for training alone: they put known and
made-up words together so that any unknown word can lead to a refusal.
"""

from __future__ import annotations

import re

from . import refusal_patterns as patterns
from .frames import CLOSE, OFF, ON, OPEN, SET, fit
from .grammar import Draw, Fields, Rule, Slot
from .refusal_words import ACTIONS, BOOK, CHORE, FACT, FOOD, FOREIGN, MESSAGE, THINGS, invented_word
from .split import divide

REFUSAL: Fields = {"error": "unsupported", "say": "Sorry, I can't do that."}

_POOLS = (FOOD, FACT, CHORE, BOOK, MESSAGE, FOREIGN)


def _slot(pool: list[str], leads: str) -> Slot:
    """Make a slot of a pool; in training one in five is another thing or a made-up one, after one of the leads."""

    def fill(draw: Draw) -> tuple[str, Fields]:
        if draw.part == "train" and draw.rng.random() < 0.2:
            return draw.rng.choice(leads.split("|")) + _NOUN(draw)[0], {}
        return draw.word(pool, 0.6), {}

    return fill


def _words(texts: list[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(texts).lower()))


def unseen_words() -> set[str]:
    """List the words that occur in no training wording of the pools, but in a held-out one."""
    parts = [divide(tuple(pool)) for pool in _POOLS]
    seen = _words([text for part in parts for text in part["train"]])
    return _words([text for part in parts for text in (*part["test"], *part["dev"])]) - seen


def _odd(pool: list[str], invented: float) -> Slot:
    unseen = unseen_words()
    known = [word for word in pool if not _words([word]) & unseen]

    def fill(draw: Draw) -> tuple[str, Fields]:
        rng = draw.rng
        return (invented_word(rng) if rng.random() < invented else rng.choice(known)), {}

    return fill


_NOUN = _odd(THINGS, 0.3)
REFUSAL_SLOTS: dict[str, Slot] = {
    "food": _slot(FOOD, "a |a |some |two |a new |a bag of |"),
    "fact": _slot(FACT, "the |the |my |a |the name of the |the price of the |the color of the |how to draw a |"),
    "chore": _slot(CHORE, "clean the |wash my |paint the |fix the |buy a |pack the |carry the |find my |"),
    "book": _slot(BOOK, "a |a |a ticket for the |a room for the |the "),
    "message": _slot(MESSAGE, "a |my |a text to the |an email to my |a note about the "),
    "foreign": _slot(FOREIGN, ""),
    "number": lambda draw: (str(draw.rng.randint(2, 99)), {}),
    "verb": _odd(ACTIONS, 0.2),
    "noun": _NOUN,
}

REFUSALS: list[Rule] = [
    Rule("refuse_order", {}, patterns.ORDER),
    Rule("refuse_fact", {}, patterns.FACT),
    Rule("refuse_chore", {}, patterns.CHORE, 1.2),
    Rule("refuse_book", {}, patterns.BOOK, 0.8),
    Rule("refuse_message", {}, patterns.MESSAGE),
    Rule("refuse_device", {}, patterns.DEVICE, 0.7),
    Rule("refuse_switch", {}, fit(ON + OFF + OPEN + CLOSE, "the {foreign}"), 1.0),
    Rule("refuse_amount", {}, fit(SET, "the {foreign}", "{number} (percent|degrees)"), 0.5),
]

ODD_REQUESTS: list[Rule] = [
    Rule("odd_talk", {}, patterns.TALK, 0.08),
    Rule("odd_request", {}, patterns.ODD, 1.0),
    Rule("odd_switch", {}, fit(ON + OFF, "the {noun}"), 0.35),
    Rule("odd_opening", {}, fit(OPEN + CLOSE, "the {noun}"), 0.25),
    Rule("odd_amount", {}, fit(SET, "the {noun}", "{number} (percent|degrees)"), 0.2),
]
