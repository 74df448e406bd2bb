"""What a board has said on a serial line, as text that a test searches."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from colibri_build.errors import RunError
from colibri_build.run.console import SHOWN_CHARACTERS

__tracebackhide__ = True  # pytest shows the line of the test that failed instead of ours


class LineConsole:
    """`text` is all that came since `clear`, without carriage returns; only what is behind the last match is searched."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.text = ""
        self._at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> None:
        """Add bytes of the line."""
        self.text += self._decoder.decode(data).replace("\r", "")

    def find(self, wanted: Sequence[str], bad: Sequence[str]) -> re.Match[str] | None:
        """Return the earliest match of the wanted regular expressions. Raises RunError if a bad one is earlier."""
        matches = [(found, index) for index, p in enumerate([*wanted, *bad]) if (found := self._search(p))]
        if not matches:
            return None
        match, index = min(matches, key=lambda item: (item[0].start(), item[1]))
        self._at = match.end()
        if index >= len(wanted):
            raise RunError(f"the console says '{match.group()}'{self.tail()}", hint="the firmware's options and build")
        return match

    def skip(self) -> None:
        """Search nothing of what is there."""
        self._at = len(self.text)

    def tail(self) -> str:
        """Return the text's end for a message."""
        said = self.text[-SHOWN_CHARACTERS:]
        return f"; the console's end: {said!r}" if said else "; the console is empty"

    def _search(self, pattern: str) -> re.Match[str] | None:
        return re.compile(pattern).search(self.text, self._at)
