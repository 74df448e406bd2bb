"""The boards of a bench: a YAML file in the form of Twister's hardware map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri_build.errors import RunError

RUNNER = "colibri-build"
MIN_BAUD = 50
_FLASH_TIMEOUT_S = 600.0
_FORM = "a list of boards with id, platform and serial: docs/testing-firmware.md"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


# Key -> (what its value must be, test for that). The last six are Twister's and mean nothing here.
_KEYS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "id": ("a text (in quotes where it is all digits)", _is_text),
    "platform": ("the name of a board profile", _is_text),
    "connected": ("true or false", lambda value: isinstance(value, bool)),
    "serial": ("a port", _is_text),
    "serial_pty": ("a command", _is_text),
    "baud": (f"a number from {MIN_BAUD} on", lambda value: type(value) is int and value >= MIN_BAUD),
    "fixtures": ("a list of names", _are_texts),
    "runner": ("a name", _is_text),
    "runner_params": ("a list of options of colibri-build flash", _are_texts),
    "flash-device": ("a disk, as it is seen by this machine", _is_text),
    "flash-timeout": ("a number of seconds", _is_seconds),
    "pre_script": ("a command", _is_text),
    "post_flash_script": ("a command", _is_text),
    "post_script": ("a command", _is_text),
    "product": ("anything", lambda _: True),
    "probe_id": ("anything", lambda _: True),
    "notes": ("anything", lambda _: True),
    "available": ("anything", lambda _: True),
    "counter": ("anything", lambda _: True),
    "script_param": ("anything", lambda _: True),
}


@dataclass(frozen=True)
class BenchBoard:
    """One board of the bench. Exactly one of `serial` (a port) and `serial_pty` (a command) is given if it is connected.

    The scripts are commands: before flashing, after it (to hand the card to the board and switch it on), and at the
    session's end.
    """

    id: str
    platform: str
    connected: bool = True
    serial: str | None = None
    serial_pty: str | None = None
    baud: int | None = None  # None: the board profile's
    fixtures: tuple[str, ...] = ()
    runner: str = RUNNER
    runner_params: tuple[str, ...] = ()
    flash_device: str | None = None
    flash_timeout: float = _FLASH_TIMEOUT_S
    pre_script: str | None = None
    post_flash_script: str | None = None
    post_script: str | None = None


def read_hardware_map(path: Path) -> tuple[BenchBoard, ...]:
    """Read a map. Raises RunError: no such file, no YAML, an entry that is wrong, two with one id."""
    entries = _parsed(path)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise RunError(f"{path} is no hardware map", hint=_FORM)
    boards = tuple(_board(entry, f"{path}, entry {number}") for number, entry in enumerate(entries, start=1))
    ids = [board.id for board in boards]
    doubled = next((name for name in ids if ids.count(name) > 1), None)
    if doubled is not None:
        raise RunError(f"{path} has {ids.count(doubled)} boards with id '{doubled}'", hint="an id for each board")
    return boards


def board_name(profile: str) -> str:
    """Return the name of a board profile that is named so, or by the path of its file."""
    return Path(profile).stem if profile.endswith(".toml") else profile


def runs_on(built: str, board: str) -> bool:
    """Whether firmware that is built for a board profile is made for this board: the same one, or a variant of it."""
    return board_name(board) == board_name(built) or board_name(board).startswith(board_name(built) + "/")


def choose(boards: Sequence[BenchBoard], path: Path, device_id: str | None, platform: str | None) -> BenchBoard:
    """Return the board with an id, or the only connected one for a platform. Raises RunError."""
    if device_id is not None:
        found = next((board for board in boards if board.id == device_id), None)
        if found is None:
            raise RunError(f"{path} has no board with id '{device_id}'", hint=f"one of: {_ids(boards)}")
        if not found.connected:
            raise RunError(f"'{device_id}' is not connected, says {path}", hint="connected: true, once it is")
        return found
    fitting = [board for board in boards if board.connected and (platform is None or runs_on(platform, board.platform))]
    if len(fitting) == 1:
        return fitting[0]
    what = f" for {platform}" if platform else ""
    if not fitting:
        raise RunError(f"{path} has no connected board{what}", hint=f"its boards: {_ids(boards)}")
    raise RunError(f"{path} has {len(fitting)} connected boards{what}", hint=f"--device-id, one of: {_ids(fitting)}")


def _ids(boards: Sequence[BenchBoard]) -> str:
    return ", ".join(f"{board.id} ({board.platform})" for board in boards)


def _parsed(path: Path) -> Any:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise RunError("a hardware map needs PyYAML", hint="pip install 'colibri-build[pytest]'") from error
    try:
        text = path.read_text(encoding="utf-8")
        entries = yaml.safe_load(text)
        _refuse_doubled_keys(yaml.compose(text, Loader=yaml.SafeLoader), path)
        return entries
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}", hint="--hardware-map FILE") from error
    except (yaml.YAMLError, ValueError) as error:
        raise RunError(f"{path} is no YAML: {' '.join(str(error).split())}", hint=_FORM) from error


def _refuse_doubled_keys(root: Any, path: Path) -> None:
    """Raise RunError for a key that an entry has twice: YAML's loader would take the last one. `root`: PyYAML's node."""
    for entry in root.value if root is not None and root.id == "sequence" else ():
        keys = [key.value for key, _ in entry.value] if entry.id == "mapping" else []
        doubled = next((key for key in keys if keys.count(key) > 1), None)
        if doubled is not None:
            line = entry.start_mark.line + 1
            raise RunError(f"{path}, line {line}: the entry has '{doubled}' twice", hint="an entry for each board")


def _board(entry: Mapping[Any, Any], where: str) -> BenchBoard:
    """Check one entry; a null counts as absent. Raises RunError."""
    values = {str(key): value for key, value in entry.items() if value is not None}
    for key, value in values.items():
        if key not in _KEYS:
            raise RunError(f"{where}: unknown key '{key}'", hint=f"one of: {', '.join(_KEYS)}")
        meaning, is_valid = _KEYS[key]
        if not is_valid(value):
            raise RunError(f"{where}: {key} is {value!r}"[:200], hint=f"{key} is {meaning}")
    for key in ("id", "platform"):
        if key not in values:
            raise RunError(f"{where}: no {key}", hint=_FORM)
    fields: dict[str, Any] = {}
    for key, value in values.items():
        fields[key.replace("-", "_")] = tuple(value) if isinstance(value, list) else value
    board = BenchBoard(**{name: fields[name] for name in BenchBoard.__dataclass_fields__ if name in fields})
    if board.connected and (board.serial is None) == (board.serial_pty is None):
        raise RunError(
            f"{where} ({board.id}): neither or both of serial and serial_pty", hint="one; or connected: false"
        )
    return board
