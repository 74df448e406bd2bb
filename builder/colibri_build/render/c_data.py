"""Initialisers of C arrays: lists of numbers, and bytes as string literals, which compilers read much faster."""

from __future__ import annotations

from collections.abc import Iterable

COLUMNS = 120


def c_list(values: Iterable[int | str]) -> str:
    """Elements of an initialiser, wrapped; longer than a line, it stands on lines of its own. Empty: one 0."""
    words = [str(value) for value in values] or ["0"]
    width = max(map(len, words)) + 2
    per_line = (COLUMNS - 4) // width
    if len(words) <= 4:
        return ", ".join(words)
    rows = (", ".join(words[start : start + per_line]) for start in range(0, len(words), per_line))
    return "\n    " + ",\n    ".join(rows) + "\n"


# Octal escapes have a fixed length, so a digit may follow; `?` could be part of a trigraph.
_C_BYTE = [chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in range(256)]


def c_string(data: bytes) -> str:
    """Return a C literal for `data`; longer than half a line, it stands on lines of its own."""
    lines: list[str] = []
    line: list[str] = []
    room = COLUMNS - 6
    for byte in data:
        text = _C_BYTE[byte]
        if len(text) > room:
            lines.append("".join(line))
            line, room = [], COLUMNS - 6
        line.append(text)
        room -= len(text)
    lines.append("".join(line))
    if len(lines) == 1 and len(lines[0]) <= COLUMNS // 2:
        return f'"{lines[0]}"'
    return "".join(f'\n    "{text}"' for text in lines)
