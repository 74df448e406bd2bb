"""The project's pytest plugin: runs a firmware from the user's own test files (fixture `dut`).

It is loaded in every pytest session of whoever has this package, so nothing heavy is imported before `dut` is used.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the group "colibri firmware"."""
    group = parser.getgroup("colibri firmware")
    group.addoption("--board", default=None, metavar="BOARD", help="board profile that the firmware was built for")
    group.addoption("--firmware", default=None, metavar="PATH", help="the firmware binary to run")
