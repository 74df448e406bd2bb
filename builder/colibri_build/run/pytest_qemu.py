"""The project's pytest plugin: runs a firmware from the user's own test files (fixture `dut`).

It is loaded in every pytest session of whoever has this package, so nothing heavy is imported before `dut` is used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from colibri_build.run.dut import Dut


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the group "colibri firmware"."""
    group = parser.getgroup("colibri firmware")

    def add(name: str, **attributes: Any) -> None:
        # Where another plugin owns the name, the session must still start.
        with suppress(ValueError, argparse.ArgumentError):
            group.addoption(name, dest=_dest(name), **attributes)

    add("--firmware", default=None, metavar="PATH", help="the firmware that the fixture `dut` runs")
    add("--board", default=None, metavar="BOARD", help="its board profile (default: what build.json beside it says)")
    add("--device-type", default="auto", choices=["auto", "native", "qemu-user"], help="how to run it")
    add(
        "--base-timeout", default=60.0, type=float, metavar="S", help="seconds for a wait that names none (default: 60)"
    )
    add("--timeout-multiplier", default=1.0, type=float, metavar="N", help="factor for every wait, for slow machines")


def _dest(option: str) -> str:
    """Name of an option's value; `--board` of another plugin is another value."""
    return "colibri_" + option.removeprefix("--").replace("-", "_")


@pytest.fixture
def dut(request: pytest.FixtureRequest) -> Iterator[Dut]:
    """Device under test: `dut.start(args)`, `dut.expect(pattern, timeout=)`, `dut.write(text)`, `dut.status()`."""
    try:
        from colibri_build.run.dut import Dut
    except ModuleNotFoundError as error:
        raise pytest.UsageError(
            f"the fixture dut needs {error.name}; try: pip install 'colibri-build[pytest]'"
        ) from error
    from colibri_build.run.runner import runner_for
    from colibri_build.target.board import load_board

    firmware = Path(_required(request.config, "--firmware", "the fixture dut needs a firmware; try: --firmware PATH"))
    board = load_board(_option(request.config, "--board") or _board_of(firmware))
    device = Dut(
        runner_for(board, _option(request.config, "--device-type", "auto")),
        firmware,
        timeout_s=_option(request.config, "--base-timeout", 60.0),
        multiplier=_option(request.config, "--timeout-multiplier", 1.0),
    )
    try:
        yield device
    finally:
        device.close()


def _option(config: pytest.Config, name: str, default: Any = None) -> Any:
    return getattr(config.option, _dest(name), default)


def _required(config: pytest.Config, name: str, message: str) -> str:
    value = _option(config, name)
    if value is None:
        raise pytest.UsageError(message)
    return str(value)


def _board_of(firmware: Path) -> str:
    """Return the board that the build folder names."""
    try:
        return str(json.loads((firmware.parent / "build.json").read_bytes())["board"])
    except (OSError, ValueError, KeyError, TypeError):
        raise pytest.UsageError(f"no build.json beside {firmware} names its board; try: --board BOARD") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the console of a test that failed."""
    report = yield
    device = getattr(item, "funcargs", {}).get("dut")
    if report.failed and device is not None and hasattr(device, "console"):
        report.sections.append(("firmware console", device.console))
    return report
