"""How a speaker words a number: digits or English words, units spelled out or short."""

from __future__ import annotations

from random import Random

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

NUMBER_WORDS = frozenset(_ONES + _TENS + ["hundred", "thousand", "point", "half"])

Number = int | float


def _below_hundred(n: int, hyphen: bool) -> str:
    if n < 20:
        return _ONES[n]
    tens, ones = divmod(n, 10)
    if ones == 0:
        return _TENS[tens]
    return f"{_TENS[tens]}{'-' if hyphen else ' '}{_ONES[ones]}"


def _below_thousand(n: int, rng: Random) -> str:
    hundreds, rest = divmod(n, 100)
    tail = _below_hundred(rest, rng.random() < 0.3)
    if hundreds == 0:
        return tail
    head = "a hundred" if hundreds == 1 and rng.random() < 0.3 else f"{_ONES[hundreds]} hundred"
    if rest == 0:
        return head
    return f"{head} and {tail}" if rng.random() < 0.5 else f"{head} {tail}"


def _whole_words(n: int, rng: Random) -> str:
    thousands, rest = divmod(n, 1000)
    if thousands == 0:
        return _below_thousand(n, rng)
    hundreds = n // 100
    if n % 100 == 0 and 10 < hundreds < 100 and rest and rng.random() < 0.5:
        return f"{_below_hundred(hundreds, False)} hundred"
    head = f"{_ONES[thousands]} thousand"
    return head if rest == 0 else f"{head} {_below_thousand(rest, rng)}"


def number_words(value: Number, rng: Random) -> str:
    """Spell a number below 10000 with at most one decimal in English words."""
    whole = int(value)
    tenth = round((value - whole) * 10)
    if tenth == 0:
        return _whole_words(whole, rng)
    if tenth == 5 and whole and rng.random() < 0.4:
        return f"{_whole_words(whole, rng)} and a half"
    return f"{_whole_words(whole, rng)} point {_ONES[tenth]}"


def say_number(value: Number, rng: Random) -> str:
    """Word a number as a speaker would: digits half of the time, else words."""
    return f"{value:g}" if rng.random() < 0.5 else number_words(value, rng)
