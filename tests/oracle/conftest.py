"""These tests need torch: `make oracle` names this folder. A plain `pytest` leaves them out, without a skip."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect the oracle only when the command line names it."""
    named = [Path(str(argument).split("::")[0]).resolve() for argument in config.invocation_params.args]
    return None if any(path == HERE or HERE in path.parents for path in named) else True
