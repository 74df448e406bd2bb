from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from colibri_build.build_folder import BINARY_NAME, BUILD_FILE, json_bytes, write_golden
from colibri_build.run import link as link_module
from colibri_build.run.client import Client
from colibri_build.run.link import Link
from colibri_build.run.serial_port import SerialPort
from support.command_line import Run, runner
from support.device_model import DIGEST, DeviceModel
from support.fake_board import FakeBoard, Faults
from support.fake_firmware import build_fake, fake_answer

FAST_BAUD = 1_000_000  # paced, but a test need not wait for 115200
GOLDEN = (fake_answer(b"abc"), fake_answer(b"golden", 5))
Serve = Callable[..., FakeBoard]
Connect = Callable[..., Client]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start fake boards: serve(model, baud=, **faults). They end with the test."""
    with ExitStack() as stack:

        def start(model: DeviceModel | None = None, baud: int = FAST_BAUD, **faults: object) -> FakeBoard:
            return stack.enter_context(FakeBoard(model, Faults(**faults), baud))  # type: ignore[arg-type]

        yield start


@pytest.fixture
def connect(serve: Serve) -> Iterator[Connect]:
    """Open a session with a fake board: connect(model, **faults); the board is `client.board`."""
    with ExitStack() as stack:

        def start(model: DeviceModel | None = None, **faults: object) -> Client:
            board = serve(model, **faults)
            line = stack.enter_context(SerialPort.open(board.port, FAST_BAUD))
            client = stack.enter_context(Client(Link(line)))
            client.board = board  # type: ignore[attr-defined]
            return client

        yield start


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait five seconds for boards that never answer."""
    monkeypatch.setattr(link_module, "SYNC_INTERVAL_S", 0.03)


@pytest.fixture(scope="session")
def fake_native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake(tmp_path_factory.mktemp("native") / BINARY_NAME, "native")


@pytest.fixture(scope="session")
def fake_a53(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake(tmp_path_factory.mktemp("a53") / BINARY_NAME, "aarch64")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, fake_a53: Path) -> Path:
    """The folder of a finished A53 build around the fake model, whose answers the fake boards give."""
    out = tmp_path_factory.mktemp("built")
    (out / BINARY_NAME).symlink_to(fake_a53)
    write_golden(out, {}, GOLDEN)
    options = {"context": 64, "max_threads": 2}
    toolchain = {"name": "debian-gcc", "request": "auto", "version": "12"}
    record = {"board": "cortex-a53", "builder": "0", "model": DIGEST.hex() + "0" * 48}
    (out / BUILD_FILE).write_bytes(json_bytes({**record, "options": options, "toolchain": toolchain}))
    return out


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `colibri-build` in this process: (exit code, stdout, stderr)."""
    return runner(monkeypatch, capsys)
