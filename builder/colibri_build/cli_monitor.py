"""colibri-monitor: the live console of a board."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import rich_click as click

from colibri_build.build_folder import Built, open_build
from colibri_build.cli_keys import Keys, LineEditor
from colibri_build.cli_monitor_output import JsonOutput, LiveOutput, Output, PlainOutput, Several
from colibri_build.cli_options import PATH
from colibri_build.cli_serial import baud_option, port_help
from colibri_build.errors import ColibriError, RunError
from colibri_build.run.client import Client, TraceMask
from colibri_build.run.diagnosis import other_baud
from colibri_build.run.link import Link
from colibri_build.run.port_faults import DisconnectedError
from colibri_build.run.serial_port import DEFAULT_BAUD, SerialPort
from colibri_build.run.verify_serial import require_same_model
from colibri_build.trace.decode import TraceDecoder
from colibri_build.trace_events import ConsoleText, Event, Info

_STEP_S = 0.05
_SILENT_S = 5.0
_QUIET_S = 0.3  # after an answer: the last records have come


class Monitor:
    """One board on one line. Without `mask` its human mode is passed through; with one, a session turns tracing on.

    In a session each typed line is a prompt. `model`: digest of the build that the board should hold; "": any.
    """

    def __init__(self, port: SerialPort, output: Output, keys: Keys, mask: TraceMask, model: str) -> None:
        self.link = Link(port, self._take_text, self._take_trace, self._idle)
        self.decoder = TraceDecoder()
        self._client = Client(self.link)
        self._output, self._keys, self._mask, self._model = output, keys, mask, model
        self._editor = LineEditor()
        self._prompts: list[str] = []
        self._has_baud_hint = self._has_asked = False

    def run(self, seconds: float | None) -> None:
        """Watch until Ctrl-C, Ctrl-], the end of a piped input's answers, or for `seconds`. Raises RunError."""
        started = time.monotonic()
        said_silent = False
        try:
            while seconds is None or time.monotonic() - started < seconds:
                if self._mask:
                    self._keep_session()
                if self._prompts:
                    self._answer(self._prompts.pop(0))
                elif self._is_done():
                    break
                self.link.pump(_STEP_S)
                if not said_silent and self.link.port.received == 0 and time.monotonic() - started > _SILENT_S:
                    said_silent = True
                    self._output.note(f"no byte for {_SILENT_S:g} s; check power, wiring, console= and --baud")
        except KeyboardInterrupt:
            pass
        finally:
            self._client.close()
            self._show(self.decoder.finish())

    def _is_done(self) -> bool:
        """Whether piped prompts have ended and all that their answers traced has come."""
        return self._has_asked and self._keys.ended and self.link.quiet_s() > _QUIET_S

    def _keep_session(self) -> None:
        """Open a session and turn tracing on, also after the board was reset."""
        if self.link.is_usable:
            return
        if self.link.peer is not None:
            self._output.note("the session was lost; opening another")
        peer = self.link.open()
        if self._model:
            require_same_model(peer, self._model)
        self._client.trace(self._mask)

    def _answer(self, prompt: str) -> None:
        self._has_asked = True
        self._output.asked(prompt)
        try:
            self._output.done(self._client.generate(prompt, on_token=self._output.answer))
        except DisconnectedError:
            raise
        except RunError as error:  # a reset, a refusal: the next prompt may go better
            self._output.note(str(error))

    def _take_text(self, data: bytes) -> None:
        self._show(self.decoder.feed(data))
        baud = self.link.port.baud
        if not self._has_baud_hint and (hint := other_baud(baud, self.link.heard, self.link.n_good_frames)):
            self._has_baud_hint = True
            self._output.note(hint)

    def _take_trace(self, body: bytes) -> None:
        self._show(self.decoder.feed_body(body))

    def _show(self, events: list[Event] | list[Event | ConsoleText]) -> None:
        for event in events:
            if isinstance(event, ConsoleText):
                self._output.text(event.data)
                continue
            if isinstance(event, Info) and self._model and event.digest != self._model[: len(event.digest)]:
                self._output.note(f"the board holds model {event.digest}, the build is {self._model[:16]}")
            self._output.event(event)

    def _idle(self) -> None:
        if self.link.quiet_s() >= _STEP_S:
            self._show(self.decoder.idle())
        data = self._keys.read()
        if data and self._mask:
            self._prompts += self._editor.type(data)
            self._output.typed(self._editor.text, data if self._keys.is_terminal else b"")
        elif data:
            self.link.port.write(data.replace(b"\n", b"\r"))
        self._output.refresh(self.decoder.losses, self.link.bad_frames)


def _trace_mask(_context: click.Context, _option: click.Parameter, text: str | None) -> TraceMask:
    """What --trace says, by name."""
    mask = TraceMask(0)
    for name in text.split(",") if text else ():
        try:
            mask |= TraceMask[name.strip().upper()]
        except KeyError:
            raise click.BadParameter(f"{name!r} is none of routing, memory, timing") from None
    return mask


@click.command("monitor")
@click.option("-p", "--port", required=True, metavar="URL", help=port_help)
@baud_option
@click.option(
    "--build", "build_dir", type=PATH, metavar="BUILD", help="The build on the board: its baud rate and model."
)
@click.option(
    "--trace", "mask", metavar="NAMES", callback=_trace_mask,
    help="Turn tracing on, of routing, memory and timing, and take typed lines as prompts.",
)  # fmt: skip
@click.option(
    "--view",
    type=click.Choice(["console", "live"]),
    default="console",
    show_default=True,
    help="live: expert use and latency in the terminal; plain lines where there is none.",
)
@click.option("--log", type=PATH, metavar="FILE", help="Write what is shown to a file, too, traces decoded.")
@click.option(
    "--log-raw", type=PATH, metavar="FILE", help="Write the bytes as they come; colibri-build report reads it."
)
@click.option("--for", "seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="End after this time.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def monitor(port: str, baud: int | None, build_dir: Path | None, mask: TraceMask, **options: Any) -> None:
    """Show a board's console: text as it is, traces decoded. Ctrl-] or Ctrl-C ends it.

    What is typed goes to the board's human mode; with --trace, each line is a prompt whose answer is traced.

    \b
    Examples:
      colibri-build monitor --port /dev/ttyUSB0
      colibri-build monitor --port /dev/ttyUSB0 --trace routing,timing --view live --log-raw trace.bin
      echo "open the window" | colibri-build monitor --port socket://lab:4001 --trace routing --json
    """
    built = open_build(build_dir) if build_dir else None
    with ExitStack() as stack:
        raw = _file(stack, options["log_raw"])
        line = stack.enter_context(SerialPort.open(port, baud or _baud(built)))
        line.tap = raw.write if raw else None
        keys = Keys()
        stack.enter_context(keys.singly())
        output = _output(stack, line, options, keys)
        watch = Monitor(line, output, keys, mask, built.model if built else "")
        try:
            watch.run(options["seconds"])
        finally:
            output.close(watch.decoder.losses, watch.link.bad_frames)


def _baud(built: Built | None) -> int:
    return built.board.console.baud if built else DEFAULT_BAUD


def _output(stack: ExitStack, line: SerialPort, options: dict[str, Any], keys: Keys) -> Output:
    title = f"{line.name} at {line.baud} baud"
    shown: Output
    if options["as_json"]:
        shown = JsonOutput(sys.stdout.buffer)
    elif options["view"] == "live" and sys.stdout.isatty():
        shown = LiveOutput(title)
    else:
        shown = PlainOutput(sys.stdout.buffer, notes=True)
    log = _file(stack, options["log"])
    return Several([shown, PlainOutput(log, notes=False)]) if log else shown


def _file(stack: ExitStack, path: Path | None) -> BinaryIO | None:
    if path is None:
        return None
    try:
        return stack.enter_context(path.open("wb", buffering=0))
    except OSError as error:
        raise ColibriError(f"cannot write {path}: {error.strerror}", hint="another --log file") from error
