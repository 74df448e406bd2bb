"""A build folder: who may write in it, what a finished build leaves there, and how it is found again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from colibri_build.artifacts import DEBUG_NAMES, BuildOptions, ChatForm, Generation
from colibri_build.errors import ColibriError
from colibri_build.files import sha256_of, write_whole
from colibri_build.render.folder import MANIFEST, claim
from colibri_build.target.board import Board, load_board
from colibri_build.up_to_date import STAMP_FILE

BINARY_NAME = "colibri_inference"
BUILD_FILE, GOLDEN_FILE, PLAN_FILE, REPORT_FILE = "build.json", "golden.json", "plan.json", "report.json"
WEIGHTS_FOLDER = "weights"  # the copy of the model folder that the binary embeds
_RESULTS = (BINARY_NAME, BUILD_FILE, GOLDEN_FILE, PLAN_FILE, REPORT_FILE)
RECORDS = (BUILD_FILE, GOLDEN_FILE, PLAN_FILE, REPORT_FILE)
_OBJECT_FOLDERS = ("objects", "make-objects")  # the builder's, and those of the generated Makefile


@dataclass(frozen=True)
class Built:
    """A finished build of an earlier run."""

    out: Path
    elf: Path
    board: Board
    toolchain: str  # as it was asked for
    options: BuildOptions
    golden: tuple[Generation, ...]
    model: str = ""  # digest of its model folder


def require_writable(out: Path) -> None:
    """Raise ColibriError if `out` cannot be made or written: better now than after minutes of work."""
    absolute = out.absolute()
    there = next(path for path in (absolute, *absolute.parents) if path.exists())
    if not there.is_dir():
        raise ColibriError(f"cannot build in {out}: {there} is a file", hint="another folder with -o")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ColibriError(f"cannot build in {out}: {there} cannot be written", hint="another folder with -o")


@contextlib.contextmanager
def taken(out: Path) -> Iterator[None]:
    """Make `out` and keep every other build out of it.

    Raises ColibriError if a build is running there, or if it holds files of somebody else where ours have to go.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ColibriError(f"cannot build in {out}: {error.strerror}", hint="another folder with -o") from error
    try:
        _lock(descriptor, out)
        _refuse_foreign_results(out)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, out: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ColibriError(
            f"another build is running in {out}", hint="wait for it, or choose another folder with -o"
        ) from error
    except OSError:
        return  # a file system without locks still serves one build


def _refuse_foreign_results(out: Path) -> None:
    if _is_ours(out):
        return
    for name in _RESULTS:
        if (out / name).exists():
            raise ColibriError(
                f"{out / name} is in the way: this file was not written by colibri-build",
                hint="choose an empty folder with -o",
            )


def _is_ours(out: Path) -> bool:
    return (out / MANIFEST).exists() or bool(read_golden(out))  # the first file of a build


def remove_build(out: Path) -> None:
    """Remove what an earlier build left in `out`, and nothing else: the folder may hold files of the user's."""
    if not _is_ours(out):
        return
    claim(out, ())
    for name in _OBJECT_FOLDERS:
        shutil.rmtree(out / name, ignore_errors=True)
    for name in (*_RESULTS, MANIFEST, STAMP_FILE):
        (out / name).unlink(missing_ok=True)


def json_bytes(value: Any) -> bytes:
    """A record as it is written to disk."""
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def write_golden(out: Path, key: Mapping[str, Any], answers: Sequence[Generation]) -> None:
    """Keep the reference's answers; `key` is all that they depend on."""
    record = {"key": key, "generations": [asdict(answer) for answer in answers]}
    write_whole(out / GOLDEN_FILE, json_bytes(record))


def read_golden(out: Path, key: Mapping[str, Any] | None = None) -> tuple[Generation, ...]:
    """Return the answers that an earlier build kept; nothing if they are damaged or belong to another `key`."""
    try:
        record = json.loads((out / GOLDEN_FILE).read_bytes())
        if key is not None and record["key"] != key:
            return ()
        return tuple(
            Generation(**{**item, "prompt_ids": tuple(item["prompt_ids"]), "ids": tuple(item["ids"])})
            for item in record["generations"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def open_build(out: Path) -> Built:
    """Find a firmware again. Raises ColibriError if the folder holds no finished build, or a damaged one."""
    again = "colibri-build -b BOARD -o DIR MODEL"
    try:
        record = json.loads((out / BUILD_FILE).read_bytes())
        options = _checked(BuildOptions(**record["options"]))
        board, toolchain = str(record["board"]), str(record["toolchain"]["request"])
        model = str(record["model"])
    except FileNotFoundError:
        raise ColibriError(f"{out} holds no finished build", hint=again) from None
    except OSError as error:
        raise ColibriError(f"{out} cannot be read: {error.strerror}", hint="name the folder of a build") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ColibriError(f"{out / BUILD_FILE} is damaged", hint=f"build again: {again}") from error
    golden = read_golden(out)
    if not golden:
        raise ColibriError(f"{out / GOLDEN_FILE} is missing or damaged", hint=f"build again: {again}")
    if not (out / BINARY_NAME).is_file():
        raise ColibriError(f"{out / BINARY_NAME} is missing", hint=f"make in that folder, or build again: {again}")
    return Built(out, out / BINARY_NAME, load_board(board), toolchain, options, golden, model)


def is_as_inspected(built: Built) -> bool:
    """Whether the binary is the one that report.json speaks of; not after a changed byte, or a `make` with other tools."""
    try:
        inspected = json.loads((built.out / REPORT_FILE).read_bytes())["sha256"]
        return bool(sha256_of(built.elf) == inspected)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _checked(options: BuildOptions) -> BuildOptions:
    """Return options read from a file that may have been edited. Raises ValueError for those that no build has."""
    counts = (options.context, options.max_threads, options.prefill_batch)
    if not all(type(count) is int and count > 0 for count in counts):
        raise ValueError("context, max_threads and prefill_batch are positive integers")
    if options.activation_bits not in (8, 16) or options.embed not in ("incbin", "xxd"):
        raise ValueError("activation_bits or embed")
    debug = tuple(options.debug)  # JSON has lists; a build from before it has none
    if debug != tuple(name for name in DEBUG_NAMES if name in debug):
        raise ValueError("debug")
    chat: Any = options.chat  # a JSON object, and none in a build from before it
    return replace(options, debug=debug, chat=None if chat is None else ChatForm(**chat))
