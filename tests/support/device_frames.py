"""Frames as PROTOCOL.md section 1 has them, written from it alone."""

from __future__ import annotations

import struct
import zlib


def stuff(data: bytes) -> bytes:
    """COBS: each zero becomes the distance to the next one."""
    out = bytearray()
    for run in data.split(b"\0"):
        while len(run) >= 254:
            out += b"\xff" + run[:254]
            run = run[254:]
        out += bytes([len(run) + 1]) + run
    return bytes(out)


def unstuff(data: bytes) -> bytes | None:
    out, at = bytearray(), 0
    while at < len(data):
        length = data[at]
        if length == 0 or at + length > len(data):
            return None
        out += data[at + 1 : at + length]
        at += length
        if length < 255 and at < len(data):
            out.append(0)
    return bytes(out)


def frame(body: bytes) -> bytes:
    """A body as it goes over the wire."""
    packed = stuff(body + struct.pack("<I", zlib.crc32(body)))
    escaped = b"".join(bytes([0x7D, b ^ 0x20]) if b in b"\n\r\x11\x13\x7d" else bytes([b]) for b in packed)
    return b"\0" + escaped + b"\0"


def unframe(packed: bytes) -> bytes | None:
    """The body of what stood between two zeros, None if it is damaged."""
    plain, at = bytearray(), 0
    while at < len(packed):
        if packed[at] == 0x7D:
            at += 1
            if at == len(packed):
                return None
            plain.append(packed[at] ^ 0x20)
        else:
            plain.append(packed[at])
        at += 1
    data = unstuff(bytes(plain))
    if data is None or len(data) < 5 or struct.pack("<I", zlib.crc32(data[:-4])) != data[-4:]:
        return None
    return data[:-4]
