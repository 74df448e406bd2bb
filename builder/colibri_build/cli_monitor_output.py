"""Where the monitor shows what it sees: plain lines, JSON lines, or a page of the terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

import rich_click as click
from rich.live import Live

from colibri_build import cli_view
from colibri_build.cli_live import LiveFigures, LiveState, live_page
from colibri_build.trace.text import format_record
from colibri_build.trace_events import Event, Gap, Info, Losses, Token

_CLOCK_HZ = 1_000_000_000  # until INFO says which
_TEXT_CHARACTERS = 4000
_REFRESH_S = 0.1


class Output:
    """What can be shown. The methods do nothing; each output overrides what it shows."""

    def text(self, data: bytes) -> None:
        """Show text of the console."""

    def event(self, event: Event) -> None:
        """Show an event of the trace."""

    def asked(self, prompt: str) -> None:
        """Show that a prompt goes to the board."""

    def answer(self, index: int, token: int, text: bytes) -> None:
        """Show a token of the answer."""

    def done(self, status: Mapping[str, Any]) -> None:
        """Show the status object that ends an answer."""

    def note(self, text: str) -> None:
        """Show a remark of ours."""

    def typed(self, line: str, keys: bytes) -> None:
        """Show the line that is being typed, and the keys that changed it."""

    def refresh(self, losses: Losses, bad_frames: int) -> None:
        """Draw anew, if it is time."""

    def close(self, losses: Losses, bad_frames: int) -> None:
        """End, with the last word on what was lost."""


class PlainOutput(Output):
    """Text as it comes, a line a record. With `notes`, remarks go to standard error, and the summary at the end."""

    def __init__(self, stream: BinaryIO, notes: bool) -> None:
        self._stream, self._notes = stream, notes
        self._clock_hz = _CLOCK_HZ
        self._at_line_start = True
        self._n_tokens = 0

    def text(self, data: bytes) -> None:
        """Write it as it is."""
        if data:
            self._stream.write(data)
            self._stream.flush()
            self._at_line_start = data.endswith(b"\n")

    def event(self, event: Event) -> None:
        """Write the record's text line on a line of its own."""
        if isinstance(event, Info):
            self._clock_hz = event.clock_hz
        self._n_tokens += isinstance(event, Token)
        if isinstance(event, Gap):
            self._line(f"-- {event.frames} trace frames lost")
        else:
            self._line(format_record(event, self._clock_hz))

    def answer(self, index: int, token: int, text: bytes) -> None:
        """Write the answer as it comes."""
        self.text(text)

    def done(self, status: Mapping[str, Any]) -> None:
        """Write why the answer ended."""
        said = f", {status['message']}" if "message" in status else ""
        self._line(f"-- {status['stop']}, {status['tokens']} tokens{said}")

    def asked(self, prompt: str) -> None:
        """Write the prompt."""
        if not self._notes or not sys.stdin.isatty():
            self._line(f"> {prompt}")

    def note(self, text: str) -> None:
        """Write a remark to standard error."""
        if self._notes:
            click.echo(f"-- {text}", err=True)

    def typed(self, line: str, keys: bytes) -> None:
        """Echo the line that is being typed."""
        if self._notes and keys:
            end = b"\n" if keys[-1] in b"\r\n" else b""
            self.text((b"" if end else b"\r\x1b[K> " + line.encode()) + end)

    def close(self, losses: Losses, bad_frames: int) -> None:
        """Write the summary to standard error."""
        if not self._at_line_start:
            self.text(b"\n")
        if self._n_tokens or losses != Losses() or bad_frames:
            lost = f"{losses.dropped_records} records dropped, {losses.lost_frames} trace frames lost"
            self.note(f"{self._n_tokens} tokens traced, {lost}, {bad_frames} bad frames")

    def _line(self, text: str) -> None:
        self.text((b"" if self._at_line_start else b"\n") + text.encode() + b"\n")


class JsonOutput(Output):
    """A JSON object a line: `event` says what it is, `t` the seconds since the start."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._t0 = time.monotonic()

    def _write(self, event: str, **fields: Any) -> None:
        record = {"event": event, "t": round(time.monotonic() - self._t0, 4), **fields}
        self._stream.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        self._stream.flush()

    def text(self, data: bytes) -> None:
        """Write the text; bytes that are no UTF-8 are replaced."""
        self._write("text", text=data.decode("utf-8", "replace"))

    def event(self, event: Event) -> None:
        """Write the event's fields."""
        self._write(type(event).__name__.lower(), **asdict(event))

    def asked(self, prompt: str) -> None:
        """Write the prompt."""
        self._write("prompt", text=prompt)

    def answer(self, index: int, token: int, text: bytes) -> None:
        """Write one token of the answer."""
        self._write("answer", index=index, id=token, text=text.decode("utf-8", "replace"))

    def done(self, status: Mapping[str, Any]) -> None:
        """Write the status object."""
        self._write("done", status=status)

    def note(self, text: str) -> None:
        """Write the remark."""
        self._write("note", text=text)

    def close(self, losses: Losses, bad_frames: int) -> None:
        """Write what was lost."""
        self._write("end", losses=asdict(losses), bad_frames=bad_frames)


class LiveOutput(Output):
    """A page that is drawn over itself."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._figures = LiveFigures()
        self._text = self._typed = ""
        self._console = cli_view.out_console()
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._live.start()
        self._drawn = 0.0

    def text(self, data: bytes) -> None:
        """Keep the end of the text."""
        said = data.decode("utf-8", "replace").replace("\r", "")
        self._text = (self._text + "".join(c for c in said if c == "\n" or c.isprintable()))[-_TEXT_CHARACTERS:]

    def event(self, event: Event) -> None:
        """Count it."""
        self._figures.take(event)

    def asked(self, prompt: str) -> None:
        """Keep the prompt as text."""
        self._text += f"\n> {prompt}\n"

    def answer(self, index: int, token: int, text: bytes) -> None:
        """Keep the answer as text."""
        self.text(text)

    def done(self, status: Mapping[str, Any]) -> None:
        """Keep why the answer ended as text."""
        self._text += f"\n-- {status['stop']}, {status['tokens']} tokens\n"

    def note(self, text: str) -> None:
        """Keep the remark as text."""
        self._text += f"\n-- {text}\n"

    def typed(self, line: str, keys: bytes) -> None:
        """Keep the line that is being typed."""
        self._typed = line

    def refresh(self, losses: Losses, bad_frames: int) -> None:
        """Draw the page at most ten times a second."""
        now = time.monotonic()
        if now - self._drawn >= _REFRESH_S:
            self._drawn = now
            self._draw(losses, bad_frames)

    def close(self, losses: Losses, bad_frames: int) -> None:
        """Draw the last page and leave it there."""
        self._draw(losses, bad_frames)
        self._live.stop()

    def _draw(self, losses: Losses, bad_frames: int) -> None:
        info = self._figures.info
        model = f"  model {info.digest}  {info.n_layers} layers x {info.n_experts} experts" if info else ""
        state = LiveState(self._title + model, losses, bad_frames, self._text, self._typed)
        self._live.update(live_page(self._figures, state, self._console.width), refresh=True)


class Several(Output):
    """Shows everything in several places."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = outputs

    def text(self, data: bytes) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.text(data)

    def event(self, event: Event) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.event(event)

    def asked(self, prompt: str) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.asked(prompt)

    def answer(self, index: int, token: int, text: bytes) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.answer(index, token, text)

    def done(self, status: Mapping[str, Any]) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.done(status)

    def note(self, text: str) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.note(text)

    def typed(self, line: str, keys: bytes) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.typed(line, keys)

    def refresh(self, losses: Losses, bad_frames: int) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.refresh(losses, bad_frames)

    def close(self, losses: Losses, bad_frames: int) -> None:
        """Pass it on."""
        for output in self._outputs:
            output.close(losses, bad_frames)
