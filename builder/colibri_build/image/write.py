"""Writes pieces of an image to a device and compares what landed, block by block and by hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from colibri_build.errors import FlashError, ReadBackError
from colibri_build.image.gpt import ReadAt
from colibri_build.image.layout import BLOCK
from colibri_build.image.medium import CHUNK, Medium

_FLUSH_EVERY = 16 * CHUNK  # so that progress is true, and Ctrl-C does not wait for a full page cache
Done = Callable[[int], None]  # bytes since the last call


@dataclass(frozen=True)
class Piece:
    """Bytes for one place of the device. `offset` is a multiple of BLOCK unless the piece is the last of a disk."""

    offset: int
    bytes: int
    read: ReadAt  # the content, from 0
    sha256: str  # of the content, as the image's manifest or block map says


def literal(offset: int, data: bytes) -> Piece:
    """Return a piece of bytes in memory."""
    return Piece(offset, len(data), lambda at, size: data[at : at + size], hashlib.sha256(data).hexdigest())


def write_pieces(medium: Medium, pieces: Sequence[Piece], done: Done, skip: int = 0) -> None:
    """Write pieces and flush. `skip`: bytes at the start of each that are left as they are.

    Raises FlashError if a source is not what its hash says.
    """
    unflushed = 0
    for piece in pieces:
        digest = hashlib.sha256()
        for at, data in _chunks(piece):
            digest.update(data)
            if at + len(data) > skip:
                first = max(skip - at, 0)
                medium.write(piece.offset + at + first, data[first:])
            done(len(data))
            unflushed += len(data)
            if unflushed >= _FLUSH_EVERY:
                medium.flush()
                unflushed = 0
        if digest.hexdigest() != piece.sha256:
            raise FlashError("the image changed while it was read", hint="copy or make it again")
    medium.flush()


def compare_pieces(medium: Medium, pieces: Sequence[Piece], done: Done, skip: int = 0) -> None:
    """Read pieces back from the device itself. Raises ReadBackError naming the first block that differs."""
    for piece in pieces:
        digest = hashlib.sha256()
        for at, data in _chunks(piece):
            found = medium.read_back(piece.offset + at, len(data))
            start = max(skip - at, 0)
            if found[start:] != data[start:]:
                raise _different(medium, piece.offset + at, start, data, found)
            digest.update(data[:start] + found[start:])
            done(len(data))
        if digest.hexdigest() != piece.sha256:
            raise ReadBackError(
                f"{medium.device.path} holds other bytes at offset {piece.offset} than the image's hash says",
                hint="copy or make the image again",
            )


def _chunks(piece: Piece) -> Iterator[tuple[int, bytes]]:
    for at in range(0, piece.bytes, CHUNK):
        size = min(CHUNK, piece.bytes - at)
        data = piece.read(at, size)
        if len(data) != size:
            raise FlashError("the image was cut off while it was read", hint="copy or make it again")
        yield at, data


def _different(medium: Medium, offset: int, start: int, wanted: bytes, found: bytes) -> ReadBackError:
    at = next(at for at in range(start, len(wanted) + 1) if wanted[at : at + 1] != found[at : at + 1])
    block = at // BLOCK * BLOCK
    count = sum(wanted[i : i + BLOCK] != found[i : i + BLOCK] for i in range(block, len(wanted), BLOCK))
    return ReadBackError(
        f"{medium.device.path} does not hold what was written: first different block at offset {offset + block} "
        f"({count} blocks of {BLOCK} bytes differ in this MiB)",
        hint="another card or reader; a counterfeit card loses what lies beyond its real size",
    )
