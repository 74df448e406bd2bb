"""Stack use of our functions: from the compiler's .su files, else estimated from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from colibri_build.artifacts import BuildPlan, Check
from colibri_build.elf.disassembly import Function

STACKS_REGION = "thread stacks"  # of the plan
LIBRARY_RESERVE_BYTES = 16 * 1024  # for the C library's functions below ours
_SU_LINE = re.compile(r"^(.*):\d+:(?:\d+:)?([^\t]+)\t(\d+)\t(\S+)")
_PUSHED_PAIR = re.compile(r"^(?:stp|str) [^\n]*\[sp, #-(\d+)\]!", re.MULTILINE)
_SUBTRACTED = re.compile(r"^sub sp, sp, #(0x[0-9a-f]+|\d+)(, lsl #12)?", re.MULTILINE)
_X86_PUSH = re.compile(r"^push", re.MULTILINE)
_X86_SUBTRACTED = re.compile(r"^(?:sub|add)q? \$(-?(?:0x[0-9a-f]+|\d+)), ?%rsp", re.MULTILINE)


@dataclass(frozen=True)
class Frame:
    """Stack bytes of one function; `dynamic`: it grows at run time without a bound."""

    function: str
    bytes: int
    dynamic: bool


def frames_from_su(files: Iterable[Path]) -> list[Frame]:
    """Frames that the compiler reported."""
    frames = []
    for file in files:
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if match := _SU_LINE.match(line):
                frames.append(Frame(match[2], int(match[3]), match[4] == "dynamic"))
    return frames


def frames_from_code(functions: Sequence[Function], arch: str) -> list[Frame]:
    """Upper bounds from the instructions: the sum of everything that a function takes from the stack pointer."""
    count = _aarch64_bytes if arch == "aarch64" else _x86_64_bytes
    return [Frame(function.name, count("\n".join(function.code)), False) for function in functions]


def _aarch64_bytes(code: str) -> int:
    pushed = sum(int(match[1]) for match in _PUSHED_PAIR.finditer(code))
    return pushed + sum(int(match[1], 0) << (12 if match[2] else 0) for match in _SUBTRACTED.finditer(code))


def _x86_64_bytes(code: str) -> int:
    pushed = 8 * (1 + len(_X86_PUSH.findall(code)))  # 1: the return address
    steps = (
        int(match[1], 0) if match[0].startswith("sub") else -int(match[1], 0)
        for match in _X86_SUBTRACTED.finditer(code)
    )
    return pushed + sum(step for step in steps if 0 < step < 1 << 31)


def stack_check(frames: Sequence[Frame], measured: bool, plan: BuildPlan) -> Check:
    """Without recursion a function is on the stack at most once: the sum of all frames bounds every call chain."""
    name = "stack bounded"
    if not frames:
        return Check(name, False, "no stack use is known: no .su files and no objects")
    dynamic = [frame.function for frame in frames if frame.dynamic]
    if dynamic:
        return Check(name, False, f"{', '.join(dynamic[:3])}: stack grows at run time")
    deepest = max(frames, key=lambda frame: frame.bytes)
    total = sum(frame.bytes for frame in frames)
    source = "by the compiler" if measured else "an upper bound from the code"
    detail = f"deepest {deepest.function} {deepest.bytes} B, all {len(frames)} functions {total} B ({source})"
    room = _stack_of_one_thread(plan)
    if room is None:
        return Check(name, True, detail)
    limit = room - LIBRARY_RESERVE_BYTES
    return Check(
        name, total <= limit, f"{detail}; a thread has {room} B, {LIBRARY_RESERVE_BYTES} of them for the C library"
    )


def _stack_of_one_thread(plan: BuildPlan) -> int | None:
    for region in plan.regions:
        if region.name == STACKS_REGION:
            return region.ram_bytes // plan.options.max_threads
    return None
