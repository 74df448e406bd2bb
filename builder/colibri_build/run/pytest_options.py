"""What the plugin's options ask for, checked before the first test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from colibri_build.errors import RunError
from colibri_build.run.hardware_map import MIN_BAUD, RUNNER, BenchBoard, choose, read_hardware_map, runs_on

PROCESS_KINDS = ("auto", "native", "qemu-user")
SERIAL_OPTIONS = ("--device-serial", "--device-serial-pty", "--hardware-map")
OptionValue = Callable[[str], Any]


@dataclass(frozen=True)
class Settings:
    """The options of a session, with what the chosen board of the hardware map adds. Times are in seconds.

    `kind` is auto, native, qemu-user, qemu-system or serial; `build` the record of build.json beside the firmware, {} if
    there is none; `baud` None: the board profile's.
    """

    firmware: Path | None
    board: str | None
    kind: str
    build: Mapping[str, Any]
    serial: str | None
    serial_pty: str | None
    baud: int | None
    bench_board: BenchBoard | None
    image: Path | None
    flash_device: str | None
    flash_before: bool
    instruction_plugin: Path | None
    timeout_s: float
    multiplier: float

    @property
    def model(self) -> str:
        """Digest of the build's model; "" if unknown."""
        return str(self.build.get("model", ""))


def read_settings(option: OptionValue) -> Settings:
    """Return what the options say; `option` gives the value of one. Raises RunError for those that contradict each other."""
    firmware = _path(option("--firmware"))
    build = _build_record(firmware)
    settings = Settings(
        firmware=firmware,
        board=option("--board") or build.get("board"),
        kind=_kind(option),
        build=build,
        serial=option("--device-serial"),
        serial_pty=option("--device-serial-pty"),
        baud=option("--device-serial-baud"),
        bench_board=None,
        image=_path(option("--image")),
        flash_device=option("--flash-device"),
        flash_before=bool(option("--flash-before")),
        instruction_plugin=_path(option("--instruction-plugin")),
        timeout_s=option("--base-timeout"),
        multiplier=option("--timeout-multiplier"),
    )
    _require_same_board(option("--board"), build.get("board"), firmware)
    settings = _with_map(settings, _path(option("--hardware-map")), option("--device-id"))
    _check(settings)
    return settings


def _path(value: Any) -> Path | None:
    return None if value is None else Path(value)


def _build_record(firmware: Path | None) -> Mapping[str, Any]:
    """Read build.json beside a firmware."""
    if firmware is None:
        return {}
    try:
        record = json.loads((firmware.parent / "build.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("board"), str) else {}


def _kind(option: OptionValue) -> str:
    """Resolve auto as far as the options do: a serial line that is named is meant."""
    kind = str(option("--device-type"))
    given = [name for name in SERIAL_OPTIONS if option(name) is not None]
    if kind not in ("auto", "serial") and given:
        raise RunError(f"{given[0]} with --device-type {kind}", hint="--device-type serial")
    if len(given) > 1:
        raise RunError(f"{' and '.join(given)} name two lines", hint="one of them")
    if kind == "auto" and given:
        return "serial"
    if kind == "serial" and not given:
        raise RunError(
            "--device-type serial without a line",
            hint="--device-serial URL, --device-serial-pty COMMAND or --hardware-map FILE",
        )
    return kind


def _require_same_board(asked: str | None, built: str | None, firmware: Path | None) -> None:
    """Refuse a board that the firmware was not built for; a variant of its board is one that it was built for."""
    if asked is None or built is None or runs_on(built, asked):
        return
    raise RunError(f"{firmware} is built for {built}, --board is {asked}", hint=f"colibri-build -b {asked}")


def _with_map(settings: Settings, path: Path | None, device_id: str | None) -> Settings:
    """Add what the hardware map says of the chosen board."""
    if path is None:
        if device_id is not None:
            raise RunError("--device-id without a hardware map", hint="--hardware-map FILE")
        return settings
    found = choose(read_hardware_map(path), path, device_id, settings.board)
    if settings.board is not None and not runs_on(settings.board, found.platform):
        raise RunError(
            f"'{found.id}' is a {found.platform}, the firmware is for {settings.board}", hint="another --device-id"
        )
    return replace(
        settings,
        board=found.platform,
        serial=found.serial,
        serial_pty=found.serial_pty,
        baud=settings.baud or found.baud,
        bench_board=found,
        flash_device=settings.flash_device or found.flash_device,
    )


def _check(settings: Settings) -> None:
    if settings.instruction_plugin is not None and settings.kind != "qemu-user":
        raise RunError("--instruction-plugin counts under QEMU's user mode only", hint="--device-type qemu-user")
    if settings.multiplier <= 0 or settings.timeout_s <= 0:
        raise RunError("--base-timeout and --timeout-multiplier are more than 0", hint="--timeout-multiplier 2")
    if settings.baud is not None and settings.baud < MIN_BAUD:
        raise RunError(f"--device-serial-baud {settings.baud}", hint=f"{MIN_BAUD} or more, as 115200")
    if not settings.flash_before:
        return
    if settings.image is None:
        raise RunError("--flash-before without an image", hint="--image DIR, that colibri-build image made")
    if settings.kind != "serial":
        raise RunError(f"--flash-before with --device-type {settings.kind}", hint="--device-type serial")
    if settings.flash_device is None:
        raise RunError(
            "--flash-before without a device", hint="--flash-device DEV, or flash-device in the hardware map"
        )
    if settings.bench_board is not None and settings.bench_board.runner != RUNNER:
        raise RunError(
            f"'{settings.bench_board.id}' is flashed by {settings.bench_board.runner}", hint=f"runner: {RUNNER}"
        )
