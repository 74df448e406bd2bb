"""Inspects a finished binary: every promise is looked up in the bytes, whatever the flags were."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colibri_build.artifacts import BuildPlan, BuildReport, Check, Firmware, ModelFolder
from colibri_build.elf.code_checks import code_checks, objects_missing
from colibri_build.elf.disassembly import Listing, disassemble
from colibri_build.elf.errata import errata_check
from colibri_build.elf.facts import ALLOC, ElfFacts, read_facts
from colibri_build.elf.plan_checks import plan_checks
from colibri_build.elf.shape_checks import shape_checks
from colibri_build.elf.stack import Frame, frames_from_code, frames_from_su, stack_check
from colibri_build.elf.weight_checks import SECTION, weight_checks
from colibri_build.errors import InspectError
from colibri_build.files import sha256_of
from colibri_build.target.board import Board
from colibri_build.target.toolchain import Toolchain

OBJECTS_FOLDER = "objects"  # beside the binary, written by the compile stage
_DEEPEST = 10  # functions in the report
_TELLING_PATH = 10  # shorter ones, as /usr, stand in any C library


def inspect_firmware(
    firmware: Firmware, folder: ModelFolder, board: Board, toolchain: Toolchain, plan: BuildPlan
) -> BuildReport:
    """Check a binary and the objects it was linked from against model folder, board and plan.

    A broken promise is a check that is not ok. Raises InspectError only if the binary or its code cannot be read.
    """
    elf = read_facts(firmware.elf)
    objects_folder = firmware.elf.parent / OBJECTS_FOLDER
    objects = tuple(sorted(objects_folder.rglob("*.o")))
    own = disassemble(objects, toolchain)
    linked = disassemble((firmware.elf,), toolchain)
    frames, measured = _frames(objects_folder, own)
    checks = (
        *shape_checks(elf, board),
        *weight_checks(elf, folder),
        *(code_checks(own, linked, board, len(objects)) if objects else (objects_missing(objects_folder),)),
        *errata_check(linked, board, toolchain.unfixed_errata),
        stack_check(frames, measured, plan),
        *plan_checks(elf, plan),
        _no_paths(elf, firmware.elf.resolve().parent),
    )
    return BuildReport(
        elf=firmware.elf.name,
        sha256=_sha256(firmware.elf),
        checks=checks,
        sections={section.name: section.bytes for section in elf.sections if section.flags & ALLOC},
        deepest_stack=_deepest(frames),
    )


def report_to_json(report: BuildReport) -> dict[str, Any]:
    """The report as JSON values; sizes in bytes."""
    return {
        "elf": report.elf,
        "sha256": report.sha256,
        "ok": report.ok,
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in report.checks],
        "sections": dict(report.sections),
        "deepest_stack": [{"function": name, "bytes": size} for name, size in report.deepest_stack],
    }


def _frames(objects_folder: Path, own: Listing) -> tuple[list[Frame], bool]:
    """Stack frames, and whether the compiler measured them."""
    measured = frames_from_su(sorted(objects_folder.rglob("*.su")))
    return (measured, True) if measured else (frames_from_code(own.functions(), own.arch), False)


def _deepest(frames: Sequence[Frame]) -> tuple[tuple[str, int], ...]:
    ranked = sorted(frames, key=lambda frame: (-frame.bytes, frame.function))
    return tuple((frame.function, frame.bytes) for frame in ranked[:_DEEPEST])


def _no_paths(elf: ElfFacts, build_folder: Path) -> Check:
    """A path of the build machine would make two builds differ. The weights are data and may hold any bytes."""
    wanted = {name: str(path).encode() for name, path in (("build folder", build_folder), ("Python", Path(sys.prefix)))}
    found = set()
    weights = elf.section(SECTION)
    with elf.path.open("rb") as stream:
        before = stream.read(weights.offset if weights else -1)
        if weights:
            stream.seek(weights.offset + weights.bytes)
        after = stream.read()
    for name, path in wanted.items():
        if len(path) >= _TELLING_PATH and (path in before or path in after):
            found.add(f"{name} {path.decode(errors='replace')}")
    return Check(
        "no path of this machine", not found, "; ".join(sorted(found)) or "neither the build folder nor the toolchain's"
    )


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise InspectError(f"{path.name} cannot be read: {error.strerror}", hint="build again") from error
