"""The firmware's ids are those of the `tokenizers` library: one id wrong, and the model answers another question."""

from __future__ import annotations

import os
import random
import runpy
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizer_corpus import KINDS, SENTENCES, corpus, plain
from tokenizer_firmware import INVALID_UTF8, OK, TOO_LONG, Firmware

from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.render.split_tables import split_tables

ROOT = Path(__file__).parents[2]
# A nightly run sets this to 100000.
FUZZ_STRINGS = int(os.environ.get("COLIBRI_FUZZ_STRINGS", "1000"))
CLASSES = runpy.run_path(str(ROOT / "scripts" / "make_unicode_classes.py"))
Make = Callable[..., Firmware]


def pieces_of(text: str, seed: int) -> list[str]:
    """Cut a text at random places."""
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(len(text)), 400))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("build", ["native", "clang", "aarch64"])
def test_ids_of_a_large_multilingual_text_equal_the_library(make_firmware: Make, build: str) -> None:
    assert make_firmware(plain(), build).encode(corpus(), 1 << 20) == (OK, plain().encode(corpus()).ids)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tokenizer_gives_the_ids_of_the_library(make_firmware: Make, kind: str) -> None:
    tokenizer = KINDS[kind]()
    firmware = make_firmware(tokenizer, "sanitized")
    texts = [
        "",
        " ",
        "  ",
        "a",
        "\t",
        " \ta",
        "\u3000a",
        "bb",
        " bb",
        "ab",
        "cad bee\tfa",
        *SENTENCES,
        *pieces_of(corpus(), 1),
    ]
    for text in texts:
        assert firmware.encode(text) == (OK, tokenizer.encode(text).ids), ascii(text)


def test_whole_words_of_the_vocabulary_are_taken_whole_behind_a_prefix_space_too(make_firmware: Make) -> None:
    tokenizer = KINDS["prefixed_words"]()
    firmware = make_firmware(tokenizer, "sanitized")
    rng = random.Random(6)
    for _ in range(1500):
        text = "".join(rng.choice("aabbcdef é\n") for _ in range(rng.randrange(1, 9)))
        assert firmware.encode(text) == (OK, tokenizer.encode(text).ids), ascii(text)


def test_added_tokens_inside_text_are_found_as_the_library_finds_them(make_firmware: Make) -> None:
    tokenizer = KINDS["template"]()
    firmware = make_firmware(tokenizer, "sanitized")
    rng = random.Random(3)
    bits = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
    bits += ["<|end|", "<", "|", "<|e", "x", " ", "\n", "quick", "qui", "ckb", "r", "e\u0301", "\u00c3", "\u00a9", "."]
    for _ in range(1500):
        text = "".join(rng.choice(bits) for _ in range(rng.randrange(1, 12)))
        assert firmware.encode(text) == (OK, tokenizer.encode(text).ids), ascii(text)


def test_unicode_classes_are_those_of_the_installed_library_for_every_code_point() -> None:
    committed = (ROOT / "builder" / "colibri_build" / "checkpoint" / "unicode_classes.py").read_text()
    source: str = CLASSES["module_source"]()
    assert committed == source, "run scripts/make_unicode_classes.py"


def test_code_points_at_both_sides_of_every_class_border_split_alike(make_firmware: Make) -> None:
    tokenizer = read_tokenizer_bytes(plain().to_str().encode(), 1500)
    starts = [run >> 6 for run in split_tables(tokenizer.splits).class_runs]
    points = {point for start in starts for point in (start - 1, start) if point >= 0 and not 0xD800 <= point < 0xE000}
    text = "".join(f"a{chr(p)}1{chr(p)} {chr(p)}.{chr(p)}{chr(p)}" for p in sorted(points))
    assert make_firmware(plain()).encode(text, 1 << 20) == (OK, plain().encode(text).ids)


CHARACTERS = st.characters(codec="utf-8")
FRAGMENTS = st.sampled_from(
    [*"'stmdrevl a1.\n\t\u00a0\u3000", "'ll", "  ", "<|end|>", "<|", "👩‍👩‍👧", "é", "e\u0301", "ab", "٣"]
)


@pytest.mark.parametrize("kind", ["plain", "template"])
def test_fuzzed_strings_give_the_ids_of_the_library(make_firmware: Make, kind: str) -> None:
    tokenizer = KINDS[kind]()
    firmware = make_firmware(tokenizer, "sanitized")

    @settings(max_examples=FUZZ_STRINGS // 2, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.text(CHARACTERS, max_size=60) | st.lists(FRAGMENTS | CHARACTERS, max_size=40).map("".join))
    @example("x\u0345 's")
    def check(text: str) -> None:
        assert firmware.encode(text) == (OK, tokenizer.encode(text).ids)

    check()


@pytest.mark.parametrize("unit", ["a", " ", "ab", "\u00e9", "'", "\n ", "<|end|", "1", "\U0001f3fd", "\t"])
def test_a_word_of_64_kib_takes_no_seconds(make_firmware: Make, unit: str) -> None:
    text = unit * (65535 // len(unit.encode()))
    firmware = make_firmware(plain())
    start = time.monotonic()
    answer = firmware.encode(text)
    assert time.monotonic() - start < 2
    assert answer == (OK, plain().encode(text).ids)


def test_a_word_longer_than_the_work_memory_is_too_long_and_not_an_overrun(make_firmware: Make) -> None:
    firmware = make_firmware(plain(), "sanitized")
    assert firmware.encode("a" * 65536, 1 << 20) == (TOO_LONG, [])
    assert firmware.encode("b" + "a" * 10_000_000 + " c", 1 << 20) == (TOO_LONG, [])
    assert firmware.encode("still alive") == (OK, plain().encode("still alive").ids)


@pytest.mark.parametrize("build", ["sanitized", "aarch64"])
def test_a_prompt_that_fits_exactly_is_encoded_and_one_id_more_is_refused(make_firmware: Make, build: str) -> None:
    kind = "template" if build == "sanitized" else "plain"
    tokenizer = KINDS[kind]()
    firmware = make_firmware(tokenizer, build)
    for text in ("", "Hello, world", "<|end|>", "a  b", "x" * 300, "nd", "don't <|end|>x"):
        ids = tokenizer.encode(text).ids
        assert firmware.encode(text, len(ids)) == (OK, ids)
        for capacity in range(len(ids)):
            assert firmware.encode(text, capacity) == (TOO_LONG, [])


def test_a_word_as_long_as_the_context_allows_fits_the_work_memory(make_firmware: Make) -> None:
    tokenizer = plain()
    longest = max(range(tokenizer.get_vocab_size()), key=lambda i: len(tokenizer.decode([i])) * (i > 1))
    word = tokenizer.decode([longest]).strip() * 9
    firmware = make_firmware(tokenizer, "sanitized", context=8)
    for n in range(len(word)):
        ids = tokenizer.encode(word[:n]).ids
        assert firmware.encode(word[:n]) == ((OK, ids) if len(ids) <= 8 else (TOO_LONG, []))


INVALID = [
    b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe2\x82", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xed\xa0\x80",
    b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xfe", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x41",
]  # fmt: skip


@pytest.mark.parametrize("bad", INVALID)
def test_text_that_is_not_utf8_is_refused_wherever_the_fault_is(make_firmware: Make, bad: bytes) -> None:
    firmware = make_firmware(plain(), "sanitized")
    for text in (bad, b"before" + bad, bad + b"after", b"<|end|>" + bad + b"<|end|>"):
        assert firmware.encode(text) == (INVALID_UTF8, [])


def test_any_lead_and_second_byte_is_utf8_exactly_where_python_says_so(make_firmware: Make) -> None:
    firmware = make_firmware(plain())
    for pair in range(0xC000, 0x10000):
        data = pair.to_bytes(2, "big") + b"\x80\x80"[: max(0, (pair >> 12) - 0xD)]
        try:
            data.decode()
            expected = OK
        except UnicodeDecodeError:
            expected = INVALID_UTF8
        assert firmware.encode(data)[0] == expected
