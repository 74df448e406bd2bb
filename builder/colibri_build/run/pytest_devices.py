"""Makes the device under test that the plugin's options ask for, and says what it is."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run.board_dut import BoardDut
from colibri_build.run.dut import Dut
from colibri_build.run.hardware_map import BenchBoard, board_name
from colibri_build.run.places import CommandPlace, Place, SerialPlace, SystemPlace
from colibri_build.run.process import require_elf
from colibri_build.run.pytest_options import PROCESS_KINDS, Settings
from colibri_build.run.runner import Runner, runner_for
from colibri_build.run.serial_port import DEFAULT_BAUD
from colibri_build.target.board import Board, load_board
from colibri_build.target.kernel import find_kernel

_MAKE_S = 600.0  # for the image of a firmware
_SCRIPT_S = 120.0
_END_S = 10.0
_COUNT_FILE = "instructions"


class Bench:
    """What the tests of a session run on. `folder` is for what it makes, and stays empty where nothing is made.

    Raises RunError, at the first use, for options that do not lead to a device.
    """

    def __init__(self, settings: Settings, folder: Path, was_flashed: bool = False) -> None:
        self.settings, self._folder, self._was_flashed = settings, folder, was_flashed
        self._board_dut: BoardDut | None = None

    def device(self) -> Dut | BoardDut:
        """Return the device for one test: a process of its own, or the one board."""
        if self.settings.kind in PROCESS_KINDS:
            return self._process()
        if self._board_dut is None:
            self._board_dut = BoardDut(
                self._place(), self.model, self.settings.timeout_s, self.settings.multiplier
            )  # fmt: skip
        self._board_dut.begin_test()
        return self._board_dut

    def end_test(self, device: Dut | BoardDut) -> None:
        """End what belongs to one test: a process; a board goes on."""
        if not isinstance(device, Dut):
            return
        if self.settings.instruction_plugin is not None:
            with suppress(RunError):  # the plugin speaks at an orderly end only
                device.finish(_END_S)
        device.close()

    def serve_command(self) -> tuple[str, ...]:
        """Return the command line of the firmware in --serve, as a process of this machine. Raises RunError."""
        firmware = self.firmware
        return self.runner.command(str(firmware), "--serve")

    def close(self) -> None:
        """End everything."""
        if self._board_dut is not None:
            self._board_dut.close()

    @cached_property
    def firmware(self) -> Path:
        """The firmware file. Raises RunError if none is named, or it is not there."""
        if self.settings.firmware is None:
            raise RunError("the fixture dut needs a firmware", hint="--firmware PATH")
        _ = self.board  # the first thing to name
        return require_elf(self.settings.firmware)

    @cached_property
    def board(self) -> Board:
        """The board profile. Raises RunError, TargetError."""
        return load_board(self._require_board())

    @cached_property
    def runner(self) -> Runner:
        """How a process is started. Raises RunError."""
        kind = self.settings.kind if self.settings.kind in PROCESS_KINDS else "auto"
        runner = runner_for(self.board, kind)
        plugin = self.settings.instruction_plugin
        return runner if plugin is None else _counting(runner, self.board, plugin, self._folder / _COUNT_FILE)

    @property
    def model(self) -> str:
        """Digest of the model that must be on the device; "" if nobody says."""
        return self.settings.model or str(_manifest(self.settings.image).get("model", ""))

    def properties(self, device: Dut | BoardDut, used: Mapping[str, int]) -> Iterator[tuple[str, str | int]]:
        """Yield what a report should say of a test: names and values. `used`: what the firmware counted meanwhile."""
        settings, status = self.settings, device.last_status
        yield "device_type", device.runner.kind if isinstance(device, Dut) else settings.kind
        if settings.bench_board is not None:
            yield "device_id", settings.bench_board.id
        if settings.board is not None:
            yield "board", self.board.name
            yield "cpu", self.board.cpu.name
        if settings.firmware is not None or "sha256" in _manifest(settings.image):
            yield "firmware_sha256", self._firmware_hash
        if self.model:
            yield "model_digest", self.model
        if status:
            yield "tokens", status["tokens"]
            yield "logits_hash", status["logits_hash"]
        for name in ("major_faults", "minor_faults"):
            if name in used or name in status:
                yield name, used.get(name, status.get(name, 0))
        yield from self._instructions()

    @cached_property
    def _firmware_hash(self) -> str:
        if self.settings.firmware is None:
            return str(_manifest(self.settings.image)["sha256"])
        with self.firmware.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _instructions(self) -> Iterator[tuple[str, str | int]]:
        """What QEMU's plugin has counted in the last run that ended."""
        if self.settings.instruction_plugin is None:
            return
        path = self._folder / _COUNT_FILE
        with suppress(OSError):
            found = re.search(r"instructions (\d+)", path.read_text(encoding="utf-8"))
            path.unlink()
            if found:
                yield "instructions", int(found[1])

    def _require_board(self) -> str:
        settings = self.settings
        if settings.board is not None:
            return settings.board
        name = _manifest(settings.image).get("board")
        if name is None:
            raise RunError(f"no build.json beside {settings.firmware} names its board", hint="--board BOARD")
        return str(name)

    def _process(self) -> Dut:
        firmware, counts = self.firmware, self.settings.instruction_plugin is not None
        return Dut(
            self.runner,
            firmware,
            timeout_s=self.settings.timeout_s,
            multiplier=self.settings.multiplier,
            serve_options=("--threads", "1") if counts else (),  # threads that wait for each other count differently
        )

    def _place(self) -> Place:
        settings = self.settings
        if settings.kind == "qemu-system":
            return self._system()
        baud = settings.baud or (self.board.console.baud if settings.board else DEFAULT_BAUD)
        if settings.serial_pty is not None:
            return CommandPlace(settings.serial_pty, baud)
        assert settings.serial is not None
        return SerialPlace(settings.serial, baud, is_fresh=self._was_flashed)

    def _system(self) -> SystemPlace:
        """Make what a machine boots from: the image, unless it is named, and the way to it."""
        image, initrd = self.settings.image, self._folder / "initrd"
        if image is not None and not (image / "colibri.img").is_file():
            raise RunError(f"{image} holds no image", hint="colibri-build image BUILD_DIR")
        kernel = find_kernel(self.board.arch)
        if image is None:
            image = self._folder / "image"
            build_command("image", str(self.firmware.parent), "-o", str(image))
        build_command("initramfs", "-b", self._require_board(), "-o", str(initrd))
        return SystemPlace(self.board, image / "colibri.img", kernel.image, initrd, self.settings.multiplier)


def flash(settings: Settings) -> None:
    """Flash the image before the session, and run the scripts that the map has around it.

    Raises RunError; the board is left as at the session's end then.
    """
    try:
        _flash(settings)
    except RunError:
        with suppress(RunError):
            leave(settings)
        raise


def leave(settings: Settings) -> None:
    """Run the script that the map has for the session's end. Raises RunError."""
    entry = settings.bench_board
    if entry is not None and entry.post_script:
        run_script(entry.post_script)


def _flash(settings: Settings) -> None:
    assert settings.image is not None and settings.flash_device is not None
    entry = settings.bench_board or BenchBoard("", "")
    if entry.pre_script:
        run_script(entry.pre_script)
    board = ("--board", board_name(settings.board)) if settings.board else ()
    arguments = (str(settings.image), "--device", settings.flash_device, "--yes", *board, *entry.runner_params)
    build_command("flash", *arguments, timeout_s=entry.flash_timeout)
    if entry.post_flash_script:
        run_script(entry.post_flash_script)


def build_command(name: str, *arguments: str, timeout_s: float = _MAKE_S) -> None:
    """Run a command of colibri-build; its own error line is the RunError that is raised."""
    done = _run([sys.executable, "-m", "colibri_build", name, *arguments], f"colibri-build {name}", timeout_s)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        error = next((line for line in said if line.startswith("error: ")), said[-1])
        raise RunError(f"colibri-build {name}: {error.removeprefix('error: ')}")


def run_script(command: str) -> None:
    """Run a script of the hardware map. Raises RunError if it fails."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise RunError(f"'{command}': {error}", hint="quotes in pairs") from error
    done = _run(words, f"'{command}'", _SCRIPT_S)
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-200:]
        raise RunError(f"'{command}' ended with {done.returncode}: {said}", hint="the scripts of the hardware map")


def _run(words: Sequence[str], what: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout_s,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise DeadlineError(f"{what} did not end within {timeout_s:g} s", hint="flash-timeout in the map") from error
    except (OSError, IndexError) as error:
        raise RunError(f"cannot start {what}: {error}", hint="its path") from error


def _manifest(image: Path | None) -> Mapping[str, Any]:
    """Return what an image says of its firmware; {} for none."""
    if image is None:
        return {}
    try:
        firmware = json.loads((image / "manifest.json").read_bytes())["firmware"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return firmware if isinstance(firmware, dict) else {}


def _counting(runner: Runner, board: Board, plugin: Path, out: Path) -> Runner:
    """Return the runner with the plugin that counts instructions. Raises RunError if no QEMU here loads plugins."""
    if not plugin.is_file():
        raise RunError(f"no plugin at {plugin}", hint="docs/testing-firmware.md says how to compile one")
    command = shutil.which(f"qemu-{board.arch}")  # the static one loads none
    if command is None:
        raise RunError(f"qemu-{board.arch} is not installed", hint="apt-get install qemu-user")
    return replace(runner, prefix=(command, *runner.prefix[1:], "-plugin", f"{plugin.resolve()},out={out}"))
