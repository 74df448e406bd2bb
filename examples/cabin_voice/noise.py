"""What speech and keyboards add to a command: fillers, courtesy, typing errors, case, punctuation."""

from __future__ import annotations

import re
from random import Random

from .grammar import Draw
from .wording import NUMBER_WORDS

_ANY = (
    "um",
    "uh",
    "hey",
    "okay",
    "ok",
    "well",
    "so",
    "hey car",
    "um,",
    "okay,",
    "hey,",
    "hello,",
    "alright",
    "yeah",
)
_ASK = (
    "please", "could you", "can you", "would you", "could you please", "can you please", "would you please",
    "i want you to", "i need you to", "go ahead and", "just", "now", "please just", "you should",
)  # fmt: skip
_ASK_HELD = (
    "please could you",
    "would you just",
    "now please",
    "i would like you to",
    "can you just",
    "you can",
)
_TAIL = ("please", "thanks", "thank you", "now", "okay", "if you can", ", please", ", thanks")
_TAIL_HELD = ("now please", "if you could", "would you", "okay thanks")
_JOIN = (" and ", " then ", " and then ", ", and ", ", then ", " and also ", ". ", " plus ")
_JOIN_HELD = (", and then ", ", also ", " and please ", " and after that ")


def add_fillers(text: str, imperative: bool, draw: Draw) -> str:
    """Put fillers and courtesy before and after a command, in about half of the cases."""
    rng = draw.rng
    held = draw.held and rng.random() < 0.5
    if imperative and rng.random() < 0.3:
        text = f"{rng.choice(_ASK_HELD if held else _ASK)} {text}"
    if rng.random() < 0.15:
        text = f"{rng.choice(_ANY)} {text}"
    if rng.random() < 0.15:
        text = f"{text} {rng.choice(_TAIL_HELD if held else _TAIL)}"
    if rng.random() < 0.04:
        words = text.split(" ")
        words.insert(rng.randrange(1, len(words) + 1), rng.choice(["um", "uh", "er"]))
        text = " ".join(words)
    return text.replace(" ,", ",")


def join(first: str, second: str, draw: Draw) -> str:
    """Say two commands in one sentence."""
    held = draw.held and draw.rng.random() < 0.5
    return first + draw.rng.choice(_JOIN_HELD if held else _JOIN) + second


def _misspell(word: str, rng: Random) -> str:
    i = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    if kind == 1:
        return word[:i] + word[i + 1 :]
    return word[:i] + word[i] + word[i:]


def add_typos(text: str, rng: Random) -> str:
    """Swap, drop or double a letter in one or two words; numbers and first letters stay as they are."""
    words = text.split(" ")

    def may_change(word: str) -> bool:
        return re.fullmatch(r"[A-Za-z]{4,}", word) is not None and word.lower() not in NUMBER_WORDS

    places = [i for i, word in enumerate(words) if may_change(word)]
    if not places:
        return text
    for i in rng.sample(places, min(len(places), 1 if rng.random() < 0.7 else 2)):
        words[i] = _misspell(words[i], rng)
    return " ".join(words)


def finish(text: str, rng: Random) -> str:
    """Vary the case of the first letter, the final punctuation and, rarely, the case of all."""
    if rng.random() < 0.35:
        text = text[0].upper() + text[1:]
        text = re.sub(r"\bi\b", "I", text)
    elif rng.random() < 0.06:
        text = text.lower()
    if rng.random() < 0.3:
        text += rng.choice([".", ".", "!", "?"])
    return text
