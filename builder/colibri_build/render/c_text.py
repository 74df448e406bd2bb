"""Values as C text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from colibri_build.errors import RenderError

MAX_STRING_BYTES = 4095  # C11 5.2.4.1: what every compiler takes as one string literal
_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("\t"): "\\t", ord("?"): "\\?"}


def c_string(text: str) -> str:
    """String literal, quotes included: UTF-8, with every byte that is not printable ASCII as three octal digits.

    Octal escapes end after three digits, so a digit may follow. `?` is escaped because of trigraphs. Raises RenderError
    for a NUL, which would end the string in C, and for more than MAX_STRING_BYTES.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise RenderError(f"{text[:40]!r} is not text: {error.reason}", hint="use valid Unicode") from error
    if 0 in data:
        raise RenderError(f"{text[:40]!r} contains a NUL character", hint="remove it: a C string ends there")
    if len(data) > MAX_STRING_BYTES:
        raise RenderError(
            f"{text[:40]!r}... has {len(data)} bytes, a C string literal holds {MAX_STRING_BYTES}",
            hint="use a shorter golden prompt",
        )
    return (
        '"' + "".join(_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data) + '"'
    )


def c_float(value: float) -> str:
    """The binary32 nearest to `value`, as a hexadecimal literal that every compiler reads back exactly."""
    single = float(np.float32(value))
    if not np.isfinite(single):
        raise RenderError(f"{value} is no finite binary32 value", hint="check the model's configuration")
    mantissa, exponent = single.hex().split("p")
    digits = mantissa.rstrip("0") if "." in mantissa else mantissa
    return f"{digits}{'0' if digits.endswith('.') else ''}p{exponent}f"


def wrapped(values: Iterable[str], per_line: int) -> tuple[str, ...]:
    """Initialiser values as lines that end in a comma."""
    items = list(values)
    return tuple(", ".join(items[i : i + per_line]) + "," for i in range(0, len(items), per_line))
