"""The frame codec in C (sanitized) and its Python twin: what one sends the other reads, and nothing else."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from colibri_build.frames import MAX_BODY_BYTES, Deframer, Frame, Text, encode

Item = Frame | Text | None  # None: a bad frame
RESERVED = frozenset(b"\0\n\r\x11\x13")


@pytest.fixture
def c_encode(link_program: Callable[[str], Path]) -> Callable[[list[bytes]], list[bytes]]:
    def run(bodies: list[bytes]) -> list[bytes]:
        stdin = b"".join(len(body).to_bytes(2, "little") + body for body in bodies)
        output = subprocess.run(
            [link_program("codec_main"), "encode"], input=stdin, stdout=-1, check=True, timeout=20
        ).stdout
        return list(split(output, 0))

    return run


@pytest.fixture
def c_decode(link_program: Callable[[str], Path]) -> Callable[[bytes], list[Item]]:
    def run(stream: bytes) -> list[Item]:
        output = subprocess.run(
            [link_program("codec_main"), "decode"], input=stream, stdout=-1, check=True, timeout=20
        ).stdout
        items: list[Item] = []
        for record in split(output, 1):
            kind, data = record[0], record[1:]
            if kind == 2 and items and isinstance(items[-1], Text):
                items[-1] = Text(items[-1].data + data)
            else:
                items.append(Frame(data) if kind == 1 else Text(data) if kind == 2 else None)
        return items

    return run


def split(output: bytes, n_head: int) -> Iterable[bytes]:
    at = 0
    while at < len(output):
        start = at + n_head + 2
        end = start + int.from_bytes(output[at + n_head : start], "little")
        yield output[at : at + n_head] + output[start:end]
        at = end


def python_decode(stream: bytes) -> tuple[list[Frame | Text], int]:
    """Items, with neighbouring text joined, and the number of bad frames."""
    deframer = Deframer()
    return [*deframer.feed(stream), *deframer.give_up()], deframer.n_bad


def merged(items: Iterable[Item]) -> list[Frame | Text]:
    """Without bad frames; text on both sides of one is joined."""
    joined: list[Frame | Text] = []
    for item in items:
        if isinstance(item, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(joined[-1].data + item.data)
        elif item is not None:
            joined.append(item)
    return joined


def bodies() -> list[bytes]:
    """Every length with the bytes that are hardest to send, and random ones."""
    rng = random.Random(3)
    hard = [bytes([byte]) * n for n in range(1, MAX_BODY_BYTES + 1) for byte in (0, 0x0A, 0x7D, 0xFF)]
    return hard + [rng.randbytes(rng.randint(1, MAX_BODY_BYTES)) for _ in range(2000)]


def test_both_encoders_write_the_same_bytes(c_encode: Callable[[list[bytes]], list[bytes]]) -> None:
    wires = c_encode(bodies())
    assert wires == [encode(body) for body in bodies()]
    for wire in wires:
        assert wire[0] == wire[-1] == 0 and not RESERVED.intersection(wire[1:-1])
        assert len(wire) <= 508


def test_what_was_sent_is_what_comes(c_decode: Callable[[bytes], list[Item]]) -> None:
    stream = b"".join(encode(body) for body in bodies())
    expected = [Frame(body) for body in bodies()]
    assert c_decode(stream) == expected
    assert python_decode(stream) == (expected, 0)


@pytest.mark.parametrize("body", [b"", b"x" * (MAX_BODY_BYTES + 1)], ids=["empty", "too long"])
def test_a_body_that_no_frame_holds_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 248 bytes"):
        encode(body)


def test_text_around_frames_arrives_whole(c_decode: Callable[[bytes], list[Item]]) -> None:
    a, b = encode(b"\x04abc"), encode(b"\x05\x01")
    cases: list[tuple[bytes, list[Item]]] = [
        (b"boot\r\n" + a + b"READY\r\n" + b, [Text(b"boot\r\n"), Frame(b"\x04abc"), Text(b"READY\r\n"), Frame(b"\x05\x01")]),
        (a[:-1] + b, [Frame(b"\x04abc"), Frame(b"\x05\x01")]),  # one 00 between two frames
        (b"\0\0\0" + a + b"\0\0", [Frame(b"\x04abc")]),
        (a + "> é".encode(), [Frame(b"\x04abc"), Text("> é".encode())]),
        (a[:4] + b"\r\n[ 1.0] oops\r\n" + b, [None, Text(b"\n[ 1.0] oops\r\n"), Frame(b"\x05\x01")]),
        (b"\0" + b"x" * 600 + a, [Text(b"x" * 600), Frame(b"\x04abc")]),
        (b"\0\x01" + b"x" * 600 + a, [None, Text(b"x" * 80), Frame(b"\x04abc")]),
        (b"\0\x7d\0\x05\x01\x7d\x41\0", [None, None]),
    ]  # fmt: skip
    for stream, expected in cases:
        assert c_decode(stream) == expected
        items, n_bad = python_decode(stream)
        assert (merged(items), n_bad) == (merged(expected), expected.count(None))


def damage(stream: bytearray, rng: random.Random) -> None:
    """One fault of a real line: a bit flipped, bytes lost, doubled, or noise."""
    at, kind = rng.randrange(len(stream)), rng.randrange(4)
    if kind == 0:
        stream[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del stream[at : at + rng.randint(1, 40)]
    elif kind == 2:
        stream[at:at] = stream[at : at + rng.randint(1, 600)]
    else:
        stream[at:at] = rng.randbytes(rng.randint(1, 40))


def test_of_5000_frames_on_a_bad_line_none_is_taken_wrongly(c_decode: Callable[[bytes], list[Item]]) -> None:
    rng = random.Random(11)
    sent = [i.to_bytes(4, "little") + rng.randbytes(rng.randint(1, 120)) for i in range(5000)]
    frames = [encode(body) for body in sent]
    stream = bytearray()
    for first in range(0, 5000, 50):
        part = bytearray(b"".join(frames[first : first + 50]))
        for _ in range(rng.randint(0, 12)):
            damage(part, rng)
        stream += part
    items = c_decode(bytes(stream))
    got = [item.body for item in items if isinstance(item, Frame)]
    assert set(got) <= set(sent)
    assert len(set(got)) > 4000 and items.count(None) > 100
    python_items, n_bad = python_decode(bytes(stream))
    assert (merged(python_items), n_bad) == (merged(items), items.count(None))


def test_both_decoders_agree_on_noise(c_decode: Callable[[bytes], list[Item]]) -> None:
    rng = random.Random(5)
    alphabet = bytes(range(256)) + b"\0" * 60 + b"\x7d\n\r\x01\x02\x03" * 8
    stream = bytes(rng.choices(alphabet, k=300_000))
    items = c_decode(stream)
    python_items, n_bad = python_decode(stream)
    assert (merged(python_items), n_bad) == (merged(items), items.count(None))
    assert n_bad > 1000
