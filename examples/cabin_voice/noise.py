"""What speech and keyboards add to a command: fillers, courtesy, typing errors, case, punctuation."""

from __future__ import annotations

import re
from random import Random

from .grammar import Draw
from .wording import NUMBER_WORDS

_ANY = (
    "um|uh|hey|okay|ok|well|so|hey car|um,|okay,|hey,|hello,|alright|yeah|right|listen|hi|oh|hmm|computer,|"
    "excuse me|all right,|now then|good,|dear car,|hello there|my friend,|assistant,|please listen,|good morning,|"
    "one thing,|you know|actually|look,|by the way|hey you|hey there,|car,|machine,|say,|tell you what,|great,|fine,|"
    "perfect,|thanks,|sorry,|yo|ah,|alright then,|hey computer|dear assistant,|buddy,|quick,|sir,|hey assistant,|hello car|"
    "hi there,|ok then|okay so|well then,|right then,|and|but|also|anyway|honestly|oh and|you there,|"
    "attention,|come on,|please,|be a good car,|good evening,|hello computer,|hey buddy,|dear computer,|i think|i guess|"
    "maybe|if you please,|nice,|super,|now,|then|pardon me,|so then|yes,|yes please|ahem"
).split("|")
_ASK = (
    "please|could you|can you|would you|could you please|can you please|would you please|i want you to|"
    "i need you to|go ahead and|just|now|please just|you should|please could you|would you just|now please|"
    "i would like you to|can you just|you can|i'd like you to|be so kind and|you may|kindly|could you just|"
    "quickly|you have to|will you|will you please|please now|you could|be good and|first|it would be nice if you could|"
    "would you be able to|are you able to|i was wondering if you could|i wonder if you could|do me a favor and|be a dear and|"
    "may i ask you to|let me ask you to|it's time to|why don't you|make sure to|remember to|don't forget to|try to|"
    "you need to|you must|i want to|i need to|we need to|we want you to|we'd like you to|let's|help me|help me to|could we|"
    "can we|is it possible to|feel free to|i'd be happy if you could|it would be great if you would|you had better|better|"
    "i'd like to|we'd like to|i have to|we have to|please do|do|please quickly|simply|immediately|at once|now you should|"
    "would it be possible to|any chance you could|i think you should|i expect you to|i ask you to|i beg you to|"
    "please remember to|please try to|please go ahead and|how about you|you might|we should|i should|it's better to"
).split("|")
_TAIL = (
    "please|thanks|thank you|now|okay|if you can|, please|, thanks|now please|if you could|would you|okay thanks|"
    "right now|right away|, okay|immediately|, would you|, thank you|if possible|at once|, now|, got it|"
    "and thanks|, if you would|, will you|for now|when you can|as soon as possible|quickly|if that's okay|buddy|, computer|"
    ", car|that would be great|that's all|if you don't mind|when you're ready|as fast as you can|today|asap|"
    "thank you very much|many thanks|cheers|, my friend|this time|, if that's possible|, would you please|, could you|"
    ", can you|as i said|, yes|, alright|, please and thank you|if it's no trouble|without delay|soon|, hurry up|"
    "this instant|pretty please|, do it now|, come on|, assistant|, sir|, if i may ask|, i said|as always|"
    "for a change|, right|, you know|, i think|when possible|, then|, there's a good car|at last|, finally"
).split("|")
_JOIN = (
    " and | then | and then |, and |, then | and also |. | plus |, and then |, also | and please | and after that |"
    ", and also |, plus |, after that | and next | and now | as well as |, and please |, then please | and finally |"
    ", and |. then |. also |. and |, afterwards | and afterwards |, next | and right after that |, as well as |, but also |"
    ". after that |, besides that | and in addition |. please also | and while you're at it |, and while you're at it |"
    " and additionally |. next |, and now | and besides that | and then also |. and then |. now |, then also | and secondly |"
    ", finally |. finally | and at the same time |, and at the same time | and second | and as a next step |. plus |"
    " and once that's done |, and once that's done | and on top of that |, and after that |, and next |. okay |. and also "
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
