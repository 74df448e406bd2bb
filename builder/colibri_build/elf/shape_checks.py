"""Checks of headers and segments: static, for this machine, nothing both writable and executable."""

from __future__ import annotations

from colibri_build.artifacts import Check
from colibri_build.elf.facts import PF_W, PF_X, ElfFacts
from colibri_build.target.board import Board

_MACHINES = {"aarch64": "EM_AARCH64", "x86_64": "EM_X86_64"}


def shape_checks(elf: ElfFacts, board: Board) -> tuple[Check, ...]:
    """Every check that needs only the tables."""
    return (_static(elf), _machine(elf, board), _stack(elf), _write_xor_execute(elf))


def _static(elf: ElfFacts) -> Check:
    """A loader, a dynamic section or position independence all need something that the board may lack."""
    faults = [segment.type for segment in elf.segments if segment.type in ("PT_INTERP", "PT_DYNAMIC")]
    if elf.type != "ET_EXEC":
        faults.append(f"type {elf.type}")
    detail = ", ".join(faults) if faults else "no interpreter, no dynamic section, fixed address"
    return Check("fully static", not faults, detail)


def _machine(elf: ElfFacts, board: Board) -> Check:
    wanted = _MACHINES[board.arch]
    ok = (elf.machine, elf.bits, elf.little_endian) == (wanted, 64, True)
    order = "little-endian" if elf.little_endian else "big-endian"
    return Check("right machine", ok, f"{elf.machine}, {elf.bits} bits, {order}; the board is {wanted}")


def _stack(elf: ElfFacts) -> Check:
    stacks = [segment for segment in elf.segments if segment.type == "PT_GNU_STACK"]
    if not stacks:
        return Check("stack not executable", False, "no PT_GNU_STACK: the kernel makes the stack executable")
    executable = any(segment.flags & PF_X for segment in stacks)
    return Check("stack not executable", not executable, "PT_GNU_STACK is " + ("RWX" if executable else "RW"))


def _write_xor_execute(elf: ElfFacts) -> Check:
    both = [segment for segment in elf.loads() if segment.flags & PF_W and segment.flags & PF_X]
    detail = ", ".join(f"segment at 0x{s.address:x} is writable and executable" for s in both)
    return Check("no writable code", not both, detail or f"{len(elf.loads())} segments")
