"""Every supported family gives the ids and the text of the `tokenizers` library: on a corpus and on fuzzed strings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from tokenizer_corpus import corpus
from tokenizer_families import FAMILIES
from tokenizer_firmware import OK, Firmware
from tokenizer_fuzz import compare_random_strings
from tokenizers import Tokenizer

from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.errors import TokenizerError

Make = Callable[..., Firmware]


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_and_text_of_every_family_are_the_library_s(make_firmware: Make, family: str) -> None:
    tokenizer = FAMILIES[family]()
    firmware = make_firmware(tokenizer)
    assert firmware.encode(corpus()[:20000], 1 << 20) == (OK, tokenizer.encode(corpus()[:20000]).ids)
    compare_random_strings(firmware, tokenizer, family)


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
