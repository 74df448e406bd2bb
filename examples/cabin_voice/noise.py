"""What speech and keyboards add to a command: fillers, courtesy, typing errors, case, punctuation."""

from __future__ import annotations

import re
from random import Random

from .grammar import Draw
from .wording import NUMBER_WORDS

_ANY = (
    "um|uh|hey|okay|ok|well|so|hey car|um,|okay,|hey,|hello,|alright|yeah|right|listen|hi|oh|hmm|computer,|"
    "excuse me|all right,|now then|good,"
).split("|")
_ASK = (
    "please|could you|can you|would you|could you please|can you please|would you please|i want you to|"
    "i need you to|go ahead and|just|now|please just|you should|please could you|would you just|now please|"
    "i would like you to|can you just|you can|i'd like you to|be so kind and|you may|kindly|could you just|"
    "quickly|you have to|will you|will you please|please now|you could|be good and|first"
).split("|")
_TAIL = (
    "please|thanks|thank you|now|okay|if you can|, please|, thanks|now please|if you could|would you|okay thanks|"
    "right now|right away|, okay|immediately|, would you|, thank you|if possible|at once|, now|, got it|"
    "and thanks|, if you would|, will you"
).split("|")
_JOIN = (
    " and | then | and then |, and |, then | and also |. | plus |, and then |, also | and please | and after that |"
    ", and also |, plus |, after that | and next | and now | as well as |, and please |, then please | and finally "
).split("|")
# How often test and validation use held-out fillers.
_SHARE = 0.5


def add_fillers(text: str, imperative: bool, draw: Draw) -> str:
    """Put fillers and courtesy before and after a command, in about half of the cases."""
    rng = draw.rng
    if imperative and rng.random() < 0.3:
        text = f"{draw.word(_ASK, _SHARE)} {text}"
    if rng.random() < 0.15:
        text = f"{draw.word(_ANY, _SHARE)} {text}"
    if rng.random() < 0.15:
        text = f"{text} {draw.word(_TAIL, _SHARE)}"
    if rng.random() < 0.04:
        words = text.split(" ")
        words.insert(rng.randrange(1, len(words) + 1), rng.choice(["um", "uh", "er"]))
        text = " ".join(words)
    return text.replace(" ,", ",")


def join(first: str, second: str, draw: Draw) -> str:
    """Say two commands in one sentence."""
    return first + draw.word(_JOIN, _SHARE) + second


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


def drop_articles(text: str) -> str:
    """Leave out every "the", as a hurried speaker does."""
    return re.sub(r"\bthe ", "", text)


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
