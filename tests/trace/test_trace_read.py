"""Trace files -> one checked Trace: what is refused, and how the records are cut into tokens and runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from colibri_build.errors import TraceError
from colibri_build.trace.read import read_traces
from support.trace_writer import TraceWriter, example, frame, write_run


@pytest.fixture
def save(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write(data: bytes, name: str = "trace.bin") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def refused(*paths: Path) -> str:
    with pytest.raises(TraceError) as caught:
        read_traces(paths)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value) and "; try: " in str(caught.value)
    return str(caught.value)


def test_a_whole_trace_has_every_record_and_no_loss(save) -> None:  # type: ignore[no-untyped-def]
    writer = example(5, 70)
    trace = read_traces([save(writer.binary())])
    assert not any(count for _, count in trace.losses.items())
    assert sum(trace.counts.values()) == len(writer.records)
    assert len(trace.runs) == 1 and len(trace.runs[0].tokens) == 75
    assert all(token.is_whole and len(token.routing) == 4 for token in trace.tokens)
    assert [len(token.times) for token in trace.tokens] == [21] * 4 + [22] * 71
    assert trace.has_starts and trace.sources[0].encoding == "binary"
    assert len(trace.memory) == 32


def test_text_and_binary_differ_only_in_what_text_leaves_out(save) -> None:  # type: ignore[no-untyped-def]
    writer = example()
    binary, text = read_traces([save(writer.binary())]), read_traces([save(writer.text())])
    assert not text.has_starts and text.sources[0].encoding == "text"
    assert [t.token for t in binary.tokens] == [t.token for t in text.tokens]
    assert [[(e.stage, e.ticks) for e in t.times] for t in binary.tokens] == [
        [(e.stage, e.ticks) for e in t.times] for t in text.tokens
    ]


def test_several_runs_in_one_file_are_told_apart(save) -> None:  # type: ignore[no-untyped-def]
    writer = example(3, 4)
    write_run(writer, 2, 6, seed=2)
    write_run(writer, 1, 1, seed=3)
    trace = read_traces([save(writer.text())])
    assert [len(run.tokens) for run in trace.runs] == [7, 8, 2]
    assert [token.run for token in trace.tokens] == [0] * 7 + [1] * 8 + [2] * 2
    assert trace.losses.missing_tokens == 0


def test_several_files_of_one_model_are_one_report(save) -> None:  # type: ignore[no-untyped-def]
    first, second = save(example(3, 4).binary(), "a.bin"), save(example(2, 2, seed=5).text(), "b.log")
    trace = read_traces([first, second])
    assert [(run.source, len(run.tokens)) for run in trace.runs] == [(0, 7), (1, 4)]
    assert [source.encoding for source in trace.sources] == ["binary", "text"]


def test_what_cannot_be_reported_is_refused_in_one_line(save, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert "no-such.bin" in refused(tmp_path / "no-such.bin")
    assert "is empty" in refused(save(b""))
    assert "no trace record in 21 bytes" in refused(save(b"Booting Linux on CPU\n"))
    damaged = bytearray(frame(example().bodies()[0]))
    damaged[9] ^= 1
    assert "1 bad frames" in refused(save(bytes(damaged)))


def test_a_trace_without_info_or_without_a_whole_token_is_refused(save) -> None:  # type: ignore[no-untyped-def]
    writer = example(2, 2)
    lines = writer.text().splitlines(keepends=True)
    assert "no INFO" in refused(save(b"".join(line for line in lines if b"[INFO]" not in line)))
    assert "no whole token" in refused(save(b"".join(line for line in lines if b"[TOKEN]" not in line)))


def test_two_models_are_refused_by_their_digests(save) -> None:  # type: ignore[no-untyped-def]
    other = TraceWriter(model="00112233aabbccdd")
    write_run(other)
    message = refused(save(example().binary(), "mine.bin"), save(other.binary(), "theirs.bin"))
    assert "theirs.bin is of model 00112233aabbccdd, mine.bin of model 2f6c0a5de1b94c77" in message
    refused(save(example().text() + other.text()))
    slower = TraceWriter(clock=24_000_000)
    write_run(slower)
    assert "ticks a second: 24000000 and 62500000" in refused(save(example().text(), "a"), save(slower.text(), "b"))


@pytest.mark.parametrize("layer, expert", [(4, 0), (0, 8), (0, 255)])
def test_an_expert_that_the_model_lacks_is_refused(save, layer: int, expert: int) -> None:  # type: ignore[no-untyped-def]
    for kind in ("routing", "time", "memory"):
        writer = example(1, 1)
        if kind == "routing":
            writer.routing(layer, [0, expert], [0.5, 0.5])
        elif kind == "time":
            writer.time("expert", layer, expert, 0, 5)
        else:
            writer.memory(layer, expert, 0x1000)
        message = refused(save(writer.binary()))
        assert f"({kind.upper()}) is of layer {layer}, expert {expert}; the model has 4 layers of 8 experts" in message


def test_a_truncated_file_is_read_and_its_end_is_counted(save) -> None:  # type: ignore[no-untyped-def]
    writer = example(5, 40)
    data = writer.binary()
    trace = read_traces([save(data[: len(data) * 3 // 4])])
    assert trace.losses.partial_records + trace.losses.cut_tokens >= 1
    assert 10 < len(trace.runs[0].tokens) < 45


def test_a_token_that_lost_records_in_the_ring_is_incomplete_in_both_encodings(save) -> None:  # type: ignore[no-untyped-def]
    writer = TraceWriter()
    writer.info()
    writer.token("prefill", 0, 1, 900)
    writer.token("decode", 1, 2, 900, lost=3)
    writer.token("decode", 2, 2, 900)
    text = writer.text().replace(b"[TOKEN] decode position=1", b"[DROPPED] 3 records\r\n[TOKEN] decode position=1")
    for data in (writer.binary(), text):
        assert [token.is_whole for token in read_traces([save(data)]).tokens] == [True, False, True]


def test_a_lost_frame_marks_its_tokens_as_incomplete(save) -> None:  # type: ignore[no-untyped-def]
    frames = [frame(body) for body in example(5, 20).bodies()]
    trace = read_traces([save(b"".join(frames[:10] + frames[13:]))])
    torn = [token.token.position for token in trace.tokens if not token.is_whole]
    assert trace.losses.lost_frames == 3
    assert trace.losses.incomplete_tokens == len(torn) > 0
    assert trace.losses.missing_tokens + len(list(trace.tokens)) == 25
