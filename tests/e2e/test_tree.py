"""The output folder: reproducible to the byte, complete without Python, movable."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from support.builds import PROMPTS, build_tiny, run


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))


def sections(elf: Path) -> dict[str, bytes]:
    with elf.open("rb") as file:
        return {section.name: section.data() for section in ELFFile(file).iter_sections()}


def test_two_folders_give_the_same_elf(tmp_path: Path) -> None:
    """What was certified must be what another machine builds; a path with blanks and umlauts must work at all."""
    first = build_tiny(tmp_path, "cortex-a53", out=tmp_path / "a")
    second = build_tiny(tmp_path, "cortex-a53", out=tmp_path / "mit Leerzeichen und Ümlaut" / "b")
    assert first.firmware.elf.read_bytes() == second.firmware.elf.read_bytes()
    assert str(tmp_path).encode() not in first.firmware.elf.read_bytes()


def test_the_generated_makefile_rebuilds_the_firmware_elsewhere_without_python(tmp_path: Path) -> None:
    result = build_tiny(tmp_path, "cortex-a53")
    moved = tmp_path / "moved here"
    shutil.copytree(result.out, moved)
    (moved / "colibri_inference").unlink()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("make", "sh", "aarch64-linux-gnu-gcc", "rm", "mkdir", "mv"):
        (tools / name).symlink_to(str(shutil.which(name)))
    command = ["make", "-C", moved, "clean", "colibri_inference"]
    subprocess.run(command, check=True, capture_output=True, env={"PATH": str(tools)})
    assert (moved / "colibri_inference").read_bytes() == result.firmware.elf.read_bytes()


def test_incbin_and_xxd_embed_the_same_bytes(tmp_path: Path) -> None:
    incbin = build_tiny(tmp_path, "x86-64-v3", out=tmp_path / "incbin")
    xxd = build_tiny(tmp_path, "x86-64-v3", out=tmp_path / "xxd", embed="xxd")
    name = next(name for name in sections(incbin.firmware.elf) if "weights" in name)
    assert sections(incbin.firmware.elf)[name] == sections(xxd.firmware.elf)[name]
    assert run(xxd, "--prompt", PROMPTS[0], "--max-tokens", "12").status["logits_hash"] == incbin.golden[0].logits_hash


def test_a_second_build_compiles_nothing(tmp_path: Path) -> None:
    first = build_tiny(tmp_path, "x86-64-v3")
    before = first.firmware.elf.stat().st_mtime_ns
    second = build_tiny(tmp_path, "x86-64-v3")
    assert second.firmware.elf.stat().st_mtime_ns == before
    assert second.golden == first.golden
