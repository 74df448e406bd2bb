"""A word that is a token is taken at once, where the library's merging comes to that token."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tokenizer_corpus import plain
from tokenizer_firmware import OK, Firmware
from tokenizers import Tokenizer, models

from colibri_build.render.whole_words import unmade_tokens

Make = Callable[..., Firmware]


def _random_merges(rng: random.Random) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A vocabulary over three letters whose merges are in any order: words, too, that merging never makes."""
    names = ["a", "b", "c"]
    merges: list[tuple[str, str]] = []
    for _ in range(rng.randrange(2, 14)):
        pair = (rng.choice(names), rng.choice(names))
        if "".join(pair) not in names:
            names.append("".join(pair))
            merges.append(pair)
    rng.shuffle(merges)
    return {name: index for index, name in enumerate(names)}, merges


def test_a_word_is_taken_whole_only_if_the_library_merges_it_to_that_token() -> None:
    """A word that is a token, but that merging leaves in parts, would otherwise get another id."""
    rng = random.Random(5)
    n_unmade = 0
    for _ in range(300):
        vocab, merges = _random_merges(rng)
        library = Tokenizer(models.BPE(vocab=vocab, merges=merges))
        texts = {index: [vocab[letter] for letter in name] for name, index in vocab.items()}
        ranks = [(vocab[left], vocab[right], vocab[left + right]) for left, right in merges]
        expected = tuple(index for name, index in vocab.items() if library.encode(name).ids != [index])
        assert unmade_tokens(texts, ranks) == expected
        n_unmade += len(expected)
    assert n_unmade > 300


def test_words_that_merging_leaves_in_parts_are_not_taken_whole(make_firmware: Make) -> None:
    """Of bytes and of characters: "abc" is a token, made of "ab" and "c", but "b" and "c" merge first."""
    root = json.loads(plain().to_str())
    vocab, merges = root["model"]["vocab"], root["model"]["merges"]
    for name in ("bq", "qz", "bqz"):
        assert name not in vocab
        vocab[name] = len(vocab)
    root["model"]["merges"] = [["q", "z"], *merges, ["b", "q"], ["bq", "z"]]
    tokenizer = Tokenizer.from_str(json.dumps(root))
    ids = tokenizer.encode("bqz").ids
    assert ids != [vocab["bqz"]]
    firmware = make_firmware(tokenizer)
    for text in ("bqz", " bqz", "xbqz bq qz"):
        assert firmware.encode(text) == (OK, tokenizer.encode(text).ids)
