"""A report as JSON (docs/reports.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from colibri_build.report.model import FORMAT, VERSION, Report


def report_to_json(report: Report) -> dict[str, Any]:
    """Return the JSON object: the dataclasses of report/model.py field by field, with format, version and `is_whole`."""
    record = asdict(report)
    if record["build"]:
        del record["build"]["token_texts"]
    return {"format": FORMAT, "version": VERSION, "is_whole": report.is_whole, **record}
