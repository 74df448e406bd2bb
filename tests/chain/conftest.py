"""One bench for all test processes of a session."""

from __future__ import annotations

import pytest

from support.systems import Bench, shared_bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return shared_bench(tmp_path_factory)
