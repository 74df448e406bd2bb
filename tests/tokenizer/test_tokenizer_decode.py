"""What the firmware prints is the text of the ids, character by character: never half a character, never a lost one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tokenizer_corpus import KINDS, corpus, plain
from tokenizer_firmware import Firmware
from tokenizers import Tokenizer

from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes

Make = Callable[..., Firmware]
REPLACEMENT = "\ufffd".encode()


def raw_bytes(tokenizer: Tokenizer) -> list[bytes]:
    """Bytes that each id prints: none for a special token."""
    ours = read_tokenizer_bytes(tokenizer.to_str().encode(), tokenizer.get_vocab_size())
    special = {token.id for token in ours.added if token.special}
    return [b"" if i in special else raw for i, raw in enumerate(ours.tokens)]


def test_every_token_alone_prints_what_the_library_decodes(make_firmware: Make) -> None:
    tokenizer = plain()
    firmware = make_firmware(tokenizer, "sanitized")
    for i in range(tokenizer.get_vocab_size()):
        assert b"".join(firmware.decode([i])).decode() == tokenizer.decode([i])


@pytest.mark.parametrize("build", ["sanitized", "aarch64"])
def test_random_ids_print_what_the_library_and_python_decode(make_firmware: Make, build: str) -> None:
    tokenizer = plain()
    firmware, raw = make_firmware(tokenizer, build), raw_bytes(tokenizer)
    rng = random.Random(8)
    broken = [i for i, data in enumerate(raw) if data and data[:1] >= b"\x80"]
    for _ in range(400):
        ids = [rng.choice(broken) if rng.random() < 0.8 else rng.randrange(len(raw)) for _ in range(rng.randrange(40))]
        text = b"".join(firmware.decode(ids)).decode()
        assert text == b"".join(raw[i] for i in ids).decode("utf-8", errors="replace")
        assert text == tokenizer.decode(ids)


def test_all_sequences_of_border_bytes_print_as_python_decodes_them(make_firmware: Make) -> None:
    """Lead and continuation bytes at every border of the UTF-8 table, in sequences of up to four."""
    tokenizer = plain()
    raw = raw_bytes(tokenizer)
    firmware = make_firmware(tokenizer)
    borders = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE]
    borders += [0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    byte_ids = [raw.index(bytes([byte])) for byte in borders]
    rng = random.Random(1)
    sequences = [(a, b) for a in range(len(borders)) for b in range(len(borders))]
    sequences += [tuple(rng.randrange(len(borders)) for _ in range(rng.choice((3, 4, 5)))) for _ in range(6000)]
    for sequence in sequences:
        expected = bytes(borders[i] for i in sequence).decode("utf-8", errors="replace")
        assert b"".join(firmware.decode([byte_ids[i] for i in sequence])).decode() == expected


def test_streaming_emits_each_character_as_soon_as_it_is_whole_and_never_half_of_one(make_firmware: Make) -> None:
    tokenizer = plain()
    firmware = make_firmware(tokenizer, "sanitized")
    emoji = "👩‍👩‍👧‍👦é漢字"
    raw = raw_bytes(tokenizer)
    ids = [raw.index(bytes([byte])) for byte in emoji.encode()]
    chunks = firmware.decode(ids)
    position = 0
    ends = {len(emoji[:n].encode()) for n in range(1, len(emoji) + 1)}
    for index, chunk in enumerate(chunks[:-1]):
        assert bool(chunk) == (index + 1 in ends)
        chunk.decode()
        position += len(chunk)
    assert position == len(emoji.encode())
    assert chunks[-1] == b""


def test_a_stream_that_ends_inside_a_character_prints_one_replacement(make_firmware: Make) -> None:
    raw = raw_bytes(plain())
    firmware = make_firmware(plain(), "sanitized")
    for cut in (b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98", b"\xe2", b"\xe2\x82", b"\xc3"):
        assert firmware.decode([raw.index(bytes([b])) for b in cut])[-1] == REPLACEMENT


@pytest.mark.parametrize("kind", ["plain", "template", "whole_words"])
def test_encoded_text_decodes_to_itself(make_firmware: Make, kind: str) -> None:
    tokenizer = KINDS[kind]()
    firmware = make_firmware(tokenizer, "sanitized")
    text = corpus()[:20000].replace("👍", "+")
    _, ids = firmware.encode(text)
    assert b"".join(firmware.decode(ids)).decode() == tokenizer.decode(ids)
    if kind != "template":  # which adds spaces
        assert b"".join(firmware.decode(ids)).decode() == text


def test_special_tokens_print_nothing_and_other_added_tokens_their_content(make_firmware: Make) -> None:
    tokenizer = KINDS["template"]()
    firmware = make_firmware(tokenizer, "sanitized")
    for i, token in tokenizer.get_added_tokens_decoder().items():
        assert b"".join(firmware.decode([i])) == (b"" if token.special else token.content.encode())
