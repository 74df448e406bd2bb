"""Runs objdump (GNU or LLVM) and brings its output into one form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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


def disassemble(files: Sequence[Path], toolchain: Toolchain) -> tuple[Function, ...]:
    """Disassemble the code sections of ELF files. Raises InspectError if objdump fails."""
    if not files:
        return ()
    flags = ["-d", _LLVM_AARCH64] if _is_llvm(toolchain) and toolchain.arch == "aarch64" else ["-d"]
    if not _is_llvm(toolchain):
        flags += ["--wide"]
    command = [*toolchain.objdump, *flags, *(str(file) for file in files)]
    done = run_quietly(command, timeout=_DEADLINE_S)
    if not done.ok:
        raise InspectError(f"{command[0]} failed: {done.first_line}", hint=toolchain.install)
    return tuple(_functions(done.stdout, toolchain.arch))


def _is_llvm(toolchain: Toolchain) -> bool:
    return "llvm" in Path(toolchain.objdump[0]).name


def _functions(listing: str, arch: str) -> Iterator[Function]:
    name, code = "", list[str]()
    known: dict[str, str] = {}  # line without its address -> instruction; code repeats itself
    for line in listing.splitlines():
        if line[:1] == " ":
            rest = line[line.find(":") + 1 :]
            text = known.get(rest)
            if text is None:
                text = known[rest] = _normal(rest.strip().split("\t"), arch)
            if text:
                code.append(text)
        elif match := _FUNCTION.match(line):
            if code:
                yield Function(name, tuple(code))
            name, code = match[1], []
    if code:
        yield Function(name, tuple(code))


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
