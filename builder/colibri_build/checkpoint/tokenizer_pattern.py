r"""Compiles the regular expression of a pre-tokenizer into alternatives of greedy runs, which the runtime matches.

The grammar is what tokenizers use, with the meaning that the Oniguruma engine of the `tokenizers` library gives it:

    expression  = alternative { "|" alternative }
    alternative = { item [ "?" | "+" | "*" | "{n}" | "{m,n}" ] } [ "(?!\S)" | "$" | group "?" ]
    item        = character | \r \n \t \s \S \p{L} \p{Lu} ... | [class] | [^class]
    group       = "(?i:" literals ")" | "(?:" literals ")"      literals: alternatives of single characters and classes

A group may also be a whole alternative. Whatever is outside the grammar is refused, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

import numpy as np

from colibri_build.artifacts import UNBOUNDED, SplitAlternative, SplitAtom
from colibri_build.checkpoint.char_sets import CODE_POINTS, CharSet, category, chars, numeric, ranges, space
from colibri_build.errors import TokenizerError

_ESCAPED = {"r": "\r", "n": "\n", "t": "\t"}
_QUANTIFIERS = {"?": (0, 1), "*": (0, UNBOUNDED), "+": (1, UNBOUNDED)}
# What a letter also matches without regard to case, beside its other case.
_FOLDS = {"s": "\u017f", "k": "\u212a"}


@dataclass(frozen=True, eq=False)
class _Atom:
    chars: CharSet
    least: int
    most: int

    def finished(self) -> SplitAtom:
        return SplitAtom(ranges(self.chars), self.least, self.most)


@lru_cache(maxsize=64)
def compile_pattern(expression: str) -> tuple[SplitAlternative, ...]:
    """Compile an expression. Raises TokenizerError outside the grammar."""
    parser = _Parser(expression)
    alternatives = parser.alternatives()
    if parser.at < len(expression):
        parser.refuse()
    return tuple(alternatives)


def digits_pattern(individual: bool) -> tuple[SplitAlternative, ...]:
    """What the Digits pre-tokenizer isolates: each digit, or runs of them."""
    return (SplitAlternative((SplitAtom(ranges(numeric()), 1, 1 if individual else UNBOUNDED),)),)


EXPRESSIONS_HINT = (
    "take a checkpoint that splits as GPT-2, Llama-3, Qwen2, DeepSeek, StarCoder, OLMo or gpt-oss do: by alternatives of "
    "greedy character classes"
)


def _shown(text: str) -> str:
    shown = ascii(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def refuse(self) -> NoReturn:
        """Raise for what is outside the grammar at the current place."""
        raise TokenizerError(
            f"tokenizer.json: pre_tokenizer 'Split' by {_shown(self.text)} is not supported: "
            f"no rule for {_shown(self.text[self.at : self.at + 20])} at character {self.at + 1}",
            hint=EXPRESSIONS_HINT,
        )

    def peek(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        found = self.peek(word)
        self.at += len(word) if found else 0
        return found

    def alternatives(self) -> list[SplitAlternative]:
        found: list[SplitAlternative] = []
        while not found or self.take("|"):
            found.extend(self._group() if self._at_group() else [self._alternative()])
        return found

    def _at_group(self) -> bool:
        return self.peek("(?i:") or self.peek("(?:")

    def _alternative(self) -> SplitAlternative:
        atoms: list[_Atom] = []
        while self.at < len(self.text) and not self.peek("|") and not self.peek(")"):
            if self.take(r"(?!\S)"):
                return self._ended(atoms, ~space())
            if self.take("$"):  # the end of the text, or of a line
                return self._ended(atoms, ~chars(10, 10))
            if self._at_group():
                tail = tuple(self._group())
                if not self.take("?"):
                    self.refuse()
                return self._ended(atoms, None, tail)
            atoms.append(self._quantified(self._item()))
        return self._ended(atoms)

    def _ended(
        self, atoms: list[_Atom], not_before: CharSet | None = None, tail: tuple[SplitAlternative, ...] = ()
    ) -> SplitAlternative:
        """Refuse what could match nothing, which the engine treats in a way of its own, and what goes on."""
        closed = self.at == len(self.text) or self.peek("|") or self.peek(")")
        if not closed or not any(atom.least for atom in atoms):
            self.refuse()
        ends = () if not_before is None else ranges(not_before)
        return SplitAlternative(tuple(atom.finished() for atom in atoms), ends, tail)

    def _group(self) -> list[SplitAlternative]:
        """Alternatives of single characters and classes."""
        fold = self.take("(?i:")
        if not fold:
            self.take("(?:")
        inside: list[SplitAlternative] = []
        while not inside or self.take("|"):
            atoms: list[_Atom] = []
            while self.at < len(self.text) and self.text[self.at] not in "|)":
                members = self._item()
                atoms.append(_Atom(_folded(members) if fold else members, 1, 1))
            inside.append(self._ended(atoms))
        if not self.take(")"):
            self.refuse()
        return inside

    def _quantified(self, members: CharSet) -> _Atom:
        bounds = (1, 1)
        for sign, of_sign in _QUANTIFIERS.items():
            if self.take(sign):
                bounds = of_sign
                break
        else:
            if self.take("{"):
                bounds = self._bounds()
        if self.at < len(self.text) and self.text[self.at] in "?+*{":
            self.refuse()  # lazy or possessive
        return _Atom(members, *bounds)

    def _bounds(self) -> tuple[int, int]:
        end = self.text.find("}", self.at)
        parts = self.text[self.at : end].split(",")
        if end < 0 or len(parts) > 2 or not all(part.isascii() and part.isdecimal() for part in parts):
            self.refuse()
        least, most = int(parts[0]), int(parts[-1])
        if not 0 < most < 1000 or least > most:
            self.refuse()
        self.at = end + 1
        return least, most

    def _item(self) -> CharSet:
        if self.take("["):
            return self._class()
        if self.peek("\\"):
            return self._escape()
        if self.text[self.at] in "().*+?{}^$]":
            self.refuse()
        self.at += 1
        return chars(ord(self.text[self.at - 1]), ord(self.text[self.at - 1]))

    def _escape(self) -> CharSet:
        r"""\s, \S, \p{..}, or an escaped character."""
        for word, members in ((r"\s", space()), (r"\S", ~space())):
            if self.take(word):
                return members
        if self.peek(r"\p{"):
            end = self.text.find("}", self.at)
            try:
                members = category(self.text[self.at + 3 : end])
            except KeyError:
                self.refuse()
            self.at = end + 1
            return members
        code = ord(self._escaped_char())
        return chars(code, code)

    def _escaped_char(self) -> str:
        char = self.text[self.at + 1 : self.at + 2]
        if not char or not char.isascii() or (char.isalnum() and char not in _ESCAPED):
            self.refuse()
        self.at += 2
        return _ESCAPED.get(char, char)

    def _class(self) -> CharSet:
        negated = self.take("^")
        members = np.zeros(CODE_POINTS, bool)
        start = self.at
        while not self.take("]"):
            if self.at >= len(self.text) or self.peek("[") or self.peek("&&"):
                self.refuse()
            if self.peek("\\") and self.text[self.at + 1 : self.at + 2] in ("s", "S", "p"):
                members |= self._escape()
            else:
                members |= self._range()
        if self.at == start + 1:
            self.refuse()
        return ~members if negated else members

    def _range(self) -> CharSet:
        """A character of a class, or a range of them. A `-` that is not between two characters is refused."""
        if self.peek("-"):
            self.refuse()
        first = self._class_char()
        if not self.take("-"):
            return chars(ord(first), ord(first))
        if self.at >= len(self.text) or self.text[self.at] in "]-[":
            self.refuse()
        last = self._class_char()
        if last < first:
            self.refuse()
        return chars(ord(first), ord(last))

    def _class_char(self) -> str:
        if self.peek("\\"):
            return self._escaped_char()
        self.at += 1
        return self.text[self.at - 1]


def _folded(members: CharSet) -> CharSet:
    """The set without regard to case."""
    folded = members.copy()
    for code in np.flatnonzero(members[:128]).tolist():
        for other in chr(code).lower() + chr(code).upper() + _FOLDS.get(chr(code).lower(), ""):
            folded[ord(other)] = True
    return folded
