"""What a console that does not answer has said, and what that means: silence, echo, another baud rate, no firmware."""

from __future__ import annotations

import re

from colibri_build.errors import DeadlineError, RunError
from colibri_build.frames import Deframer
from colibri_build.run import port_faults, wire
from colibri_build.run.serial_port import SerialPort

_READY = b"READY colibri protocol="
_ECHOED_SYNC = re.compile(rb"\^@\^[B-H]\^A")  # 00, the length of the run up to the first zero byte, kind 01
_TAIL_BYTES = 4096
_SHOWN_CHARACTERS = 80
_SAMPLE_BYTES = 4096
_GARBAGE_SHARE = 0.25  # of bytes that no text has; a wrong rate gives about one half
_FEWEST_BYTES = 16  # to judge by
_PLAIN_CONTROLS = frozenset(b"\a\b\t\n\v\f\r\x1b")
_COMMON_BAUDS = (115200, 921600, 1500000, 3000000, 9600)
_BOOT_WORDS = (b"U-Boot ", b"Booting Linux", b"Linux version ")


class Heard:
    """What has come over a line since a session was asked for."""

    def __init__(self) -> None:
        self.echoed = False  # our own SYNC came back
        self._text = b""
        self._sample = b""
        self._n_bytes = self._n_good_before = 0

    def start(self, deframer: Deframer) -> None:
        """Forget what was heard before."""
        self.echoed = False
        self._sample, self._n_bytes, self._n_good_before = b"", 0, deframer.n_frames

    def take(self, data: bytes) -> None:
        """Note bytes as they come from the line."""
        self._n_bytes += len(data)
        self._sample = (self._sample + data)[-_SAMPLE_BYTES:]

    def take_text(self, data: bytes) -> None:
        """Note bytes outside of frames."""
        self._text = (self._text + data)[-_TAIL_BYTES:]

    def forget_text(self) -> None:
        """Begin the text anew: a session is open."""
        self._text = b""

    def said_ready(self) -> bool:
        """Whether a firmware has started, or gone back to its human mode, since the text began."""
        return _READY in self._text

    def is_typed_back(self) -> bool:
        """Whether a terminal has echoed a frame of ours, its control bytes as it shows them."""
        return _ECHOED_SYNC.search(self._text) is not None

    def is_booting(self) -> bool:
        """Whether a boot loader or kernel has started since the text began, and no firmware after it."""
        started = max(self._text.rfind(word) for word in _BOOT_WORDS)
        return started > self._text.rfind(_READY)

    @property
    def n_bytes(self) -> int:
        """Bytes since the session was asked for."""
        return self._n_bytes

    def n_good_frames(self, deframer: Deframer) -> int:
        """Good frames since the session was asked for."""
        return deframer.n_frames - self._n_good_before

    @property
    def garbage_share(self) -> float:
        """Share of the last bytes that no console prints, 0 to 1."""
        return sum(map(_is_garbage, self._sample)) / max(1, len(self._sample))

    @property
    def last_words(self) -> str:
        """The last line of the text, printable, cut to 80 characters; "" without text."""
        lines = [line.strip() for line in self._text.decode("utf-8", "replace").splitlines() if line.strip()]
        line = "".join(c if c.isprintable() else "?" for c in lines[-1]) if lines else ""
        return line[-_SHOWN_CHARACTERS:]


def _is_garbage(byte: int) -> bool:
    return byte > 0x7E or (byte < 0x20 and byte not in _PLAIN_CONTROLS)


def other_baud(baud: int, heard: Heard, n_good_frames: int) -> str | None:
    """Return a remark if what came is nothing that a console says, None if it may be text or frames."""
    if n_good_frames or heard.n_bytes < _FEWEST_BYTES or heard.garbage_share <= _GARBAGE_SHARE:
        return None
    share = f"{heard.garbage_share:.0%} of {heard.n_bytes} bytes are no text"
    return f"what comes looks like another baud rate than {baud} ({share})"


def no_session(port: SerialPort, heard: Heard, deframer: Deframer, seconds: float) -> RunError:
    """Return why no SYNC was answered within `seconds`."""
    n_frames = heard.n_good_frames(deframer)
    if heard.echoed:
        return RunError(
            f"{port.name} sends back what we send: no board is behind it",
            hint="take a loop-back plug off; connect our TX to the board's RX and our RX to its TX",
        )
    if heard.n_bytes == 0:
        return _silent(port, seconds)
    if garbage := other_baud(port.baud, heard, n_frames):
        others = ", ".join(str(baud) for baud in _COMMON_BAUDS if baud != port.baud)
        return RunError(f"{port.name}: {garbage}", hint=f"--baud {others}")
    if n_frames:
        return RunError(
            f"frames come from {port.name}, but no answer to SYNC in {seconds:g} s",
            hint="connect our TX to the board's RX",
        )
    if heard.is_typed_back():
        return RunError(
            f"a terminal on {port.name} echoes what we send, but no firmware reads it",
            hint="start the firmware with --serve on this console, instead of a shell or getty",
        )
    said = f", its last words: {heard.last_words!r}" if heard.last_words else ""
    if heard.said_ready():
        return RunError(
            f"the firmware is ready, but does not hear us on {port.name}", hint="connect our TX to the board's RX"
        )
    return RunError(
        f"the board talks on {port.name}, but not in frames{said}",
        hint="start the firmware with --serve on this console",
    )


def _silent(port: SerialPort, seconds: float) -> RunError:
    others = port_faults.holders(port.name) if port.name.startswith("/") else []
    if others:
        hint = f"end {', '.join(others)}, which has the port open, too, and may take the board's bytes"
    else:
        hint = "check power and wiring (TX to RX, ground), the console= of its kernel, and --baud"
    what = f"the board is silent: no byte from {port.name} in {seconds:g} s at {port.baud} baud"
    return DeadlineError(what, hint=hint)


def other_version(version: int) -> RunError:
    """Return what to tell about a firmware of another protocol version."""
    return RunError(
        f"the board speaks version {version} of the serial protocol, this program version {wire.VERSION}",
        hint="build firmware and tool from one version",
    )


def connection_lost(what: str, heard: Heard, kind: type[RunError] = RunError) -> RunError:
    """Return an error for a session that ended by itself, with the board's last words outside of frames."""
    said = f"; its last words: {heard.last_words!r}" if heard.last_words else ""
    hint = "check power supply and watchdog, then run it again"
    if not heard.is_booting() and kind is DeadlineError:
        hint = "check wiring and power; a token that takes longer than 10 s needs a smaller model"
    return kind(f"{what}{said}", hint=hint)
