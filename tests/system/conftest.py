"""One bench for all test processes of a session."""

from __future__ import annotations

import os

import pytest

from support.systems import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "systems"
    folder.mkdir(exist_ok=True)
    return Bench(folder)
