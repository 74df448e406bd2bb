"""What is finished of a model folder that is being written: a line for each thing, so that another run can go on."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

_CHECK_DIGITS = 16  # of the SHA-256 of a line's JSON, before it


class Journal:
    """Entries (JSON objects) in a file, the first of which says what the run makes.

    A line is whole or does not count: after a power cut the last one may be cut off or hold anything. It is handed to
    the system at once, so the end of the process loses none; it is not flushed to the disk, because what an entry
    claims is looked up again before it is believed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: list[dict[str, Any]] = []
        self._valid_bytes = 0
        data = path.read_bytes() if path.is_file() else b""
        for line in data.splitlines(keepends=True):
            entry = _entry_of(line)
            if entry is None:
                break
            self.entries.append(entry)
            self._valid_bytes += len(line)

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry behind the last valid one."""
        text = json.dumps(entry, sort_keys=True).encode()
        line = _check(text) + b" " + text + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.ftruncate(descriptor, self._valid_bytes)
            _write_all(descriptor, line, self._valid_bytes)
        finally:
            os.close(descriptor)
        self._valid_bytes += len(line)
        self.entries.append(entry)


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written


def _check(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:_CHECK_DIGITS].encode()


def _entry_of(line: bytes) -> dict[str, Any] | None:
    check, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or check != _check(text):
        return None
    entry = json.loads(text)
    return entry if isinstance(entry, dict) else None
