"""Random strings of what tokenizers treat in ways of their own, and the comparison with the library on them."""

from __future__ import annotations

import os
import random

from tokenizer_corpus import SENTENCES
from tokenizer_firmware import OK, Firmware
from tokenizers import Tokenizer

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


def compare_random_strings(firmware: Firmware, tokenizer: Tokenizer, seed: str, n: int = FUZZ_STRINGS) -> None:
    """Ids of n strings, and the text of those ids and of random ones."""
    rng = random.Random(seed)
    size = tokenizer.get_vocab_size()
    for _ in range(n):
        text = random_text(rng)
        ids = tokenizer.encode(text).ids
        assert firmware.encode(text) == (OK, ids), ascii(text)
        some = [rng.randrange(300 if rng.random() < 0.5 else size) for _ in range(rng.randrange(12))]
        for sequence in (ids, some):
            assert b"".join(firmware.decode(sequence)).decode() == tokenizer.decode(sequence), sequence
