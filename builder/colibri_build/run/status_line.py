"""The line that ends every run of a firmware: COLIBRI_STATUS {...} on standard error."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Mapping
from typing import Any

from colibri_build.errors import RunError

MARK = "COLIBRI_STATUS "
_UNCAUGHT = re.compile(r"uncaught target signal (\d+)")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


# Every status line has these keys; others may follow.
_KEYS: Mapping[str, Callable[[Any], bool]] = {
    "status": lambda v: isinstance(v, str) and v != "",
    "exit_code": _is_count,
    "prompts": _is_count,
    "failed": _is_count,
    "prompt_tokens": _is_count,
    "tokens": _is_count,
    "ids": lambda v: isinstance(v, list) and all(_is_count(item) for item in v),
    "logits_hash": lambda v: isinstance(v, str) and re.fullmatch(r"[0-9a-f]{16}", v) is not None,
    "stop": lambda v: v in ("none", "eos", "length", "context", "interrupted"),
    "threads": _is_count,
    "context": _is_count,
}


def parse_status(stderr: str) -> Mapping[str, Any]:
    """Return the status object. Raises RunError unless exactly one status line is there, whole, and the last one."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    found = [line for line in lines if line.startswith(MARK)]
    last = lines[-1][:200] if lines else ""
    if not found:
        said = f"; its last words: {last}" if last else ""
        raise RunError(
            f"the firmware ended without a status line{said}", hint="--selftest, or an inspection of the build"
        )
    if len(found) > 1:
        raise RunError(f"{len(found)} status lines where one must be", hint="start one firmware a console")
    if lines[-1] != found[0]:
        raise RunError(f"the status line is followed by: {last}", hint="start one firmware a console")
    return checked_status(found[0].removeprefix(MARK))


def checked_status(text: str) -> Mapping[str, Any]:
    """Parse and check the JSON text of a status object. Raises RunError."""
    try:
        status = json.loads(text)
    except ValueError:
        raise RunError(f"the status line is damaged: {text[:200]}", hint="check the console for lost bytes") from None
    if not isinstance(status, dict):
        raise RunError(f"the status line is no object: {text[:200]}", hint="check the console for lost bytes")
    for key, is_valid in _KEYS.items():
        if key not in status or not is_valid(status[key]):
            raise RunError(
                f"status line: '{key}' is {status.get(key)!r}"[:200], hint="build firmware and tool from one version"
            )
    return status


def check_end(exit_code: int, stderr: str, board: str) -> Mapping[str, Any]:
    """Return the status of a run that ended. Raises RunError for a crash, or a status that is missing or untrue."""
    check_crash(exit_code, stderr, board)
    status = parse_status(stderr)
    if status["exit_code"] != exit_code:
        raise RunError(f"exit code {exit_code}, but its status line says {status['exit_code']}", hint="--selftest")
    return status


def check_crash(exit_code: int, stderr: str, board: str) -> None:
    """Raise RunError if a signal ended the firmware, natively (a negative exit code) or inside QEMU."""
    match = _UNCAUGHT.search(stderr)
    number = int(match.group(1)) if match else -exit_code if exit_code < 0 else 0
    if number == 0:
        return
    name = signal_name(number)
    if number == signal.SIGILL:
        raise RunError(
            f"the firmware executed an instruction that {board} does not have ({name})",
            hint="build for this board (`colibri-build inspect` names the instruction), or --device qemu-user",
        )
    if number == signal.SIGKILL:
        raise RunError(f"the firmware was killed ({name}), perhaps for lack of memory", hint="a smaller --ctx")
    raise RunError(f"the firmware crashed ({name})", hint="--selftest, then report it with the build's build.json")


def signal_name(number: int) -> str:
    """Return "SIGSEGV" for 11, "signal 99" for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
