"""A firmware without --debug holds not one byte of it: what the hooks compile to is what their absence compiles to."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from debug_firmware import SUBSETS, Workshop, options
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from colibri_build.render.tree import runtime_files
from colibri_build.resources import data_dir
from colibri_build.target.board import load_board
from colibri_build.target.toolchain import resolve_toolchain

_BLOCK = re.compile(r"^#if (?:TRACE_COMPILED|DEBUG_\w+)\n.*?(?:^#else\n(.*?))?^#endif\n", re.MULTILINE | re.DOTALL)
_HOOK = re.compile(r"^.*(?:\btrace_|\bTRACE_|trace/|app/tracing\.h).*\n", re.MULTILINE)
TARGETS = [("x86-64-v3", "debian-gcc"), ("cortex-a53", "debian-gcc"), ("x86-64-v3", "clang")]
Relocation = tuple[int, int, str, int]  # offset, type, symbol, addend
# Files with hooks.
TELLING = ("experts.c", "decoder.c", "threads.c", "generate.c", "bench.c", "options.c", "report.c", "info.c", "main.c")


def without_hooks(text: str) -> str:
    return _HOOK.sub("", _BLOCK.sub(lambda found: found[1] or "", text))


@pytest.fixture
def bare(x86: Workshop, tmp_path: Path) -> Path:
    """The same tree with no trace/ in it, and no line that speaks of it.

    serve/ is left out: it answers the requests of the protocol that ask for records, if only with a refusal.
    """
    root = tmp_path / "bare"
    for source in (x86.folder / "runtime_c").rglob("*.[ch]"):
        copy = root / source.relative_to(x86.folder)
        if source.parent.name == "trace" or source.name.startswith("tracing.") or source.match("serve/*.c"):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(without_hooks(source.read_text(encoding="utf-8")), encoding="utf-8")
    return root


def compiled(root: Path, source: str, command: list[str], out: Path) -> list[tuple[str, bytes | list[Relocation]]]:
    """What an object brings into memory: its sections, and where the linker puts addresses into them."""
    subprocess.run([*command, "-Iruntime_c", "-Iruntime_c/include", "-c", source, "-o", out], cwd=root, check=True)
    with out.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = elf.get_section_by_name(".symtab")
        found: list[tuple[str, bytes | list[Relocation]]] = []
        for section in elf.iter_sections():
            if isinstance(section, RelocationSection):
                found.append((section.name, [relocation(elf, symbols, each) for each in section.iter_relocations()]))
            elif section["sh_flags"] & SH_FLAGS.SHF_ALLOC:
                data = (
                    section["sh_size"].to_bytes(8, "little") if section["sh_type"] == "SHT_NOBITS" else section.data()
                )
                found.append((unnumbered(section.name), data))
    return found


def relocation(elf: ELFFile, symbols: SymbolTableSection, each: Any) -> Relocation:
    symbol = symbols.get_symbol(each["r_info_sym"])
    name = symbol.name or elf.get_section(symbol["st_shndx"]).name
    return each["r_offset"], each["r_info_type"], unnumbered(name), each["r_addend"]


def unnumbered(name: str) -> str:
    """Compilers number a function's own static variables through the file."""
    return re.sub(r"\.\d+$", "", name)


@pytest.mark.parametrize(("board_name", "toolchain_name"), TARGETS)
def test_no_object_has_a_byte_of_it(
    x86: Workshop, bare: Path, tmp_path: Path, board_name: str, toolchain_name: str
) -> None:
    board = load_board(board_name)
    toolchain = resolve_toolchain(board, toolchain_name)
    config = (x86.folder / "generated/model_config.h").read_text(encoding="utf-8")
    generated = tmp_path / "generated"
    generated.mkdir()
    (generated / "model_config.h").write_text(re.sub(r"(#define DEBUG_\w+) 1", r"\1 0", config), encoding="utf-8")
    kernels = (x86.folder / "generated/board_config.h").read_text(encoding="utf-8")
    (generated / "board_config.h").write_text(kernels.replace("AVX2", board.kernels.upper()), encoding="utf-8")
    flags = [flag for flag in toolchain.cflags if flag != "-fstack-usage"]
    command = [*toolchain.portable_cc, *flags, f"-I{generated}"]
    changed = [
        str(path.relative_to(bare))
        for path in sorted(bare.rglob("*.c"))
        if path.read_bytes() != (x86.folder / path.relative_to(bare)).read_bytes()
    ]
    assert {Path(name).name for name in changed} >= set(TELLING), "the comparison would be blind"
    for source in changed:
        with_hooks = compiled(x86.folder, source, command, tmp_path / "a.o")
        assert with_hooks == compiled(bare, source, command, tmp_path / "a.o"), source


def test_with_them_the_objects_are_others(x86: Workshop, bare: Path, tmp_path: Path) -> None:
    """The negative: the comparison above sees a hook."""
    command = ["gcc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O3", f"-I{x86.folder}/generated"]
    config = tmp_path / "model_config.h"
    shutil.copyfile(x86.folder / "generated/model_config.h", config)
    for name in ("model/decoder.c", "model/experts.c", "app/generate.c"):
        source = f"runtime_c/{name}"
        with_hooks = compiled(x86.folder, source, command, tmp_path / "a.o")
        assert with_hooks != compiled(bare, source, command, tmp_path / "a.o"), source


@pytest.mark.parametrize("board", ["x86-64-v3", "cortex-a53"])
def test_no_source_of_it_is_in_the_tree(board: str) -> None:
    every = {f"runtime_c/trace/{path.name}" for path in (data_dir("runtime_c") / "trace").glob("*.c")}
    assert every
    assert not every & set(runtime_files(load_board(board), options(())))
    for debug in SUBSETS[1:]:
        assert every <= set(runtime_files(load_board(board), options(debug)))


def test_no_word_of_it_is_in_the_binary(x86: Workshop) -> None:
    words = [b"[ROUTING]", b"[MEMORY]", b"[TIME]", b"[TOKEN]", b"[DROPPED]", b"trace-fd", b"trace_ring"]
    plain, full = (x86.firmware(debug).elf.read_bytes() for debug in ((), SUBSETS[-1]))
    assert all(word in full for word in words)
    assert [word for word in words if word in plain] == []
