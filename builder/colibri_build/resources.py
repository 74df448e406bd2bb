"""Finds the data folders that are not Python (templates, C runtime, boards, toolchains), and the user's cache."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from colibri_build.errors import ColibriError

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def data_dir(name: str) -> Path:
    """Return the folder `name` (`templates`, `runtime_c`, `boards`, `toolchains`).

    A wheel carries it as `<package>/_data/<name>`, a checkout at its top level. Raises ColibriError if neither is there.
    """
    candidates = (_PACKAGE / "_data" / name, _CHECKOUT / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise ColibriError(
        f"data folder '{name}' is missing from this installation (looked in {candidates[0]} and {candidates[1]})",
        hint="install colibri-build again, or run it from a complete checkout",
    )


def package_dir() -> Path:
    """The folder of this package."""
    return _PACKAGE


@functools.cache
def code_digest() -> str:
    """SHA-256 over this package's Python files: what was kept by another state of the code is made anew."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of quantized models: $COLIBRI_CACHE, else the user's cache folder. It need not exist.

    Raises ColibriError where there is neither.
    """
    if environ.get("COLIBRI_CACHE"):
        return Path(environ["COLIBRI_CACHE"]).absolute()
    try:
        base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise ColibriError("this user has no home folder", hint="COLIBRI_CACHE=DIR in the environment") from None
    return (Path(base) / "colibri-build").absolute()
