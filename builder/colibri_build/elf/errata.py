"""Instruction sequences that a Cortex-A53 may execute wrongly. No emulator shows it: only the code tells."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from colibri_build.artifacts import Check
from colibri_build.elf.disassembly import Instruction, Listing
from colibri_build.target.board import Board

_NAME = "no sequence of a silicon erratum"
_SHOWN = 3
_PAGE = 0x1000
_MEMORY = re.compile(r"(?:ld|st|prfm)")
_REGISTERS = re.compile(r"\b[xw](\d+)\b")
_UNSIGNED_OFFSET = re.compile(r"(?:(?:ldr|str)(?:b|h|sb|sh|sw)?|prfm) .*\[(x\d+)(?:, #(?:0x[0-9a-f]+|\d+))?\]$")
_BRANCH = re.compile(r"(?:b|bl|br|blr|ret|cbz|cbnz|tbz|tbnz|b\.[a-z]{2})\b")
_ACCUMULATE = re.compile(r"(?:madd|msub|smaddl|smsubl|umaddl|umsubl) x")


def errata_check(linked: Listing, board: Board, unfixed: Sequence[str] = ()) -> tuple[Check, ...]:
    """Look for the sequences of the board's errata in the whole binary, C library included. Nothing for other CPUs.

    `unfixed`: errata that no flag of the toolchain names; of those, one whose sequence is not known here is a fault.
    """
    if not board.cpu.errata:
        return ()
    wanted = {number: _SEQUENCES[number] for number in board.cpu.errata if number in _SEQUENCES}
    code = linked.sequence()
    found = [
        f"{first.function} has `{first.text}` at 0x{first.address:x} ({number})"
        for number, sequences in wanted.items()
        for first in sequences(code)
    ]
    found += [f"no flag works around {number}, nor is it known here" for number in unfixed if number not in wanted]
    if not found:
        return (Check(_NAME, True, f"{len(code)} instructions: none of {', '.join(wanted) or 'those that are known'}"),)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (Check(_NAME, False, "; ".join(found[:_SHOWN]) + more + "; try another toolchain"),)


def _multiply_after_memory(code: Sequence[Instruction]) -> Iterator[Instruction]:
    """835769: a 64-bit multiply-accumulate right after a memory access whose result it does not need."""
    for before, after in itertools.pairwise(code):
        if not _ACCUMULATE.match(after.text) or after.address != before.address + 4 or not _MEMORY.match(before.text):
            continue
        loaded = _REGISTERS.findall(before.text.partition("[")[0]) if before.text.startswith("ld") else []
        needed = _REGISTERS.findall(after.text)[1:]
        if not set(loaded) & set(needed):
            yield before


def _adrp_at_the_end_of_a_page(code: Sequence[Instruction]) -> Iterator[Instruction]:
    """843419: ADRP in a page's last two words, a memory access, and then one that uses ADRP's register.

    One instruction that is no branch may stand before the last.
    """
    for i, first in enumerate(code):
        if first.address % _PAGE < _PAGE - 8 or not first.text.startswith("adrp "):
            continue
        second, later = code[i + 1 : i + 2], code[i + 2 : i + 4]
        if not second or not _MEMORY.match(second[0].text) or second[0].text.startswith(("ldp", "ldnp")):
            continue
        if _BRANCH.match(later[0].text if later else ""):
            continue  # as where the linker moved the third instruction to a stub
        register = first.text.split()[1].rstrip(",")
        matches = (_UNSIGNED_OFFSET.match(instruction.text) for instruction in later)
        if any(match and match[1] == register for match in matches):
            yield first


_SEQUENCES: Mapping[str, Callable[[Sequence[Instruction]], Iterator[Instruction]]] = {
    "835769": _multiply_after_memory,
    "843419": _adrp_at_the_end_of_a_page,
}
