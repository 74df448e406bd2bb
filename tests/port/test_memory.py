"""Huge pages and prefaulting: a byte that changes would be a wrong answer; a copy beside the original, twice the memory."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = "-std=c11 -D_POSIX_C_SOURCE=200809L -O2 -Wall -Wextra -Wconversion -Wshadow -Werror -static -pthread".split()
MIB = 1 << 20
SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PARTS = ("memory", "huge_pages", "kernel_file", "segments", "schedule", "threads")
BUILDS = {
    "native": (["gcc"], []),
    "clang": (["clang"], []),
    "old-kernel": (["gcc", "-Dmadvise=refused_madvise"], []),
    "cortex-a53": (["aarch64-linux-gnu-gcc"], ["qemu-aarch64-static", "-cpu", "cortex-a53"]),
}


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def report(tmp_path: Path, build: str) -> dict[str, Any]:
    (tmp_path / "model_config.h").write_text("#define MODEL_MAX_THREADS 4\n", encoding="utf-8")
    (tmp_path / "data.bin").write_bytes(random.Random(1).randbytes(9 * MIB + 123))
    compiler, run = BUILDS[build]
    sources = [ROOT / "tests/port/memory_main.c"]
    sources += [ROOT / "runtime_c/port" / f"{n}.c" for n in PARTS]
    includes = [f"-I{folder}" for folder in (ROOT / "runtime_c", ROOT / "runtime_c/include", tmp_path)]
    program = tmp_path / "memory"
    data = f'-DDATA_FILE="{tmp_path / "data.bin"}"'
    subprocess.run([*compiler, *FLAGS, *includes, data, *sources, "-Wl,-z,separate-code", "-o", program], check=True)
    said = subprocess.run([*run, program], capture_output=True, text=True, timeout=60, check=True).stdout
    parsed: dict[str, Any] = json.loads(said)
    return parsed


def test_the_bytes_stay_the_same_and_are_never_there_twice(report: dict[str, Any], build: str) -> None:
    assert report["same"]
    assert report["read_only"]
    if build == "old-kernel":
        assert (report["reason"], report["copied"]) == ("Invalid argument", 0)
        return
    gives_none = not SETTING.exists() or "[never]" in SETTING.read_text(encoding="ascii")
    if build == "cortex-a53" or gives_none:  # an emulated process gets none either
        assert (report["reason"], report["copied"]) == ("the kernel gives no huge page", 0)
        return
    assert report["reason"] == ""
    assert report["copied"] >= 6 * MIB, "of 9 MiB at most a huge page less a byte is left at each end"
    assert report["huge"] == report["copied"]
    assert report["growth_kib"] <= 3 * 1024, "one huge page at a time"


def test_what_is_prefaulted_does_not_fault(report: dict[str, Any], build: str) -> None:
    assert report["prefault_reason"] == ""
    assert report["prefaulted"] > 13 * MIB
    if build != "cortex-a53":  # the emulator's own faults count there
        assert report["faults"] == 0
