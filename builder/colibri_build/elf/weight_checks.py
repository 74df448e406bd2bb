"""Checks of the embedded weights: there, aligned, read-only, and the bytes of the model folder."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator

from colibri_build.artifacts import Check, FileRecord, ModelFolder
from colibri_build.elf.facts import EXECUTE, PF_W, PF_X, WRITE, ElfFacts, Section, Symbol
from colibri_build.layout import file_layouts, symbol_of

SECTION = ".weights"
ALIGNMENT = 4096


def weight_checks(elf: ElfFacts, folder: ModelFolder) -> tuple[Check, ...]:
    """Compare the section and its symbols with the model folder's records."""
    records = [folder.files[layout.name] for layout in file_layouts(folder.config, folder.formats, folder.group_size)]
    section = elf.section(SECTION)
    if section is None:
        return (Check("weights read-only", False, f"there is no section {SECTION}"),)
    return (
        _read_only(elf, section),
        _check("weight symbols complete", _symbol_faults(elf, section, records), f"{len(records)} arrays and lengths"),
        _check("weights aligned", _alignment_faults(elf, records), f"every array at a multiple of {ALIGNMENT}"),
        _check(
            "weights are the model's",
            list(_content_faults(elf, section, records)),
            f"SHA-256 of {len(records)} arrays, {sum(record.bytes for record in records)} bytes",
        ),
    )


def _check(name: str, faults: list[str], detail: str) -> Check:
    if not faults:
        return Check(name, True, detail)
    more = f" and {len(faults) - 3} more" if len(faults) > 3 else ""
    return Check(name, False, "; ".join(faults[:3]) + more)


def _read_only(elf: ElfFacts, section: Section) -> Check:
    faults = []
    if section.flags & (WRITE | EXECUTE):
        faults.append(f"section {SECTION} has flags 0x{section.flags:x}")
    for segment in elf.loads():
        inside = segment.address <= section.address < segment.address + segment.memory_bytes
        if inside and segment.flags & (PF_W | PF_X):
            kind = "writable" if segment.flags & PF_W else "executable"
            faults.append(f"segment at 0x{segment.address:x} that holds {SECTION} is {kind}")
    return _check("weights read-only", faults, f"{SECTION}, {section.bytes} bytes at 0x{section.address:x}")


def _symbol_faults(elf: ElfFacts, section: Section, records: list[FileRecord]) -> list[str]:
    faults = []
    for record in records:
        name = symbol_of(record.name)
        symbol = elf.symbols.get(name)
        if symbol is None:
            faults.append(f"{name} is missing")
        elif symbol.bytes != record.bytes:
            faults.append(f"{name} has {symbol.bytes} bytes, {record.name} has {record.bytes}")
        elif not section.address <= symbol.address <= section.address + section.bytes - symbol.bytes:
            faults.append(f"{name} is outside {SECTION}")
        length = _length(elf, name)
        if length != record.bytes:
            faults.append(f"{name}_len is {'missing' if length is None else length}, expected {record.bytes}")
    return faults


def _length(elf: ElfFacts, name: str) -> int | None:
    """Value of the 32-bit constant `name`_len."""
    symbol = elf.symbols.get(f"{name}_len")
    if symbol is None or symbol.bytes != 4:
        return None
    offset = _file_offset(elf, symbol)
    if offset is None:
        return None
    with elf.path.open("rb") as stream:
        stream.seek(offset)
        return int.from_bytes(stream.read(4), "little")


def _file_offset(elf: ElfFacts, symbol: Symbol) -> int | None:
    for segment in elf.loads():
        if segment.address <= symbol.address < segment.address + segment.file_bytes:
            return segment.offset + symbol.address - segment.address
    return None


def _alignment_faults(elf: ElfFacts, records: list[FileRecord]) -> list[str]:
    symbols = (elf.symbols.get(symbol_of(record.name)) for record in records)
    return [f"{s.name} is at 0x{s.address:x}" for s in symbols if s is not None and s.address % ALIGNMENT]


def _content_faults(elf: ElfFacts, section: Section, records: list[FileRecord]) -> Iterator[str]:
    with elf.path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        view = memoryview(data)
        try:
            for record in records:
                symbol = elf.symbols.get(symbol_of(record.name))
                if symbol is None:
                    yield f"{record.name} is not embedded"
                    continue
                start = section.offset + symbol.address - section.address
                found = hashlib.sha256(view[start : start + record.bytes]).hexdigest()
                if found != record.sha256:
                    yield f"{symbol.name} differs from {record.name}: SHA-256 {found[:12]}, expected {record.sha256[:12]}"
        finally:
            view.release()
