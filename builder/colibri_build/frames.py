"""Frames on a serial line (runtime_c/link/PROTOCOL.md, section 1): the twin of runtime_c/link/frame.c."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from cobs import cobs

MAX_BODY_BYTES = 248
MAX_PENDING_BYTES = 520  # more after a 00 is no frame
_CRC_BYTES = 4
_ESCAPE, _FLIP = 0x7D, 0x20
_ESCAPED = frozenset(b"\n\r\x11\x13\x7d")
_TEXT_CONTROLS = frozenset(b"\b\t\x1b")
_ENDS = re.compile(rb"[\0\r\n]")  # what ends a frame, good or broken


@dataclass(frozen=True)
class Frame:
    """The body of a good frame, 1 to 248 bytes."""

    body: bytes


@dataclass(frozen=True)
class Text:
    """Bytes outside of frames."""

    data: bytes


def encode(body: bytes) -> bytes:
    """Return the frame of a body as it goes over the line. Raises ValueError unless it has 1 to 248 bytes."""
    if not 1 <= len(body) <= MAX_BODY_BYTES:
        raise ValueError(f"a frame's body has 1 to {MAX_BODY_BYTES} bytes, not {len(body)}")
    stuffed = cobs.encode(body + zlib.crc32(body).to_bytes(_CRC_BYTES, "little"))
    escaped = b"".join(bytes((_ESCAPE, byte ^ _FLIP)) if byte in _ESCAPED else bytes((byte,)) for byte in stuffed)
    return b"\0" + escaped + b"\0"


class Deframer:
    """One direction of a line: bytes in, frames and text out. `n_frames` and `n_bad` count what came."""

    def __init__(self) -> None:
        self.n_frames = 0
        self.n_bad = 0
        self._pending = bytearray()  # what came since a 00
        self._is_open = False

    def feed(self, data: bytes) -> list[Frame | Text]:
        """Take bytes from the line; return what is complete with them, in order. Bad frames are counted and dropped."""
        found: list[Frame | Text] = []
        at = 0
        while at < len(data):
            if not self._is_open:
                end = data.find(0, at)
                end = len(data) if end < 0 else end
                if end > at:
                    found.append(Text(bytes(data[at:end])))
                self._is_open = end < len(data)
                at = end + 1
                continue
            ends = _ENDS.search(data, at)
            end = min(ends.start() if ends else len(data), at + MAX_PENDING_BYTES - len(self._pending))
            self._pending += data[at:end]
            if end < len(data):
                found += self._end() if data[end] == 0 else self._give_up_before(data[end])
            at = end + 1
        return list(_joined(found))

    def give_up(self) -> list[Frame | Text]:
        """Take what came since a 00 for text: the line was silent for a second, or ended."""
        pending = bytes(self._pending)
        self._pending.clear()
        self._is_open = False
        if not pending:
            return []
        if _looks_like_text(pending):
            return [Text(pending)]
        self.n_bad += 1
        return []

    def _give_up_before(self, byte: int) -> list[Frame | Text]:
        """Give up at a byte that belongs to no frame; with a bad frame the byte is dropped, too."""
        had_frame = not _looks_like_text(self._pending)
        text = self.give_up()
        return text if had_frame else [*text, Text(bytes((byte,)))]

    def _end(self) -> list[Frame | Text]:
        if not self._pending:
            return []
        body = _decode(bytes(self._pending))
        self._pending.clear()
        if body is None:
            self.n_bad += 1
            return []
        self.n_frames += 1
        return [Frame(body)]


def _looks_like_text(data: bytes | bytearray) -> bool:
    """A frame has a control byte among its first two: its kind, or the length of the run before a zero."""
    return all(byte >= 0x20 or byte in _TEXT_CONTROLS for byte in data)


def _decode(data: bytes) -> bytes | None:
    """Return the body of what stood between two 00, None if it is bad."""
    stuffed = _unescaped(data)
    if stuffed is None or len(stuffed) > MAX_BODY_BYTES + _CRC_BYTES + 1:
        return None
    try:
        packet = cobs.decode(stuffed)
    except cobs.DecodeError:
        return None
    body, crc = packet[:-_CRC_BYTES], packet[-_CRC_BYTES:]
    return body if body and zlib.crc32(body) == int.from_bytes(crc, "little") else None


def _unescaped(data: bytes) -> bytes | None:
    """Take the escapes out; None for a wrong one."""
    head, *parts = data.split(bytes((_ESCAPE,)))
    if any(not part or part[0] ^ _FLIP not in _ESCAPED for part in parts):
        return None
    if _ESCAPED.intersection(head, *(part[1:] for part in parts)):
        return None
    return head + b"".join(bytes((part[0] ^ _FLIP,)) + part[1:] for part in parts)


def _joined(items: Iterable[Frame | Text]) -> Iterable[Frame | Text]:
    """Join neighbouring pieces of text."""
    text: list[bytes] = []
    for item in items:
        if isinstance(item, Text):
            text.append(item.data)
            continue
        if text:
            yield Text(b"".join(text))
            text.clear()
        yield item
    if text:
        yield Text(b"".join(text))
