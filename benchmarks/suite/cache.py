"""Keeps what was made and measured, as long as what it was made of is the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from suite.places import ROOT, WORK, Json, write_json

BUILDER_FOLDERS = ("builder", "runtime_c", "templates", "boards", "toolchains")
SOURCES = (".py", ".c", ".h", ".j2", ".toml", ".ld", ".S", ".json")


def digest_of(*parts: Any) -> str:
    """Of values that JSON can write."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def digest_of_files(paths: Iterable[Path]) -> str:
    """Of names and content, in the order of the names."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while piece := file.read(1 << 22):
                digest.update(piece)
    return digest.hexdigest()[:32]


def builder_digest() -> str:
    """Of everything of the project that decides about a firmware's bytes."""
    files = (path for folder in BUILDER_FOLDERS for path in (ROOT / folder).rglob("*"))
    return digest_of_files(path for path in files if path.suffix in SOURCES and path.is_file())


def made(folder: Path, key: str, make: Callable[[Path], Json]) -> Json:
    """What `make` returned when it filled the folder, now or in an earlier run with the same key.

    `make` gets an empty folder, which takes the name only when it is complete.
    """
    stamp = folder / "made.json"
    if stamp.is_file():
        record = json.loads(stamp.read_text())
        if record["key"] == key:
            found: Json = record["value"]
            return found
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    value = make(temporary)
    write_json(temporary / "made.json", {"key": key, "value": value})
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    return value


def measured(name: str, key: str, measure: Callable[[], Any], *, fresh: bool) -> Any:
    """The result of a measurement, kept in WORK/measured until its key changes or `fresh` asks for a new one."""
    path = WORK / "measured" / f"{name}.json"
    if path.is_file() and not fresh:
        record = json.loads(path.read_text())
        if record["key"] == key:
            return record["value"]
    value = measure()
    write_json(path, {"key": key, "value": value})
    return value
