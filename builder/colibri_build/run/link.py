"""A session with a firmware in --serve (runtime_c/link/PROTOCOL.md, sections 2 and 3): the host's end of go-back-N.

One thread: whoever waits pumps. Every call reads the line, answers the peer and keeps the session alive meanwhile; a
caller that does something else for more than 10 s loses the session, and the next request opens another.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from colibri_build.errors import DeadlineError, RunError
from colibri_build.frames import Deframer, Frame, encode
from colibri_build.run import wire
from colibri_build.run.diagnosis import Heard, connection_lost, no_session, other_version
from colibri_build.run.serial_port import SerialPort
from colibri_build.run.wire import Kind, ResetReason, distance

SYNC_TRIES = 10
SYNC_INTERVAL_S = 0.5
BOOT_S = 60.0
SILENCE_S = 10.0  # without a good frame from the peer
_RETRANSMIT_S = 1.0
_KEEP_ALIVE_S = 2.0
_BAD_FRAME_ACK_S = 0.02  # at most one ACK for bad frames in this time
_TEXT_HOLD_S = 1.0  # bytes after a 00 that are no frame by then are text
_MIN_ROUND_TRIP_S = 0.05
_STEP_S = 0.05
_WINDOW = 8

OnBytes = Callable[[bytes], None]


@dataclass(frozen=True)
class Peer:
    """What a board says of itself when a session opens. `digest`: the first 16 hexadecimal digits of its model's."""

    boot: int
    digest: str
    window: int


@dataclass
class LinkCounts:
    """What happened on the line since it was opened."""

    resent: int = 0  # frames that we sent again
    dropped: int = 0  # good DATA frames out of order
    sessions: int = 0


class Link:
    """Messages both ways over a line that loses and flips bytes.

    `on_text` gets what the board says outside of frames, `on_trace` the bodies of TRACE frames; `on_idle` is called
    about every 50 ms while something is waited for. All run in the caller's thread and must not block for long.
    """

    def __init__(
        self,
        port: SerialPort,
        on_text: OnBytes | None = None,
        on_trace: OnBytes | None = None,
        on_idle: Callable[[], None] | None = None,
    ) -> None:
        self.port = port
        self.peer: Peer | None = None
        self.counts = LinkCounts()
        self.heard = Heard()
        self._on_text, self._on_trace, self._on_idle = on_text, on_trace, on_idle
        self._deframer = Deframer()
        self._nonce = b""
        self._refusal: RunError | None = None  # why a SYNC_ACK was no good
        self._reset: ResetReason | None = None  # the peer's last word, if it ended the session
        self._last_byte = self._last_good = self._last_sent = self._last_bad_ack = 0.0
        self._forget()

    def _forget(self) -> None:
        """Start counting anew, as both sides do with every SYNC."""
        self._is_open = False
        self._outbox: deque[bytes] = deque()  # bodies of DATA frames that are not acknowledged, from seq `_base` on
        self._base = 0
        self._n_sent = 0  # of the outbox
        self._credit = 0  # frames from `_base` on that the peer takes
        self._progress = self._resend_from = 0.0
        self._expected = 0
        self._parts = bytearray()
        self._inbox: deque[bytes] = deque()

    @property
    def is_open(self) -> bool:
        """Whether a session is open, as far as we know."""
        return self._is_open

    @property
    def is_usable(self) -> bool:
        """Whether a session is open and the board has not said that it ended it."""
        return self._is_open and self._reset is None

    @property
    def bad_frames(self) -> int:
        """Frames from the board that were damaged."""
        return self._deframer.n_bad

    def open(self) -> Peer:
        """Open a session. Raises RunError or DeadlineError, saying what was heard instead of an answer, after 5 s.

        A board that was heard to boot gets 60 s for it before, in which nothing is sent.
        """
        self._forget()
        if self.heard.is_booting():
            self.wait_ready(BOOT_S)
        self.peer, self._refusal, self._reset = None, None, None
        self._nonce = secrets.token_bytes(4)
        self.heard.start(self._deframer)
        for _ in range(SYNC_TRIES):
            self._send(wire.sync(self._nonce, _WINDOW))
            until = time.monotonic() + SYNC_INTERVAL_S
            while self.peer is None and self._refusal is None and time.monotonic() < until:
                self.pump(until - time.monotonic())
            if self._refusal is not None:
                raise self._refusal
            if self.peer is not None:
                self.counts.sessions += 1
                return self.peer
        raise no_session(self.port, self.heard, self._deframer, SYNC_TRIES * SYNC_INTERVAL_S)

    def wait_ready(self, seconds: float) -> bool:
        """Wait until a firmware says READY, without sending a byte, which would stop a boot loader. False: it did not."""
        until = time.monotonic() + seconds
        while not self.heard.said_ready() and time.monotonic() < until:
            self.pump(until - time.monotonic())
        return self.heard.said_ready()

    def close(self) -> None:
        """End the session, if one is open; the board goes back to its human mode. The port stays open."""
        if self._is_open:
            self._send(bytes((Kind.BYE,)))
        self._is_open = False

    def send(self, message: bytes) -> None:
        """Hand a message over for sending; it goes out while the caller waits for the answer."""
        if not self._is_open:
            raise RunError("no session is open", hint="Link.open() first")
        start = self._base + len(self._outbox)
        self._outbox.extend(wire.data_frames(message, start))
        self._fill_window()

    def receive(self, deadline: float) -> bytes | None:
        """Return the next message; None at `deadline` (time.monotonic). Raises RunError if the session ends before."""
        while not self._inbox:
            self._require_alive()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            self.pump(left_s)
        return self._inbox.popleft()

    def pump(self, wait_s: float) -> None:
        """Read what comes within `wait_s`, at most 50 ms, and do what is due. Raises RunError if the line is gone."""
        data = self.port.read(min(wait_s, _STEP_S))
        now = time.monotonic()
        if data:
            self._last_byte = now
            self.heard.take(data)
            n_bad = self._deframer.n_bad
            items = self._deframer.feed(data)
            if self._deframer.n_bad > n_bad:
                self._ask_again(now)
        else:
            items = self._deframer.give_up() if now - self._last_byte > _TEXT_HOLD_S else []
        for item in items:
            if isinstance(item, Frame):
                self._take_frame(item.body, now)
            else:
                self._take_text(item.data)
        self._run_timers(now)
        if self._on_idle is not None:
            self._on_idle()

    @property
    def n_good_frames(self) -> int:
        """Frames that came whole since the line was opened, or the last session was asked for."""
        return self.heard.n_good_frames(self._deframer)

    def quiet_s(self) -> float:
        """Seconds since the last byte."""
        return time.monotonic() - self._last_byte

    def silent_s(self) -> float:
        """Seconds since the last good frame."""
        return time.monotonic() - self._last_good

    def _require_alive(self) -> None:
        """Raise RunError if the session has ended, DeadlineError if the board went silent."""
        if self._reset is not None or not self._is_open:
            raise self._explain_loss()
        if self._is_unheard():
            self.pump(0)  # it may be us who slept: first look at what has come
        if self._is_unheard():
            self._is_open = False
            what = f"no answer from the board for {SILENCE_S:g} s in the middle of a request"
            raise connection_lost(what, self.heard, DeadlineError)

    def _is_unheard(self) -> bool:
        return self._is_open and bool(self._outbox) and self.silent_s() > SILENCE_S

    def _explain_loss(self) -> RunError:
        """Find out why the board knows no session any more: a reset shows as another boot number."""
        reason, before = self._reset, self.peer
        self._is_open = False
        if reason in (ResetReason.PEER_SILENT, ResetReason.TOO_LONG, ResetReason.ENDS):
            return connection_lost(reason.meaning, self.heard)
        if self.heard.is_booting():
            return connection_lost("the board was reset in the middle of the answer", self.heard)
        try:
            after = self.open()
        except RunError as error:
            return connection_lost(f"the board has lost the session, and opens no other: {error.what}", self.heard)
        finally:
            self.close()
        if before is not None and after.boot != before.boot:
            return connection_lost("the board was reset in the middle of the answer", self.heard)
        return connection_lost("the board has lost the session in the middle of the answer", self.heard)

    def _take_text(self, data: bytes) -> None:
        self.heard.take_text(data)
        if self._is_open and (self.heard.said_ready() or self.heard.is_booting()):  # a session has no such text
            self._reset = self._reset or ResetReason.NO_SESSION
        if self._on_text is not None:
            self._on_text(data)

    def _take_frame(self, body: bytes, now: float) -> None:
        self._last_good = now
        kind = body[0]
        if kind == Kind.TRACE:
            if self._on_trace is not None:
                self._on_trace(body)
        elif kind == Kind.SYNC_ACK:
            self._take_sync_ack(body)
        elif kind == Kind.SYNC:
            self.heard.echoed = self.heard.echoed or wire.nonce_of(body) == self._nonce
        elif kind == Kind.RESET and len(body) == wire.RESET_BYTES:
            if self._is_open:
                self._reset = ResetReason.of(body[1])
        elif self._is_open and kind == Kind.ACK and len(body) == wire.ACK_BYTES:
            self._take_ack(*wire.parse_ack(body), now)
        elif self._is_open and kind == Kind.DATA and len(body) >= wire.DATA_HEAD_BYTES:
            self._take_data(body)

    def _take_sync_ack(self, body: bytes) -> None:
        if self._is_open or wire.nonce_of(body) != self._nonce:
            return
        version = wire.version_of(body)
        if version != wire.VERSION:
            self._refusal = other_version(version)
            return
        answer = wire.parse_sync_ack(body)
        if answer is None:
            return
        self.peer = Peer(*answer)
        self._credit, self._is_open = self.peer.window, True
        self.heard.forget_text()

    def _take_ack(self, following: int, window: int, now: float) -> None:
        n_acked = distance(self._base, following)
        if n_acked > self._n_sent:
            return  # of another session, or a damaged peer
        self._credit = window
        if n_acked:
            for _ in range(n_acked):
                self._outbox.popleft()
            self._base = (self._base + n_acked) & wire.SEQ_MASK
            self._n_sent -= n_acked
            self._progress, self._resend_from = now, 0.0  # a frame that is lost behind this one is another loss
        elif self._n_sent and now >= self._resend_from:
            self._resend(now)
        self._fill_window()

    def _take_data(self, body: bytes) -> None:
        seq, is_last, part = wire.parse_data(body)
        if seq == self._expected:
            self._expected = (seq + 1) & wire.SEQ_MASK
            self._parts += part
            if is_last:
                self._inbox.append(bytes(self._parts))
                self._parts.clear()
        else:
            self.counts.dropped += 1
        self._acknowledge()

    def _acknowledge(self) -> None:
        self._send(wire.ack(self._expected, _WINDOW))

    def _ask_again(self, now: float) -> None:
        if self._is_open and now - self._last_bad_ack >= _BAD_FRAME_ACK_S:
            self._last_bad_ack = now
            self._acknowledge()

    def _fill_window(self) -> None:
        while self._n_sent < min(len(self._outbox), self._credit):
            if self._n_sent == 0:
                self._progress = time.monotonic()
            self._send(self._outbox[self._n_sent])
            self._n_sent += 1

    def _resend(self, now: float) -> None:
        """Go back to the oldest frame that is not acknowledged; not again for as long as a round trip may take."""
        again = list(self._outbox)[: min(self._n_sent, max(1, self._credit))]
        self.counts.resent += len(again)
        for body in again:
            self._send(body)
        self._progress = now
        on_the_line_s = wire.seconds(2 * sum(map(len, again)), self.port.baud)
        self._resend_from = now + max(_MIN_ROUND_TRIP_S, on_the_line_s)

    def _run_timers(self, now: float) -> None:
        if not self._is_open:
            return
        if self._n_sent and now - self._progress > _RETRANSMIT_S:
            self._resend(now)
        if now - self._last_sent > _KEEP_ALIVE_S:
            self._acknowledge()

    def _send(self, body: bytes) -> None:
        self._last_sent = time.monotonic()
        self.port.write(encode(body))
