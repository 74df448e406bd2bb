"""C text: a real compiler reads back what Python meant."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri_build.errors import RenderError
from colibri_build.layout import symbol_of
from colibri_build.render.c_text import MAX_STRING_BYTES, c_float, c_string

AWKWARD = ['"', "\\", "??=", "a\n\tb\r\0177", "é€😀", "\x7f\x01" + "7", "%s %d", "*/ //", "\\\n", "é9", "'", "\x1b[0m"]


def compiled_output(tmp: Path, body: str) -> bytes:
    """Compile (trigraphs on) and run a program whose main holds `body`."""
    source = tmp / "program.c"
    source.write_text(f"#include <stdio.h>\nint main(void) {{\n{body}\nreturn 0; }}\n", encoding="utf-8")
    flags = ["-std=c11", "-trigraphs", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(tmp / "program")], check=True)
    return subprocess.run([str(tmp / "program")], check=True, capture_output=True).stdout


def test_strings_come_back_from_the_compiler_byte_for_byte(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    texts = AWKWARD + ["".join(chr(c) for c in rng.integers(1, 0x2FF, 40)) for _ in range(30)]
    body = "\n".join(f"fputs({c_string(text)}, stdout); putchar(0);" for text in texts)
    assert compiled_output(tmp_path, body).split(b"\0")[:-1] == [text.encode() for text in texts]


def test_floats_come_back_from_the_compiler_bit_for_bit(tmp_path: Path) -> None:
    values = [
        0.0,
        -0.0,
        1.0,
        1e-5,
        1 / 3,
        1e-45,
        3.4e38,
        -2.5,
        1e6,
        1.1754942e-38,
        *np.random.default_rng(1).random(50),
    ]
    body = "union { float f; unsigned u; } v;\n" + "\n".join(
        f'v.f = {c_float(value)}; printf("%08x\\n", v.u);' for value in values
    )
    expected = [f"{np.float32(value).view(np.uint32):08x}" for value in values]
    assert compiled_output(tmp_path, body).decode().split() == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_literal_is_exact(value: float) -> None:
    text = c_float(value)
    assert text.endswith("f")
    assert np.float32(float.fromhex(text[:-1])) == np.float32(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e39])
def test_a_value_without_binary32_is_refused(value: float) -> None:
    with pytest.raises(RenderError, match="no finite binary32"), np.errstate(over="ignore"):
        c_float(value)


def test_a_string_that_c_cannot_hold_is_refused() -> None:
    with pytest.raises(RenderError, match="NUL"):
        c_string("a\0b")
    with pytest.raises(RenderError, match=f"has {MAX_STRING_BYTES + 1} bytes"):
        c_string("x" * (MAX_STRING_BYTES + 1))
    with pytest.raises(RenderError, match="not text"):
        c_string("\ud800")


def test_symbols_are_those_of_xxd() -> None:
    assert symbol_of("expert_0_3.bin") == "expert_0_3_bin"
