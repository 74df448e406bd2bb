"""Reads a TOML profile into a strict pydantic model; a mistake names file, line, key and the closest valid key."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from colibri_build.errors import TargetError

M = TypeVar("M", bound=BaseModel)
KeyPath = tuple[str, ...]

_TABLE = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_.\-\"]+)\s*=")


class Profile(BaseModel):
    """Base of every table in a profile: no unknown keys, no type conversion, no change after loading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def read_toml(path: Path, shown: str) -> dict[str, Any]:
    """Parse a TOML file. `shown` is how messages call it. Raises TargetError with the position of a syntax error."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise TargetError(f"{shown}: no such file", hint="check the path") from None
    except OSError as error:
        raise TargetError(f"{shown}: cannot be read: {error.strerror}", hint="check its permissions") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TargetError(f"{shown}: not valid TOML: {error}", hint="mend the syntax at that place") from error


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Deep-merge: tables are merged key by key, every other value (lists too) is replaced."""
    merged = dict(base)
    for key, value in changes.items():
        inherited = merged.get(key)
        both_tables = isinstance(inherited, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(inherited, value) if both_tables else value  # type: ignore[arg-type]
    return merged


def validate(model: type[M], data: Mapping[str, Any], files: Sequence[tuple[str, Path]]) -> M:
    """Turn parsed TOML into `model`, or raise TargetError for the first mistake.

    `files`: (name for messages, path) of the files the data was merged from, the one that wins first.
    """
    try:
        # By way of JSON, because only there does strict mode take an array for a tuple.
        return model.model_validate_json(json.dumps(data, default=str))
    except ValidationError as error:
        details = error.errors(include_url=False)
        typos = [detail for detail in details if detail["type"] == "extra_forbidden"]
        raise _explain(model, (typos or details)[0], len(details) - 1, files) from None


def closest(word: str, valid: Iterable[str]) -> str | None:
    """The valid word that a typing mistake probably meant."""
    matches = difflib.get_close_matches(word, sorted(valid), n=1, cutoff=0.5)
    return matches[0] if matches else None


def _explain(
    model: type[BaseModel], detail: ErrorDetails, others: int, files: Sequence[tuple[str, Path]]
) -> TargetError:
    """One line about one of pydantic's errors; `others` counts the rest."""
    path = tuple(str(part) for part in detail["loc"] if isinstance(part, str))
    dotted = ".".join(path)
    place = _place(path, files)
    more = f" (and {others} more in this profile)" if others else ""
    if detail["type"] == "extra_forbidden":
        valid = valid_keys(model, path[:-1])
        guess = closest(path[-1], valid)
        hint = f"'{guess}'" if guess else "one of " + ", ".join(valid)
        return TargetError(f"{place}: unknown key '{dotted}'{more}", hint=hint)
    if detail["type"] == "missing":
        return TargetError(f"{place}: key '{dotted}' is missing{more}", hint="add it (docs/adding-a-board.md)")
    message = detail["msg"].removeprefix("Value error, ")
    if not path:  # a rule over several keys
        return TargetError(f"{place}: {message}{more}")
    wanted = message.removeprefix("Input should be ")
    return TargetError(f"{place}: '{dotted}' is {detail['input']!r}{more}", hint=wanted)


def valid_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys that the table at `path` may have."""
    current: type[BaseModel] | None = model
    for key in path:
        field = current.model_fields.get(key) if current else None
        current = _table_model(field.annotation) if field else None
    return sorted(current.model_fields) if current else []


def _table_model(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *typing.get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _place(path: KeyPath, files: Sequence[tuple[str, Path]]) -> str:
    """`file:line` of the key, or of the nearest table around it, in the first file that has it."""
    for length in range(len(path), 0, -1):
        for shown, file in files:
            line = _line_of(path[:length], file.read_text(encoding="utf-8"))
            if line:
                return f"{shown}:{line}"
    return files[0][0]


def _line_of(path: KeyPath, text: str) -> int | None:
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            table = _split(header[1])
            here = table
        elif key := _KEY.match(line):
            here = (*table, *_split(key[1]))
        else:
            continue
        if here[: len(path)] == path:
            return number
    return None


def _split(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
