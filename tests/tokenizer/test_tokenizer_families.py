"""Every supported family gives the ids and the text of the `tokenizers` library: on a corpus and on fuzzed strings."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable

import pytest
from tokenizer_corpus import SENTENCES, corpus
from tokenizer_families import FAMILIES
from tokenizer_firmware import OK, Firmware
from tokenizers import Tokenizer

from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.errors import TokenizerError

Make = Callable[..., Firmware]
FUZZ_STRINGS = int(os.environ.get("COLIBRI_FUZZ_STRINGS", "1000"))
# Characters that some rule treats in a way of its own.
SPECIAL = [
    *" \t\r\n\x0b\u0085\u00a0\u2028\u3000'\u2019/#$\u2581",
    "'s",
    "'LL",
    "'\u017f",
    "  ",
    "\r\n",
    "e\u0301",
    "\u0344",
]
SPECIAL += [
    "\u1100\u1161\u11a8",
    "\uac00\u11a8",
    "\u09c7\u09be",
    "\u0f71\u0f72",
    "\u212b",
    "\u2126",
    "\U0001d15e",
    "1234",
]
SPECIAL += [
    "a\u0323\u0307",
    "a\u0307\u0323",
    "\u01c5",
    "\u02b0",
    "<s>",
    "</s>",
    "<0x41>",
    "\u4e00\u4e01",
    "\u30a2",
    "\ud55c",
]


def random_char(rng: random.Random) -> str:
    while True:
        point = rng.choice(
            (
                rng.randrange(0x80),
                rng.randrange(0x800),
                rng.randrange(0x300, 0x370),
                rng.randrange(0x10000),
                rng.randrange(0x20000),
                rng.randrange(0xAC00, 0xD7A4),
                rng.randrange(0x110000),
            )
        )
        if not 0xD800 <= point < 0xE000:
            return chr(point)


def random_text(rng: random.Random) -> str:
    """Characters, special ones, and bits of sentences."""
    parts: list[str] = []
    for _ in range(rng.randrange(12)):
        kind = rng.random()
        if kind < 0.4:
            parts.append(random_char(rng))
        elif kind < 0.7:
            parts.append(rng.choice(SPECIAL))
        else:
            sentence = rng.choice(SENTENCES)
            start = rng.randrange(len(sentence))
            parts.append(sentence[start : start + rng.randrange(1, 12)])
    return "".join(parts)


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_and_text_of_every_family_are_the_library_s(make_firmware: Make, family: str) -> None:
    tokenizer = FAMILIES[family]()
    firmware, size = make_firmware(tokenizer), tokenizer.get_vocab_size()
    assert firmware.encode(corpus()[:20000], 1 << 20) == (OK, tokenizer.encode(corpus()[:20000]).ids)
    rng = random.Random(family)
    for _ in range(FUZZ_STRINGS):
        text = random_text(rng)
        ids = tokenizer.encode(text).ids
        assert firmware.encode(text) == (OK, ids), ascii(text)
        some = [rng.randrange(300 if rng.random() < 0.5 else size) for _ in range(rng.randrange(12))]
        for sequence in (ids, some):
            assert b"".join(firmware.decode(sequence)).decode() == tokenizer.decode(sequence), sequence


@pytest.mark.parametrize("family", ["o200k", "qwen2", "llama2"])
def test_the_emulated_target_gives_the_same_ids(make_firmware: Make, family: str) -> None:
    tokenizer = FAMILIES[family]()
    assert make_firmware(tokenizer, "aarch64").encode(corpus()[:8000], 1 << 20) == (
        OK,
        tokenizer.encode(corpus()[:8000]).ids,
    )


def test_the_composed_form_of_every_code_point_and_pair_is_the_library_s(make_firmware: Make) -> None:
    """Each code point behind a letter, and behind a mark of a middle class."""
    tokenizer = FAMILIES["qwen2"]()
    firmware = make_firmware(tokenizer)
    points = [chr(point) for point in (*range(0x300, 0xD800), *range(0xE000, 0x30000))]
    for start in range(0, len(points), 4000):
        text = "".join(f"\n{char}a{char}\u0323{char}" for char in points[start : start + 4000])
        assert firmware.encode(text, 1 << 20) == (OK, tokenizer.encode(text).ids)


@pytest.mark.parametrize("side", ["lstrip", "rstrip"])
def test_added_tokens_take_white_space_with_them_as_in_the_library(make_firmware: Make, side: str) -> None:
    root = json.loads(FAMILIES["llama3"]().to_str())
    root["added_tokens"][0][side] = True
    tokenizer = Tokenizer.from_str(json.dumps(root))
    firmware = make_firmware(tokenizer)
    rng = random.Random(side)
    for _ in range(500):
        text = "".join(rng.choice(["<|end|>", "<|pad|>", " ", "\n", "\u3000", "a", "."]) for _ in range(9))
        assert firmware.encode(text) == (OK, tokenizer.encode(text).ids), ascii(text)


def test_a_run_of_spaces_or_letters_of_64_kib_takes_no_seconds_in_any_family(make_firmware: Make) -> None:
    for family in ("o200k", "llama2", "qwen2"):
        tokenizer = FAMILIES[family]()
        for unit in (" ", "A", "a", "\n"):
            text = unit * 65000
            assert make_firmware(tokenizer).encode(text) == (OK, tokenizer.encode(text).ids)


REFUSED = [
    (r"\w+", r"no rule for '\\w+' at character 1"),
    (r"a|(b)", r"no rule for '(b)' at character 3"),
    (r"\p{L}+?", r"no rule for '?' at character 7"),
    (r"\p{Han}+", r"no rule for '\\p{Han}+' at character 1"),
    (r"[[:alpha:]]", r"no rule for '[:alpha:]]' at character 2"),
    (r"[a-z&&b]", r"no rule for '&&b]' at character 5"),
    (r"\s*", r"no rule for '' at character 4"),
    (r"(?=a)b", r"no rule for '(?=a)b' at character 1"),
    (r"a{2", r"no rule for '2' at character 3"),
    (r"(?i:a|b+)", r"no rule for '+)' at character 8"),
    (r"[]", r"no rule for '' at character 3"),
]


@pytest.mark.parametrize("expression,message", REFUSED)
def test_an_expression_outside_the_grammar_is_refused_where_it_leaves_it(expression: str, message: str) -> None:
    root = json.loads(FAMILIES["llama3"]().to_str())
    root["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = expression
    with pytest.raises(TokenizerError, match=r"^tokenizer\.json: pre_tokenizer 'Split' by ") as caught:
        read_tokenizer_bytes(json.dumps(root).encode(), 1500)
    assert caught.value.what.endswith(message)
    assert caught.value.hint


def test_parts_of_a_sentencepiece_tokenizer_that_we_do_not_have_are_refused_by_name() -> None:
    def refusal(path: str, value: object) -> str:
        root = json.loads(FAMILIES["llama2"]().to_str())
        *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        holder = root
        for key in parents:
            holder = holder[key]
        holder[last] = value
        with pytest.raises(TokenizerError) as caught:
            read_tokenizer_bytes(json.dumps(root).encode(), 2000)
        return caught.value.what.removeprefix("tokenizer.json: ")

    assert refusal("normalizer/normalizers/0/prepend", "x").startswith("normalizer 'Prepend' of other text")
    assert refusal("normalizer", {"type": "NFKC"}) == "normalizer 'NFKC' with a decoder 'ByteFallback' is not supported"
    assert refusal("model/byte_fallback", False).startswith("model.byte_fallback false")
    assert refusal("decoder/decoders/3/start", 2).startswith("decoder 'Strip' of other text")
    assert refusal("added_tokens/1", {"id": 1, "content": "<s>", "normalized": True}).startswith("normalized true of")


def test_families_are_known_by_name() -> None:
    names = {
        family: read_tokenizer_bytes(make().to_str().encode(), 2000).pretokenizer for family, make in FAMILIES.items()
    }
    same = ("llama3", "qwen2", "o200k", "deepseek3", "deepseek-coder", "starcoder")
    assert {name: names[name] for name in same} == {name: name for name in same}
