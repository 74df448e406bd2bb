"""Which wording belongs to training, to validation and to the test: chosen by a checksum, never by hand.

A pool of wordings (the patterns of one meaning, the fillers, the words of a refusal) is divided by the
SHA-256 of the salted text. The salts were fixed before the model was trained; changing a salt draws another
test set. Of the prompts that use training wording alone, a sixteenth each is kept for test and validation.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Literal

Part = Literal["train", "dev", "test"]

TEST_SALT = "cabin-voice-test-3"
DEV_SALT = "cabin-voice-dev-3"
TEST_SHARE = 0.12
DEV_SHARE = 0.08
# A pool keeps at least this many wordings for training; one of SURE or more always gives one to the test.
KEPT = 3
SURE = 6


def score(salt: str, text: str) -> float:
    """Map a salted text to [0, 1), evenly and for ever the same."""
    digest = hashlib.sha256(f"{salt}\n{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@cache
def divide(texts: tuple[str, ...]) -> dict[Part, tuple[str, ...]]:
    """Divide a pool of wordings; each belongs to exactly one part, and order is kept within a part."""
    spare = max(0, len(texts) - KEPT)
    by_test = sorted(texts, key=lambda text: score(TEST_SALT, text))
    test = [text for text in by_test if score(TEST_SALT, text) < TEST_SHARE]
    if not test and len(texts) >= SURE:
        test = by_test[:1]
    test = test[:spare]
    rest = [text for text in texts if text not in test]
    dev = [text for text in rest if score(DEV_SALT, text) < DEV_SHARE][: spare - len(test)]
    train = tuple(text for text in rest if text not in dev)
    return {"train": train, "dev": tuple(dev), "test": tuple(text for text in texts if text in test)}


def prompt_part(prompt: str) -> Part:
    """Say which part a whole prompt is kept for, whatever its case."""
    place = int(score(TEST_SALT, prompt.lower()) * 16)
    return "test" if place == 0 else "dev" if place == 1 else "train"
