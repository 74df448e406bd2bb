"""Silicon errata of the Cortex-A53: QEMU runs these sequences well, the silicon may not.

The judge is GNU ld, which knows both errata: what it patches must be found before, and nothing after.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from colibri_build.artifacts import Check
from colibri_build.elf.disassembly import disassemble
from colibri_build.elf.errata import errata_check
from colibri_build.elf.facts import read_facts
from colibri_build.target.board import load_board
from support.stub_tree import target

BOARD = load_board("cortex-a53")
# name -> (code at the start of a function, is it a case of the erratum)
MULTIPLY = {
    "independent load": ("ldr x4, [x5]\n madd x0, x1, x2, x3", True),
    "store": ("str x1, [x5]\n madd x0, x1, x2, x3", True),
    "vector load": ("ldr q1, [x5]\n smaddl x0, w1, w2, x3", True),
    "pair": ("ldp x6, x7, [x5]\n umsubl x0, w1, w2, x3", True),
    "needed by the product": ("ldr x2, [x5]\n madd x0, x1, x2, x3", False),
    "32 bits": ("ldr w4, [x5]\n madd w0, w1, w2, w3", False),
    "no sum": ("ldr x4, [x5]\n mul x0, x1, x2", False),
    "something between": ("ldr x4, [x5]\n nop\n madd x0, x1, x2, x3", False),
}
PAGE_END = {
    "third": ("adrp x0, data\n str x1, [x2]\n ldr x3, [x0, #8]\n nop", True),
    "fourth": ("adrp x0, data\n ldr x1, [x2]\n nop\n str x3, [x0, #16]", True),
    "third and fourth": ("adrp x0, data\n str x1, [x2]\n ldr x3, [x0, #8]\n ldr x4, [x0, #16]", True),
    "other register": ("adrp x0, data\n str x1, [x2]\n ldr x3, [x4, #8]\n nop", False),
    "no access": ("adrp x0, data\n add x1, x1, #1\n ldr x3, [x0, #8]\n nop", False),
    "load of a pair": ("adrp x0, data\n ldp x1, x5, [x2]\n ldr x3, [x0, #8]\n nop", False),
}


def checked(tmp: Path, code: str, offset: int, flag: str) -> tuple[Check, bytes]:
    """Link a program with `code` at `offset` of a page; what errata_check says, and the linked bytes of `code`."""
    source, obj, elf = tmp / "code.s", tmp / "code.o", tmp / f"code{flag}.elf"
    text = f".text\n.balign 4096\n.global _start\n_start:\n.rept {offset // 4}\n nop\n.endr\n {code}\n ret\n"
    source.write_text(text + ".data\n.balign 4096\ndata: .skip 64\n", encoding="utf-8")
    gcc = "aarch64-linux-gnu-gcc"
    subprocess.run([gcc, "-c", str(source), "-o", str(obj)], check=True)
    subprocess.run([gcc, "-nostdlib", "-static", flag, str(obj), "-o", str(elf)], check=True)
    _, toolchain = target("cortex-a53")
    (check,) = errata_check(disassemble((elf,), toolchain), BOARD)
    facts = read_facts(elf)
    section = facts.section(".text")
    assert section is not None
    start = section.offset + facts.symbols["_start"].address - section.address + offset
    return check, elf.read_bytes()[start : start + 16]


@pytest.mark.parametrize("name", MULTIPLY)
def test_835769_is_what_the_linker_patches(tmp_path: Path, name: str) -> None:
    code, guilty = MULTIPLY[name]
    found, before = checked(tmp_path, code, 64, "-mno-fix-cortex-a53-835769")
    fixed, after = checked(tmp_path, code, 64, "-mfix-cortex-a53-835769")
    assert (found.ok, "(835769)" in found.detail) == (not guilty, guilty), found.detail
    assert fixed.ok, fixed.detail
    assert (before != after) == guilty


@pytest.mark.parametrize("offset", [0xFF8, 0xFFC, 0x100])
@pytest.mark.parametrize("name", PAGE_END)
def test_843419_is_what_the_linker_patches(tmp_path: Path, name: str, offset: int) -> None:
    code, is_case = PAGE_END[name]
    guilty = is_case and offset >= 0xFF8
    found, before = checked(tmp_path, code, offset, "-mno-fix-cortex-a53-843419")
    fixed, after = checked(tmp_path, code, offset, "-mfix-cortex-a53-843419")
    assert (found.ok, "(843419)" in found.detail) == (not guilty, guilty), found.detail
    assert fixed.ok, fixed.detail
    assert (before != after) == guilty


def test_a_board_without_errata_has_no_such_check() -> None:
    _, toolchain = target("cortex-a53")
    assert errata_check(disassemble((), toolchain), load_board("tda4vm")) == ()


def test_an_erratum_that_nothing_works_around_is_a_fault() -> None:
    board = BOARD.model_copy(update={"cpu": BOARD.cpu.model_copy(update={"errata": ("835769", "1234567")})})
    _, toolchain = target("cortex-a53")
    listing = disassemble((), toolchain)
    (check,) = errata_check(listing, board, ("1234567",))
    assert not check.ok
    assert "no flag works around 1234567, nor is it known here" in check.detail
    (flagged,) = errata_check(listing, board)
    assert flagged.ok, "a flag of the toolchain names it"
    (sought,) = errata_check(listing, board, ("835769",))
    assert sought.ok, "its sequence is looked for"
