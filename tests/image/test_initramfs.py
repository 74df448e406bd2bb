"""The initramfs: an archive that the kernel and cpio read, and that is the same wherever it is made."""

from __future__ import annotations

import gzip
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.errors import CompileError
from colibri_build.image.first_stage import compile_first_stage
from colibri_build.image.initramfs import write_initramfs
from colibri_build.target.board import load_board
from colibri_build.target.toolchain import resolve_toolchain


def records(archive: bytes) -> list[tuple[str, int, tuple[int, int], bytes]]:
    """Name, mode, device number and content of each entry, by the format's own rules."""
    found, at = [], 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, name_size = fields[6], fields[11]
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        start = -(-(at + 110 + name_size) // 4) * 4
        if name == "TRAILER!!!":
            assert len(archive) % 512 == 0
            return found
        found.append((name, fields[1], (fields[9], fields[10]), archive[start : start + size]))
        assert (fields[2], fields[3], fields[5]) == (0, 0, 0), "owner and time would differ between machines"
        at = -(-(start + size) // 4) * 4


def inputs(folder: Path) -> tuple[Path, list[Path]]:
    folder.mkdir()
    files = {"init": b"first", "z.ko": b"needed first", "a.ko": b"needs z"}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder / "init", [folder / "z.ko", folder / "a.ko"]


def test_what_the_kernel_finds_in_it(tmp_path: Path) -> None:
    out = write_initramfs(*inputs(tmp_path / "in"), tmp_path / "initrd")
    found = {name: rest for name, *rest in records(gzip.decompress(out.read_bytes()))}
    assert found["dev/console"] == [stat.S_IFCHR | 0o600, (5, 1), b""], "else /init starts without a console"
    assert found["init"] == [stat.S_IFREG | 0o755, (0, 0), b"first"]
    assert found["modules/modules"][2] == b"z.ko\na.ko\n", "the order of loading"
    assert found["modules/a.ko"][2] == b"needs z"


def test_two_machines_make_the_same_bytes(tmp_path: Path) -> None:
    first = write_initramfs(*inputs(tmp_path / "one"), tmp_path / "a")
    init, modules = inputs(tmp_path / "two")
    for path in (init, *modules):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    assert write_initramfs(init, modules, tmp_path / "b").read_bytes() == first.read_bytes()


@pytest.mark.parametrize("board", ["cortex-a53", "x86-64-v3"])
def test_the_first_stage_is_static_and_the_same_anywhere(tmp_path: Path, board: str) -> None:
    toolchain = resolve_toolchain(load_board(board), "debian-gcc")
    first = compile_first_stage(toolchain, tmp_path / "init").read_bytes()
    (tmp_path / "elsewhere").mkdir()
    assert compile_first_stage(toolchain, tmp_path / "elsewhere" / "init").read_bytes() == first
    assert b"/ld-linux" not in first
    assert os.access(tmp_path / "init", os.X_OK)


def test_a_compiler_that_is_gone_is_named(tmp_path: Path) -> None:
    toolchain = replace(resolve_toolchain(load_board("cortex-a53"), "debian-gcc"), cc=("/no/such/gcc",))
    with pytest.raises(CompileError, match=r"cannot start /no/such/gcc"):
        compile_first_stage(toolchain, tmp_path / "init")
    assert list(tmp_path.iterdir()) == []
