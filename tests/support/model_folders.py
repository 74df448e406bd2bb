"""Looks into folders and damages model folders."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def rehash(folder: Path) -> None:
    """Make config.json agree with the sizes and hashes of the files as they are now."""
    path = folder / "config.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    for name in value["files"]:
        data = (folder / name).read_bytes()
        value["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_text(json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def names_in(folder: Path) -> list[str]:
    """Names of all entries, hidden ones included, sorted."""
    return sorted(entry.name for entry in folder.iterdir())
