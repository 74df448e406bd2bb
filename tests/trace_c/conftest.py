"""The runtime with --debug, for this machine and for A53 under QEMU."""

from __future__ import annotations

import pytest
from debug_firmware import Workshop, make_workshop


@pytest.fixture(scope="session")
def x86(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return make_workshop(tmp_path_factory.mktemp("x86"), "x86-64-v3", "gcc", "-O0", "-march=x86-64-v3")


@pytest.fixture(scope="session")
def a53(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return make_workshop(tmp_path_factory.mktemp("a53"), "cortex-a53", "aarch64-linux-gnu-gcc", "-O0")


@pytest.fixture(params=["x86", "a53"])
def shop(request: pytest.FixtureRequest) -> Workshop:
    value: Workshop = request.getfixturevalue(request.param)
    return value
