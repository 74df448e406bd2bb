"""Runs objdump (GNU or LLVM) and brings its output into one form."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from colibri_build.errors import InspectError
from colibri_build.target.commands import run_quietly
from colibri_build.target.toolchain import Toolchain

_DEADLINE_S = 120.0
# LLVM names only the instructions of the features it is told of, and older ones do not know `+all`.
_LLVM_AARCH64 = (
    "--mattr=+v8.7a,+crc,+aes,+sha2,+sha3,+sm4,+dotprod,+fullfp16,+fp16fml,+lse,+rcpc,+rdm,+complxnum,+bf16,+jsconv,"
    "+fptoint,+flagm,+altnzcv,+pauth,+mte,+sb,+ls64,+wfxt,+i8mm,+sve,+sve2"
)
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_EVEX = re.compile(r"^(?:6[457] )?62 ")  # in 64-bit mode the byte 0x62 begins no other instruction


@dataclass(frozen=True)
class Function:
    """One disassembled function. `code`: an instruction an element, as `mnemonic operands`; no padding."""

    name: str
    code: tuple[str, ...]


class Instruction(NamedTuple):
    """One instruction where it stands. There are 100 000 of them: a tuple is made in a third of a dataclass's time."""

    address: int
    text: str  # `mnemonic operands`
    function: str


@dataclass(frozen=True)
class Listing:
    """What objdump printed. A C library has 100 000 lines, most of them repeated: each distinct one is read once."""

    lines: tuple[str, ...]
    arch: str

    def names(self) -> set[str]:
        """Names of all functions."""
        return {match[1] for line in self.lines if line.endswith(">:") and (match := _FUNCTION.match(line))}

    def instructions(self) -> dict[str, set[str]]:
        """Each distinct instruction, and the forms in which it was printed (without addresses)."""
        printed: dict[str, set[str]] = {}
        for tail in {_tail(line) for line in self.lines if line[:1] == " "}:
            text = _normal(tail.strip().split("\t"), self.arch)
            if text:
                printed.setdefault(text, set()).add(tail)
        return printed

    def owners(self, printed: Set[str]) -> dict[str, dict[str, None]]:
        """Names of the functions, in order, that hold a printed form."""
        found: dict[str, dict[str, None]] = {tail: {} for tail in printed}
        name = ""
        for line in self.lines if printed else ():
            if line[:1] == " ":
                tail = _tail(line)
                if tail in printed:
                    found[tail][name] = None
            elif match := _FUNCTION.match(line):
                name = match[1]
        return found

    def sequence(self) -> tuple[Instruction, ...]:
        """Every instruction in order of address."""
        found: list[Instruction] = []
        known: dict[str, str] = {}
        name = ""
        for line in self.lines:
            if line[:1] == " ":
                head, _, tail = line.partition(":")
                text = known.get(tail)
                if text is None:
                    text = known[tail] = _normal(tail.strip().split("\t"), self.arch)
                if text:
                    found.append(Instruction(int(head, 16), text, name))
            elif match := _FUNCTION.match(line):
                name = match[1]
        return tuple(found)

    def functions(self) -> tuple[Function, ...]:
        """Every function with its whole code."""
        found: list[tuple[str, list[str]]] = []
        for line in self.lines:
            if line[:1] == " ":
                text = _normal(_tail(line).strip().split("\t"), self.arch)
                if text and found:
                    found[-1][1].append(text)
            elif match := _FUNCTION.match(line):
                found.append((match[1], []))
        return tuple(Function(name, tuple(code)) for name, code in found if code)


def _tail(line: str) -> str:
    """A line without its address."""
    return line[line.find(":") + 1 :]


def disassemble(files: Sequence[Path], toolchain: Toolchain) -> Listing:
    """Disassemble the code sections of ELF files. Raises InspectError if objdump fails."""
    if not files:
        return Listing((), toolchain.arch)
    flags = ["-d", _LLVM_AARCH64] if _is_llvm(toolchain) and toolchain.arch == "aarch64" else ["-d"]
    if not _is_llvm(toolchain):
        flags += ["--wide"]
    command = [*toolchain.objdump, *flags, *(str(file) for file in files)]
    done = run_quietly(command, timeout=_DEADLINE_S)
    if not done.ok:
        raise InspectError(f"{command[0]} failed: {done.first_line}", hint=toolchain.install)
    return Listing(tuple(done.stdout.splitlines()), toolchain.arch)


def _is_llvm(toolchain: Toolchain) -> bool:
    return "llvm" in Path(toolchain.objdump[0]).name


def _normal(columns: list[str], arch: str) -> str:
    """One line of a listing as `mnemonic operands`, without comment and branch target; "" for padding.

    The columns are bytes, mnemonic, operands, comment; GNU has mnemonic and operands of x86 in one column.
    """
    raw = columns[0]
    if len(columns) < 2 or not raw.strip("0 "):
        return ""  # a continued line of bytes, or zero bytes between functions
    text = " ".join(" ".join(columns[1:3]).split())
    for mark in ("#", "<") if arch == "x86_64" else ("//", "<"):
        text = text.partition(f" {mark}")[0]
    return text + " {evex}" if arch == "x86_64" and _EVEX.match(raw) else text
