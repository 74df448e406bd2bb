"""A user's own pytest session with the project's plugin, in a process of its own, and what it leaves behind."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PLAIN = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--rootdir", ".")


@dataclass(frozen=True)
class PluginSession:
    """Exit code and output of pytest; by test, its properties in the JUnit file and how it ended."""

    code: int
    out: str
    err: str
    properties: Mapping[str, Mapping[str, str]]
    outcomes: Mapping[str, str]

    @classmethod
    def run(
        cls, folder: Path, arguments: Sequence[str], source: str, environment: Mapping[str, str], timeout_s: float
    ) -> PluginSession:
        """Run it in `folder`; `source`, if given, is the text of a test file."""
        report = folder / "junit.xml"
        report.unlink(missing_ok=True)
        if source:
            (folder / "test_user.py").write_text(textwrap.dedent(source), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", *PLAIN, f"--junitxml={report}", "--basetemp=temp", *arguments]
        if source:
            command.append("test_user.py")
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
        properties = {
            case.attrib["name"]: {item.attrib["name"]: item.attrib["value"] for item in case.iter("property")}
            for case in cases
        }
        outcomes = {case.attrib["name"]: _outcome(case) for case in cases}
        return cls(done.returncode, done.stdout, done.stderr, properties, outcomes)

    @property
    def usage_error(self) -> str:
        """The one line that pytest says of options that are wrong, before it collects anything."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        assert self.code == 4, self.out + self.err
        assert len(lines) == 1 and lines[0].startswith("ERROR: "), self.err
        return lines[0].removeprefix("ERROR: ")


def _outcome(case: ElementTree.Element) -> str:
    return next((tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None), "passed")
