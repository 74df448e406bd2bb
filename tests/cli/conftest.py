from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import Run, runner
from support.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run `colibri-build` in this process, with a cache of its own: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))
    return runner(monkeypatch, capsys)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_checkpoint(tmp_path / "tiny")
