"""Bytes of a trace -> events. The judge is the writer of tests/support, which follows TRACE.md and PROTOCOL.md alone."""

from __future__ import annotations

import random
import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri_build.trace.decode import TraceDecoder
from colibri_build.trace.text import format_record, read_line
from colibri_build.trace_events import (
    ConsoleText,
    Dropped,
    Event,
    Gap,
    Info,
    Memory,
    Phase,
    Routing,
    Stage,
    Time,
    Token,
)
from support.trace_writer import MODEL, TraceWriter, example, frame


def decoded(*chunks: bytes) -> tuple[list[Event], bytes, TraceDecoder]:
    decoder = TraceDecoder()
    found = [item for chunk in chunks for item in decoder.feed(chunk)] + decoder.finish()
    text = b"".join(item.data for item in found if isinstance(item, ConsoleText))
    return [item for item in found if not isinstance(item, ConsoleText)], text, decoder


def test_each_line_of_the_contract_is_read_and_written_to_the_byte() -> None:
    lines = {
        "[INFO] model=2f6c0a5de1b94c77 layers=4 experts=8 clock=62500000Hz": Info(MODEL, 4, 8, 62_500_000),
        "[ROUTING] layer=0, top_k=[3,5], scores=[0.721,0.279]": Routing(0, 0, (3, 5), (0.721, 0.279)),
        "[MEMORY] expert_0_3 @ 0x7f8a3c000000 (size=1245184)": Memory(0, 3, 1245184, 0x7F8A3C000000),
        "[TIME] expert_0_3 FFN: 2450 ticks (39.2us @ 62.5MHz)": Time(Stage.EXPERT, 0, 3, None, 2450),
        "[TIME] layer_0 attention: 1200 ticks (19.2us @ 62.5MHz)": Time(Stage.ATTENTION, 0, 0, None, 1200),
        "[TIME] head: 9000 ticks (144.0us @ 62.5MHz)": Time(Stage.HEAD, 0, 0, None, 9000),
        "[TOKEN] decode position=12 id=431: 20000 ticks (320.0us @ 62.5MHz)": Token(Phase.DECODE, 12, 431, 20000),
        "[TOKEN] prefill position=0 id=1": Token(Phase.PREFILL, 0, 1, None),
        "[DROPPED] 17 records": Dropped(17),
    }
    for line, event in lines.items():
        assert read_line(line) == event
        assert format_record(event, 62_500_000) == line


def test_both_encodings_give_the_same_events() -> None:
    writer = example()
    binary, _, _ = decoded(writer.binary())
    text, _, decoder = decoded(writer.text())
    assert len(binary) == len(writer.records) == decoder.n_lines
    assert [format_record(event, writer.clock) for event in binary] == [line for _, line in writer.records]
    assert [format_record(event, writer.clock) for event in text] == [line for _, line in writer.records]


def test_more_than_four_experts_keep_their_ranks_in_both_encodings() -> None:
    writer = TraceWriter(experts=16)
    for layer in (0, 1):
        writer.routing(layer, [9, 8, 7, 6, 5, 4], [0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    writer.token("decode", 0, 1, None)
    writer.routing(0, [1, 2, 3, 4], [0.25] * 4)
    for data in (writer.binary(), writer.text()):
        ranks = [(e.layer, e.first_rank, e.experts) for e in decoded(data)[0] if isinstance(e, Routing)]
        assert ranks[:2] == [(0, 0, (9, 8, 7, 6)), (0, 4, (5, 4))]
        assert ranks[2:] == [(1, 0, (9, 8, 7, 6)), (1, 4, (5, 4)), (0, 0, (1, 2, 3, 4))]


@pytest.mark.parametrize("size", [1, 7, 250])
def test_a_slow_line_gives_the_same_events_as_a_file(size: int) -> None:
    data = b"[    0.000000] Booting Linux\r\n" + example(2, 3).binary() + b"> hello\r\n" + example(2, 3).text()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    whole, pieces = decoded(data), decoded(*chunks)
    assert whole[:2] == pieces[:2]
    assert whole[1] == b"[    0.000000] Booting Linux\r\n> hello\r\n"


def test_a_log_with_time_stamps_and_colours_is_read() -> None:
    writer = example(2, 2)
    stamped = b"".join(
        b"\x1b[2m2026-03-01T12:00:00.123 ttyS2: " + line + b"\x1b[0m\n" for line in writer.text().splitlines()
    )
    assert decoded(stamped)[0] == decoded(writer.text())[0]


def test_a_flipped_byte_is_counted_and_hurts_one_frame_only() -> None:
    frames = [frame(body) for body in example().bodies()]
    bad = bytearray(frames[3])
    bad[20] ^= 0x04
    events, _, decoder = decoded(b"".join([*frames[:3], bytes(bad), *frames[4:]]))
    gaps = [event for event in events if isinstance(event, Gap)]
    assert (decoder.losses.bad_frames, decoder.losses.gaps, decoder.losses.lost_frames) == (1, 1, 1)
    assert gaps == [Gap(1)]
    assert decoder.n_frames == len(frames) - 1


def test_sequence_gaps_count_lost_frames_also_over_the_wrap() -> None:
    record = struct.pack("<BBHIII", 2, 1, 0, 5, 6, 7)

    def numbered(sequence: int) -> bytes:
        return frame(struct.pack("<BHxI", 0x54, sequence, 0) + record)

    events, _, decoder = decoded(b"".join(map(numbered, (65530, 65531, 65535, 0, 1, 4))))
    assert [event.frames for event in events if isinstance(event, Gap)] == [3, 2]
    assert (decoder.losses.gaps, decoder.losses.lost_frames) == (2, 5)


def test_a_restarted_firmware_is_no_gap_of_thousands() -> None:
    bodies = example().bodies()
    late = b"".join(map(frame, bodies[5:]))
    events, _, decoder = decoded(late + b"U-Boot\r\n" + b"".join(map(frame, bodies)))
    assert decoder.losses.lost_frames == 0
    assert not [event for event in events if isinstance(event, Gap)]


def test_records_that_the_ring_dropped_are_counted_once() -> None:
    writer = example(1, 1)
    data = b"".join(
        frame(struct.pack("<BHxI", 0x54, number, dropped) + body[8:])
        for number, (body, dropped) in enumerate(zip(writer.bodies(), [0, 5, 5, 12], strict=False))
    )
    events, _, decoder = decoded(data)
    assert [event.total for event in events if isinstance(event, Dropped)] == [5, 12]
    assert decoder.losses.dropped_records == 12
    _, _, of_text = decoded(b"[DROPPED] 5 records\n[DROPPED] 12 records\n")
    assert of_text.losses.dropped_records == 12


def test_what_is_unknown_or_cut_off_is_counted() -> None:
    odd = bytes((9,)) + bytes(15)
    bad_stage = struct.pack("<BBBBIII", 5, 0, 0, 7, 0, 0, 0)
    data = frame(struct.pack("<BHxI", 0x54, 0, 0) + odd + bad_stage) + frame(b"\x54\0\0\0\0") + frame(b"\x04abc")
    writer = example(1, 1)
    _, _, decoder = decoded(data + b"[TIME] head: many ticks\n" + writer.binary()[:-20])
    losses = decoder.losses
    assert (losses.unknown_records, losses.malformed_frames, losses.malformed_lines) == (2, 1, 1)
    assert (losses.partial_records, losses.bad_frames) == (1, 0)


def test_an_untimed_token_without_a_line_end_is_not_trusted() -> None:
    events, _, decoder = decoded(b"[TOKEN] decode position=12 id=431\n[TOKEN] decode position=13 id=43")
    assert events == [Token(Phase.DECODE, 12, 431, None)]
    assert decoder.losses.partial_records == 1


def test_a_prompt_without_a_line_end_is_shown_when_the_line_is_silent_but_no_half_record() -> None:
    decoder = TraceDecoder()
    assert decoder.feed(b"READY\r\n> ") == [ConsoleText(b"READY\r\n")]
    assert decoder.idle() == [ConsoleText(b"> ")]
    assert decoder.feed(b"[DROPPED] 1") == decoder.idle() == []
    assert decoder.feed(b"7 records\n") == [Dropped(17)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=12))
def test_noise_never_raises_and_intact_frames_behind_it_are_read(noise: list[bytes]) -> None:
    frames = [frame(body) for body in example(1, 1).bodies()]
    # A frame that stands behind noise needs its 00 twice: noise may have opened one.
    data = b"".join(part for pair in zip(noise, frames, strict=False) for part in (pair[0], b"\0", pair[1]))
    used = min(len(noise), len(frames))
    decoder = TraceDecoder()
    decoder.feed(data)
    decoder.finish()
    assert decoder.n_frames == used


def test_the_binary_encoding_survives_random_flips_with_every_record_true() -> None:
    writer = example(3, 20)
    truth = {line for _, line in writer.records}
    rng = random.Random(7)
    data = bytearray(writer.binary())
    for _ in range(40):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    events, _, decoder = decoded(bytes(data))
    seen = [format_record(e, writer.clock) for e in events if not isinstance(e, Gap | Dropped)]
    assert set(seen) <= truth
    assert 0 < len(seen) < len(writer.records)
    assert decoder.losses.bad_frames and decoder.losses.lost_frames


def test_regular_expressions_find_as_many_records_as_the_decoder() -> None:
    text = example().text().decode()
    events, _, _ = decoded(text.encode())
    for kind in (Routing, Time, Token, Memory, Info):
        assert len(re.findall(rf"^\[{kind.__name__.upper()}\]", text, re.M)) == sum(isinstance(e, kind) for e in events)
