"""The bodies of the frames of a session, to the byte (runtime_c/link/PROTOCOL.md, section 2)."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator

VERSION = 1
SEQ_MASK = 0xFFFF
MAX_MESSAGE_BYTES = 65535
DATA_HEAD_BYTES = 4  # kind, seq, flags
ACK_BYTES = 4
RESET_BYTES = 2
_PROBE = bytes.fromhex("000A0D11137D7FFF200803041A")
_PART_BYTES = 244
_LAST = 1
_SYNC_ACK = struct.Struct("<B4sBBI8s13s")
_BITS_A_BYTE = 10  # with start and stop bit


class Kind(enum.IntEnum):
    """First byte of a frame's body."""

    SYNC = 0x01
    SYNC_ACK = 0x02
    DATA = 0x03
    ACK = 0x04
    RESET = 0x05
    BYE = 0x06
    TRACE = 0x54


class ResetReason(enum.IntEnum):
    """Why a board ended a session."""

    NO_SESSION = 1
    PEER_SILENT = 2
    TOO_LONG = 3
    ENDS = 4

    @classmethod
    def of(cls, number: int) -> ResetReason:
        """The reason of a number from the line; an unknown one means that there is no session."""
        return next((reason for reason in cls if reason == number), cls.NO_SESSION)

    @property
    def meaning(self) -> str:
        """What happened, for people."""
        return {
            ResetReason.NO_SESSION: "the board knows no session",
            ResetReason.PEER_SILENT: "the board heard nothing from us for 10 s and ended the session",
            ResetReason.TOO_LONG: "the board ended the session: a message was too long",
            ResetReason.ENDS: "the firmware on the board has ended",
        }[self]


def sync(nonce: bytes, window: int) -> bytes:
    """A SYNC. `nonce`: 4 bytes; `window`: 1 to 8 DATA frames."""
    return bytes((Kind.SYNC,)) + nonce + bytes((VERSION, window)) + _PROBE


def nonce_of(body: bytes) -> bytes:
    """The nonce of a SYNC or SYNC_ACK."""
    return body[1:5]


def version_of(body: bytes) -> int:
    """The version in a SYNC_ACK of any version; 0 where it is cut off."""
    return body[5] if len(body) > 5 else 0


def parse_sync_ack(body: bytes) -> tuple[int, str, int] | None:
    """Return (boot, digest as 16 hexadecimal digits, window), None for a body that is no SYNC_ACK of our version."""
    if len(body) != _SYNC_ACK.size:
        return None
    _, _, _, window, boot, digest, probe = _SYNC_ACK.unpack(body)
    return (boot, digest.hex(), window) if probe == _PROBE and 1 <= window <= 8 else None


def ack(following: int, window: int) -> bytes:
    """An ACK: `following` is the seq that is waited for."""
    return struct.pack("<BHB", Kind.ACK, following, window)


def parse_ack(body: bytes) -> tuple[int, int]:
    """Return (the seq that the peer waits for, window) of an ACK."""
    _, following, window = struct.unpack("<BHB", body)
    return following, window


def data_frames(message: bytes, seq: int) -> Iterator[bytes]:
    """The DATA frames of a message, of 1 to 65,535 bytes, numbered from `seq` on."""
    for start in range(0, len(message), _PART_BYTES):
        flags = _LAST if start + _PART_BYTES >= len(message) else 0
        yield struct.pack("<BHB", Kind.DATA, seq & SEQ_MASK, flags) + message[start : start + _PART_BYTES]
        seq += 1


def parse_data(body: bytes) -> tuple[int, bool, bytes]:
    """Return (seq, whether it is the last frame of its message, the part) of a DATA frame."""
    _, seq, flags = struct.unpack_from("<BHB", body)
    return seq, bool(flags & _LAST), body[DATA_HEAD_BYTES:]


def distance(start: int, end: int) -> int:
    """How many sequence numbers `end` is ahead of `start`."""
    return (end - start) & SEQ_MASK


def seconds(n_bytes: int, baud: int) -> float:
    """Time that bytes need on the line."""
    return n_bytes * _BITS_A_BYTE / baud
