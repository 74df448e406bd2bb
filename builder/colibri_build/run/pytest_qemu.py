"""The project's pytest plugin: tests a firmware from the user's own test files (fixtures `dut` and `firmware`).

It is loaded in every pytest session of whoever has this package, so nothing heavy is imported before one of its options or
fixtures is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from colibri_build.run.board_dut import BoardDut
    from colibri_build.run.dut import Dut
    from colibri_build.run.firmware import Firmware
    from colibri_build.run.paced_board import PacedBoard
    from colibri_build.run.pytest_devices import Bench
    from colibri_build.run.pytest_options import Settings

_TYPES = ("auto", "native", "qemu-user", "qemu-system", "serial")
_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--firmware", {"metavar": "PATH", "help": "the firmware under test, in the folder of its build"}),
    ("--board", {"metavar": "BOARD", "help": "its board profile (default: what build.json beside it says)"}),
    ("--device-type", {"default": "auto", "choices": _TYPES, "help": "what it runs on"}),
    ("--device-serial", {"metavar": "URL", "help": "serial port of a board: /dev/ttyUSB0, socket://HOST:PORT ..."}),
    ("--device-serial-baud", {"type": int, "metavar": "N", "help": "its baud rate (default: the board's)"}),
    ("--device-serial-pty", {"metavar": "COMMAND", "help": "command that stands for a board; its console is a PTY"}),
    ("--hardware-map", {"metavar": "FILE", "help": "the boards of the bench, YAML as Twister's"}),
    ("--device-id", {"metavar": "ID", "help": "which of them (default: the only one for the board)"}),
    (
        "--image",
        {"metavar": "DIR", "help": "image to boot, or to flash (default: one is made of the firmware's build)"},
    ),
    ("--flash-before", {"action": "store_true", "default": False, "help": "flash the image before the first test"}),
    ("--flash-device", {"metavar": "DEV", "help": "the disk to flash (default: what the hardware map says)"}),
    ("--instruction-plugin", {"metavar": "LIB", "help": "QEMU plugin that counts instructions (qemu-user)"}),
    ("--base-timeout", {"default": 60.0, "type": float, "metavar": "S", "help": "seconds for a wait that names none"}),
    ("--timeout-multiplier", {"default": 1.0, "type": float, "metavar": "N", "help": "factor for every wait"}),
)
_FIXTURE_MARK = "needs_fixture"
_FLASHED = pytest.StashKey[bool]()
_USED = pytest.StashKey[dict[str, int]]()  # what the firmware counted during a test


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the group "colibri firmware"."""
    group = parser.getgroup("colibri firmware")
    for name, attributes in _OPTIONS:
        # Where another plugin owns the name, the session must still start.
        with suppress(ValueError, argparse.ArgumentError):
            group.addoption(name, dest=_dest(name), **attributes)


def _dest(option: str) -> str:
    """Name of an option's value; `--board` of another plugin is another value."""
    return "colibri_" + option.removeprefix("--").replace("-", "_")


def _option(config: pytest.Config, name: str) -> Any:
    default = dict(_OPTIONS)[name].get("default")
    return getattr(config.option, _dest(name), default)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    config.addinivalue_line(
        "markers", f"{_FIXTURE_MARK}(name): run only on a board whose hardware map has this fixture"
    )
    if any(_option(config, name) != attributes.get("default") for name, attributes in _OPTIONS):
        _settings(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Flash the board, once."""
    config = session.config
    if not _option(config, "--flash-before") or config.option.collectonly or hasattr(config, "workerinput"):
        return
    with _usage_errors():
        from colibri_build.run.pytest_devices import flash

        flash(_settings(config))
    config.stash[_FLASHED] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Run the script that the hardware map has for the end."""
    config = session.config
    if _option(config, "--hardware-map") is None or config.option.collectonly or hasattr(config, "workerinput"):
        return
    try:
        with _usage_errors():
            from colibri_build.run.pytest_devices import leave

            leave(_settings(config))
    except pytest.UsageError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Turn what the user can mend into one line."""
    from colibri_build.errors import ColibriError

    try:
        yield
    except ModuleNotFoundError as error:
        raise pytest.UsageError(
            f"the fixture dut needs {error.name}; try: pip install 'colibri-build[pytest]'"
        ) from error
    except ColibriError as error:
        raise pytest.UsageError(str(error)) from error


def _settings(config: pytest.Config) -> Settings:
    with _usage_errors():
        from colibri_build.run.pytest_options import read_settings

        return read_settings(lambda name: _option(config, name))


@pytest.fixture(scope="session")
def colibri_bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """What the session's tests run on."""
    with _usage_errors():
        from colibri_build.run.pytest_devices import Bench

        bench = Bench(
            _settings(pytestconfig), tmp_path_factory.mktemp("colibri"), pytestconfig.stash.get(_FLASHED, False)
        )
    try:
        yield bench
    finally:
        bench.close()


@pytest.fixture
def dut(request: pytest.FixtureRequest, colibri_bench: Bench) -> Iterator[Dut | BoardDut]:
    """Device under test: `dut.serve()`, `dut.expect(pattern, timeout=)`, `dut.write(text)`, `dut.start(args)` ..."""
    _require_fixtures(request.node, colibri_bench)
    with _usage_errors():
        device = colibri_bench.device()
    try:
        yield device
    finally:
        colibri_bench.end_test(device)
        used = request.node.stash.get(_USED, {})
        request.node.user_properties.extend(colibri_bench.properties(device, used))


@pytest.fixture
def firmware(request: pytest.FixtureRequest, dut: Dut | BoardDut) -> Iterator[Firmware]:
    """Answers prompts, whatever it runs on: `firmware.generate(prompt, max_tokens=)`, `.selftest()`, `.info()`, `.stats()`."""
    from colibri_build.run.firmware import Firmware

    answering = Firmware(dut)
    yield answering
    request.node.stash[_USED] = dict(answering.usage())


@pytest.fixture
def firmware_at() -> Iterator[Callable[..., Firmware]]:
    """`firmware_at(url, baud=115200, timeout=60)`: a firmware at any other serial port."""
    from colibri_build.run.board_dut import BoardDut
    from colibri_build.run.firmware import Firmware
    from colibri_build.run.places import SerialPlace

    with ExitStack() as stack:

        def connect(url: str, baud: int = 115200, timeout: float = 60.0) -> Firmware:
            board = BoardDut(SerialPlace(url, baud), timeout_s=timeout)
            stack.callback(board.close)
            return Firmware(board)

        yield connect


@pytest.fixture
def paced_board(colibri_bench: Bench) -> Iterator[Callable[..., PacedBoard]]:
    """`paced_board(baud=115200, **faults)`: the firmware on a PTY with the pace and the faults of a bad line; its `port`."""
    from colibri_build.run.paced_board import Faults, FirmwareProcess, PacedBoard

    with _usage_errors():
        command = colibri_bench.serve_command()
    with ExitStack() as stack:

        def start(baud: int = 115200, **faults: Any) -> PacedBoard:
            return stack.enter_context(PacedBoard(FirmwareProcess(command), Faults(**faults), baud))

        yield start


def _require_fixtures(node: pytest.Item, bench: Bench) -> None:
    """Skip a test whose fixtures (lamps, microphones ...) the chosen board lacks."""
    entry = bench.settings.bench_board
    there = entry.fixtures if entry else ()
    for mark in node.iter_markers(_FIXTURE_MARK):
        for name in mark.args:
            if name not in there:
                pytest.skip(f"needs a board with the fixture '{name}'")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the console of a test that failed; say what the user can mend in one line."""
    report = yield
    is_ours = "colibri_bench" in getattr(item, "fixturenames", ())
    if is_ours and call.excinfo is not None and isinstance(call.excinfo.value, pytest.UsageError):
        report.longrepr = str(call.excinfo.value)
    device = getattr(item, "funcargs", {}).get("dut")
    if report.failed and device is not None and hasattr(device, "console"):
        report.sections.append(("firmware console", device.console))
    return report
