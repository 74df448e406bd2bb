"""What the last build in a folder was made from: the reason not to do it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from colibri_build.files import sha256_of, write_whole


class Stamp:
    """Hashes of inputs and keys of outputs, kept in one JSON file.

    An output is current if its key (everything it was made from) and its own size and time of change are as recorded.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inputs: dict[str, list[Any]] = {}  # path -> [inode, size, mtime_ns, sha256]
        self._outputs: dict[str, list[Any]] = {}  # path -> [size, mtime_ns, key]
        self._used: set[str] = set()
        try:
            data = json.loads(path.read_bytes())
            self._inputs, self._outputs = dict(data["inputs"]), dict(data["outputs"])
        except (OSError, ValueError, KeyError, TypeError):
            return

    def hash_of(self, root: Path, name: str) -> str:
        """SHA-256 of an input; read again only if the file was touched since."""
        status = (root / name).stat()
        facts = [status.st_ino, status.st_size, status.st_mtime_ns]
        known = self._inputs.get(name)
        if known is None or known[:3] != facts:
            self._inputs[name] = known = [*facts, sha256_of(root / name)]
        self._used.add(name)
        return str(known[3])

    def is_current(self, root: Path, name: str, key: str) -> bool:
        """Whether an output is there, untouched, and made from what `key` stands for."""
        try:
            status = (root / name).stat()
        except OSError:
            return False
        return self._outputs.get(name) == [status.st_size, status.st_mtime_ns, key]

    def record(self, root: Path, name: str, key: str) -> None:
        """Note a finished output."""
        status = (root / name).stat()
        self._outputs[name] = [status.st_size, status.st_mtime_ns, key]

    def save(self, outputs: Iterable[str]) -> None:
        """Write the inputs used and the `outputs` of this build; forget all others."""
        wanted = set(outputs)
        data = {
            "inputs": {name: facts for name, facts in self._inputs.items() if name in self._used},
            "outputs": {name: facts for name, facts in self._outputs.items() if name in wanted},
        }
        write_whole(self._path, (json.dumps(data, indent=1, sort_keys=True) + "\n").encode())


def key_of(*parts: Sequence[str]) -> str:
    """One digest for everything that an output depends on."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
