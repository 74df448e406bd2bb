"""The build id of an ELF file: what a debugger and a crash report know a binary by."""

from __future__ import annotations

import struct
from pathlib import Path

from colibri_build.errors import ImageError
from colibri_build.layout import align

_PT_NOTE, _BUILD_ID = 4, 3
_PROGRAM_HEADER_BYTES = 56


def build_id_of(elf: Path) -> str:
    """Return the GNU build id of a 64-bit little-endian ELF file. Raises ImageError if it is none, or has no id."""
    with elf.open("rb") as stream:
        head = stream.read(64)
        if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
            raise ImageError(f"{elf.name} is no 64-bit little-endian ELF file", hint="build again")
        (at,), (count,) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<H", head, 56)
        stream.seek(at)
        headers = stream.read(count * _PROGRAM_HEADER_BYTES)
        for kind, _, offset, _, _, size, _, _ in struct.iter_unpack("<IIQQQQQQ", headers):
            if kind == _PT_NOTE:
                stream.seek(offset)
                found = _in_notes(stream.read(size))
                if found:
                    return found.hex()
    raise ImageError(f"{elf.name} has no build id", hint="build again (the link needs --build-id)")


def _in_notes(notes: bytes) -> bytes | None:
    at = 0
    while at + 12 <= len(notes):
        name_bytes, value_bytes, kind = struct.unpack_from("<III", notes, at)
        value_at = at + 12 + align(name_bytes, 4)
        if kind == _BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0":
            return notes[value_at : value_at + value_bytes]
        at = value_at + align(value_bytes, 4)
    return None
