"""Bytes of a console or a file -> events, as they come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from colibri_build.frames import Deframer, Frame, Text
from colibri_build.trace.records import TRACE_KIND, read_record, split_body
from colibri_build.trace.text import TAG, read_line
from colibri_build.trace_events import ConsoleText, Dropped, Event, Gap, Losses, Routing, Token

_SEQUENCES = 1 << 16
_LONGEST_LINE = 8192  # bytes without a line end; more is text, whatever it begins with
_RECORD_RANKS = 4
_MOST_LOST = 0xFFFF
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")  # a terminal's log may have it at the end of a line


class TraceDecoder:
    """One direction of a line, or one file: feed bytes, get events and the console's other text, in order.

    Frames and text lines may be mixed, with boot messages, noise or frames of other kinds between them. What was lost is
    counted in `losses`; nothing is ever raised. A text line is held back until it ends: see `idle`.
    """

    def __init__(self) -> None:
        self.losses = Losses()
        self.n_frames = 0  # trace frames
        self.n_lines = 0  # text records
        self._frames = Deframer()
        self._line = bytearray()
        self._expected: int | None = None  # sequence number of the next trace frame
        self._dropped = 0  # as the firmware said last
        self._lost = 0  # records dropped since the last TOKEN line
        self._routing: Routing | None = None  # the last text line, if another may go on with its ranks

    def feed(self, data: bytes) -> list[Event | ConsoleText]:
        """Take bytes; return what is complete with them."""
        found: list[Event | ConsoleText] = []
        for item in self._frames.feed(data):
            found += self._item(item)
        self.losses.bad_frames = self._frames.n_bad
        return found

    def idle(self) -> list[Event | ConsoleText]:
        """Return the text that waits for its line end, as a prompt does; call it when the line is silent."""
        if TAG.search(self._line):
            return []
        return self._rest()

    def finish(self) -> list[Event | ConsoleText]:
        """Take the end of the file; return what waited for more."""
        found: list[Event | ConsoleText] = []
        n_bad = self._frames.n_bad
        for item in self._frames.give_up():
            found += self._item(item)
        self.losses.partial_records += self._frames.n_bad - n_bad
        if TAG.search(self._line):
            return found + list(self._text_line(bytes(self._line), whole=False))
        return found + self._rest()

    def feed_body(self, body: bytes) -> list[Event]:
        """Take the body of a trace frame that somebody else took from the line."""
        split = split_body(body)
        if split is None:
            self.losses.malformed_frames += 1
            return []
        self.n_frames += 1
        sequence, dropped, records = split
        found: list[Event] = list(self._sequence(sequence))
        found += self._drops(dropped)
        for record in records:
            event = read_record(record)
            if event is None:
                self.losses.unknown_records += 1
            else:
                found.append(event)
        return found

    def _item(self, item: Frame | Text) -> Iterator[Event | ConsoleText]:
        if isinstance(item, Text):
            yield from self._text(item.data)
        elif item.body[0] == TRACE_KIND:
            yield from self.feed_body(item.body)

    def _sequence(self, sequence: int) -> Iterator[Event]:
        """Count the frames between the expected one and this. One that lies behind is the firmware's new start."""
        missing = 0 if self._expected is None else (sequence - self._expected) % _SEQUENCES
        self._expected = (sequence + 1) % _SEQUENCES
        if missing >= _SEQUENCES // 2:
            missing, self._dropped = sequence, 0
        if missing:
            self.losses.gaps += 1
            self.losses.lost_frames += missing
            yield Gap(missing)

    def _drops(self, total: int) -> Iterator[Event]:
        """Take the firmware's count; it is less than before after a new start."""
        if total != self._dropped:
            self.losses.dropped_records += total - self._dropped if total > self._dropped else total
            self._dropped = total
            if total:
                yield Dropped(total)

    def _text(self, data: bytes) -> Iterator[Event | ConsoleText]:
        self._line += data
        *lines, rest = self._line.split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            yield from self._text_line(bytes(line) + b"\n", whole=True)
        if len(self._line) > _LONGEST_LINE:
            yield from self._rest()

    def _rest(self) -> list[Event | ConsoleText]:
        rest = bytes(self._line)
        self._line.clear()
        return [ConsoleText(rest)] if rest else []

    def _text_line(self, line: bytes, whole: bool) -> Iterator[Event | ConsoleText]:
        """A record from its tag on; a time stamp or a log's prefix may stand before it."""
        tag = TAG.search(line)
        if not tag:
            yield ConsoleText(line)
            return
        event = read_line(_COLOUR.sub(b"", line[tag.start() :]).decode("utf-8", "replace"))
        if not whole and isinstance(event, Token) and event.ticks is None:
            event = None  # its id may go on
        if event is not None:
            self.n_lines += 1
            yield from self._drops_line(event) if isinstance(event, Dropped) else [self._completed(event)]
        elif whole:
            self.losses.malformed_lines += 1
            yield ConsoleText(line)
        else:
            self.losses.partial_records += 1

    def _drops_line(self, event: Dropped) -> Iterator[Event]:
        before = self.losses.dropped_records
        yield from self._drops(event.total)
        self._lost += self.losses.dropped_records - before

    def _completed(self, event: Event) -> Event:
        """Add what a text line leaves to the lines before it.

        ROUTING: the ranks go on where the line before was full and of the same layer. TOKEN: DROPPED says what it lost.
        """
        if isinstance(event, Routing):
            before = self._routing
            if before and before.layer == event.layer and len(before.experts) == _RECORD_RANKS:
                event = replace(event, first_rank=before.first_rank + _RECORD_RANKS)
            self._routing = event
        elif isinstance(event, Token):
            self._routing = None
            event = replace(event, lost=min(self._lost, _MOST_LOST))
            self._lost = 0
        return event
