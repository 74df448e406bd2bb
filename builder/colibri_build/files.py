"""Files: written whole or not at all, hashed, read as text or strict JSON."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from colibri_build.errors import ColibriError


def _write_error(path: Path, error: OSError) -> ColibriError:
    if error.errno == errno.ENOSPC:
        free = shutil.disk_usage(path.parent).free
        return ColibriError(
            f"the disk is full: cannot write {path.name} in {path.parent} ({free} bytes free)",
            hint="free some space, or choose another folder with -o",
        )
    return ColibriError(f"cannot write {path}: {error.strerror}", hint="check the folder's permissions")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is flushed to disk and renamed to `path`, else removed.

    Raises ColibriError if the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise _write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_whole(path: Path, data: bytes) -> bool:
    """Write `data` to `path` unless it is there already; return whether anything was written."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
    return True


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits, without holding it in memory. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unique_keys(pairs: list[tuple[str, Any]], label: str = 'key "{}"') -> dict[str, Any]:
    """Like dict(), for json.loads' object_pairs_hook: a key that occurs twice is a ValueError, not the last one's value.

    `label` says in the message what the keys are.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{label.format(key)} occurs twice")
        found[key] = value
    return found


def read_text(path: Path, what: str) -> str:
    """Return a text file that the user named. Raises ColibriError if it is missing or not UTF-8; `what` says whose."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ColibriError(f"cannot read the {what} {path}: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise ColibriError(
            f"the {what} {path} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}",
            hint="convert it with iconv, or name another file",
        ) from error
