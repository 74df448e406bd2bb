"""Where the benchmark keeps what it makes, and what every part of it needs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
WORK = ROOT / "build" / "bench"  # not committed; at most 10 GB

Json = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    `rounds`: of alternating runs, >= 3. `quick`: fewer and shorter runs, for trying the benchmark itself. `fresh`: measure
    again what was measured with the same programs.
    """

    rounds: int
    quick: bool
    fresh: bool


FULL_ROUNDS, QUICK_ROUNDS = 9, 3


def write_file(path: Path, text: str) -> None:
    """Replace a file in one step: an interrupted run leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def write_json(path: Path, value: Any) -> None:
    """Sorted and indented, so that two results can be compared line by line."""
    write_file(path, json.dumps(value, indent=1, sort_keys=True) + "\n")
