"""Published vocabularies give the library's ids and text, in tables of less than twice their text."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from real_vocabularies import QUICK, VOCABULARIES
from tokenizer_corpus import SENTENCES, corpus
from tokenizer_firmware import INVALID_UTF8, OK, Firmware
from tokenizer_fuzz import FUZZ_STRINGS, compare_random_strings
from tokenizers import Tokenizer

Make = Callable[..., Firmware]
ROOT = Path(__file__).parents[2]
NAMES = QUICK if FUZZ_STRINGS <= 1000 else tuple(VOCABULARIES)


def texts() -> list[str]:
    """Prose, code, all scripts, white space, emoji."""
    rng = random.Random(8)
    blanks = ["".join(rng.choice(" \n\t\r\u00a0\u3000x.") for _ in range(200)) for _ in range(20)]
    files = [ROOT / "README.md", ROOT / "runtime_c/app/options.c", ROOT / "builder/colibri_build/pipeline.py"]
    return [*SENTENCES, *blanks, *(path.read_text(encoding="utf-8") for path in files), corpus()[:60000]]


# One test for each, because the tables of a large vocabulary take seconds to make.
@pytest.mark.parametrize("name", NAMES)
def test_a_published_vocabulary_gives_the_library_s_ids_and_text(make_firmware: Make, name: str) -> None:
    json_text = VOCABULARIES[name]()
    tokenizer, firmware = Tokenizer.from_str(json_text), make_firmware(json_text)
    tables, text_bytes = firmware.table_bytes()
    assert tables < 2 * text_bytes, f"{tables} bytes of tables for {text_bytes} bytes of text"
    for text in texts():
        ids = tokenizer.encode(text).ids
        assert firmware.encode(text, 1 << 20) == (OK, ids)
        assert b"".join(firmware.decode(ids)).decode() == tokenizer.decode(ids)
    compare_tokens(firmware, tokenizer, name)
    compare_damaged(firmware, tokenizer)
    compare_random_strings(firmware, tokenizer, name)


def compare_tokens(firmware: Firmware, tokenizer: Tokenizer, name: str) -> None:
    """Single tokens, and their text as a prompt: a word that is a token is taken at once."""
    size = tokenizer.get_vocab_size()
    for token in random.Random(name).sample(range(size), min(FUZZ_STRINGS * 4, size)):
        text = tokenizer.decode([token])
        assert b"".join(firmware.decode([token])).decode() == text
        assert firmware.encode(text) == (OK, tokenizer.encode(text).ids), ascii(text)


def compare_damaged(firmware: Firmware, tokenizer: Tokenizer) -> None:
    """Sentences with a byte changed: the library's ids where it is still UTF-8, else refused."""
    rng = random.Random(3)
    for _ in range(300):
        data = bytearray(rng.choice(SENTENCES).encode())
        data[rng.randrange(len(data))] = rng.choice((0x80, 0xC0, 0xE0, 0xF5, 0xFF, 0x41))
        try:
            expected = (OK, tokenizer.encode(data.decode()).ids)
        except UnicodeDecodeError:
            expected = (INVALID_UTF8, [])
        assert firmware.encode(bytes(data)) == expected


@pytest.mark.parametrize(("count", "code"), [(500.0, 0), (510.0, 1)])
def test_the_benchmark_fails_for_instructions_and_never_for_time(
    monkeypatch: pytest.MonkeyPatch, count: float, code: int
) -> None:
    """One byte a second on a machine that is busy is no fault; 510 instructions are too many for the Cortex-A53 alone."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    benchmark = importlib.import_module("tokenizer_speed")
    for name in ("build_plugin", "write_tables", "compile_for"):
        monkeypatch.setattr(benchmark, name, lambda *_: Path())
    monkeypatch.setattr(benchmark, "run", lambda command: CompletedProcess(command, 0, "1\n"))
    monkeypatch.setattr(benchmark, "instructions_a_byte", lambda *_: count)
    assert benchmark.main() == code
