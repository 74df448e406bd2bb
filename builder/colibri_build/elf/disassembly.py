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
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
# address, raw bytes, text. GNU puts x86 bytes in pairs, AArch64 words whole; LLVM pads differently.
_LINE = re.compile(r"^ *[0-9a-f]+:\s+((?:[0-9a-f]{2})+(?: (?:[0-9a-f]{2})+)*)\s+(\S.*)$")
_COMMENT = re.compile(r"\s*(?://|\s#\s).*$")
_EVEX = re.compile(r"^(?:6[457] )?62 ")  # in 64-bit mode the byte 0x62 begins no other instruction


@dataclass(frozen=True)
class Function:
    """One disassembled function: an instruction a line, as `mnemonic operands`."""

    name: str
    code: str


def disassemble(files: Sequence[Path], toolchain: Toolchain) -> tuple[Function, ...]:
    """Disassemble the code sections of ELF files. Raises InspectError if objdump fails."""
    if not files:
        return ()
    flags = ["-d", "--mattr=+all"] if _is_llvm(toolchain) and toolchain.arch == "aarch64" else ["-d"]
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
    for line in listing.splitlines():
        if match := _LINE.match(line):
            text = _normal(match[1], match[2], arch)
            if text:
                code.append(text)
        elif match := _FUNCTION.match(line):
            if code:
                yield Function(name, "\n".join(code))
            name, code = match[1], []
    if code:
        yield Function(name, "\n".join(code))


def _normal(raw: str, text: str, arch: str) -> str:
    """`mnemonic operands` with single spaces, without comments; "" for padding."""
    if not raw.strip("0 "):
        return ""  # zero bytes between functions
    words = " ".join(_COMMENT.sub("", text).split())
    if arch == "x86_64" and _EVEX.match(raw):
        return words + " {evex}"
    return words
