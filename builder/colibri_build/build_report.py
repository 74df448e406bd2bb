"""What an inspection found, as data. Part of `artifacts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """One promise about the binary."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class BuildReport:
    """What the inspection of a binary found."""

    elf: str
    sha256: str
    checks: tuple[Check, ...]
    sections: Mapping[str, int]  # bytes by name
    deepest_stack: tuple[tuple[str, int], ...]  # (function, bytes), largest first

    @property
    def ok(self) -> bool:
        """Whether every promise holds."""
        return all(check.ok for check in self.checks)


def report_from_json(values: Mapping[str, Any]) -> BuildReport:
    """What the inspection's `report_to_json` made JSON values of."""
    return BuildReport(
        elf=values["elf"],
        sha256=values["sha256"],
        checks=tuple(Check(**check) for check in values["checks"]),
        sections=values["sections"],
        deepest_stack=tuple((frame["function"], frame["bytes"]) for frame in values["deepest_stack"]),
    )
