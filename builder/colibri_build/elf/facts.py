"""What an ELF file says about itself: header, segments, sections, symbols."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from colibri_build.errors import InspectError

WRITE, ALLOC, EXECUTE = 0x1, 0x2, 0x4  # section flags
PF_X, PF_W = 0x1, 0x2  # segment flags
_UNDEFINED, _LOCAL, _FILE = 0, 0, 4  # SHN_UNDEF, STB_LOCAL, STT_FILE
_TYPES = {0: "NOTYPE", 1: "OBJECT", 2: "FUNC", 6: "TLS", 10: "IFUNC"}


@dataclass(frozen=True)
class Segment:
    """One program header."""

    type: str  # PT_LOAD, PT_INTERP ...
    flags: int
    address: int
    offset: int
    file_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class Section:
    """One section header."""

    name: str
    type: str  # SHT_PROGBITS, SHT_NOBITS ...
    flags: int
    address: int
    offset: int
    bytes: int
    alignment: int


@dataclass(frozen=True)
class Symbol:
    """One defined symbol."""

    name: str
    type: str  # OBJECT, FUNC ...
    address: int
    bytes: int


@dataclass(frozen=True)
class ElfFacts:
    """Everything that the checks look at. `symbols` holds global names; of local ones the last of a name."""

    path: Path
    file_bytes: int
    machine: str  # EM_AARCH64, EM_X86_64 ...
    bits: int
    little_endian: bool
    type: str  # ET_EXEC, ET_DYN ...
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    symbols: Mapping[str, Symbol]

    def section(self, name: str) -> Section | None:
        """The section of that name, if there is one."""
        return next((section for section in self.sections if section.name == name), None)

    def loads(self) -> tuple[Segment, ...]:
        """The segments that are mapped."""
        return tuple(segment for segment in self.segments if segment.type == "PT_LOAD")


def read_facts(path: Path) -> ElfFacts:
    """Read an ELF file's tables; the contents of sections stay on disk. Raises InspectError for anything else."""
    try:
        with path.open("rb") as stream:
            return _read(path, ELFFile(stream))
    except (OSError, ELFError, ValueError, KeyError) as error:
        raise InspectError(f"{path.name} cannot be read as an ELF file: {error}", hint="build again") from error


def _read(path: Path, elf: ELFFile) -> ElfFacts:
    segments = tuple(
        Segment(str(p["p_type"]), p["p_flags"], p["p_vaddr"], p["p_offset"], p["p_filesz"], p["p_memsz"])
        for p in elf.iter_segments()
    )
    sections = tuple(
        Section(s.name, str(s["sh_type"]), s["sh_flags"], s["sh_addr"], s["sh_offset"], s["sh_size"], s["sh_addralign"])
        for s in elf.iter_sections()
    )
    return ElfFacts(
        path=path,
        file_bytes=path.stat().st_size,
        machine=elf["e_machine"],
        bits=elf.elfclass,
        little_endian=elf.little_endian,
        type=elf["e_type"],
        segments=segments,
        sections=sections,
        symbols=_symbols(elf),
    )


def _symbols(elf: ELFFile) -> dict[str, Symbol]:
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection) or elf.elfclass != 64:
        return {}
    names = table.stringtable.data()
    symbols: dict[str, Symbol] = {}
    is_global: set[str] = set()
    layout = ("<" if elf.little_endian else ">") + "IBBHQQ"  # Elf64_Sym
    for name_at, info, _, section, address, size in struct.iter_unpack(layout, table.data()):
        kind = info & 0xF
        if not name_at or section == _UNDEFINED or kind == _FILE:
            continue
        name = names[name_at : names.index(b"\0", name_at)].decode(errors="replace")
        if info >> 4 != _LOCAL or name not in is_global:
            symbols[name] = Symbol(name, _TYPES.get(kind, str(kind)), address, size)
        if info >> 4 != _LOCAL:
            is_global.add(name)
    return symbols
