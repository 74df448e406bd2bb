"""Embedding must scale: compilers of others ran out of memory on a model's weights."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.artifacts import FileRecord
from colibri_build.layout import file_layouts
from colibri_build.render.tree import COMPILE_FLAGS
from colibri_build.render.weights import weights_sources
from colibri_build.target.commands import environment
from support.stub_tree import target, tiny_folder
from support.tiny_quantized import AWKWARD_CONFIG

LARGE = replace(AWKWARD_CONFIG, dim=512, hidden_dim=4096, n_layers=2, n_experts=4)


# A child's peak includes that of the process it was forked from, so a small interpreter starts the compiler.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def peak_memory(command: list[str], folder: Path, environ: dict[str, str]) -> int:
    """Run a command in a folder and return its peak resident bytes."""
    launcher = [sys.executable, "-S", "-c", MEASURE, *command]
    done = subprocess.run(launcher, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("toolchain", ["debian-gcc", "clang", "zig"])
def test_embedding_costs_a_small_multiple_of_the_weights(tmp_path: Path, toolchain: str) -> None:
    """27 MB: the assembler's memory stays below three times the weights, where a C array takes 150 times."""
    folder = tiny_folder(tmp_path)
    weights = tmp_path / "weights"
    weights.mkdir()
    files = {}
    for layout in file_layouts(LARGE, folder.formats, folder.group_size):
        (weights / layout.name).write_bytes(os.urandom(layout.bytes))
        files[layout.name] = FileRecord(layout.name, layout.bytes, "0" * 64)
    total = sum(record.bytes for record in files.values())
    (tmp_path / "weights.S").write_text(
        weights_sources(replace(folder, config=LARGE, files=files), "incbin")["weights.S"], encoding="utf-8"
    )
    _, chosen = target("x86-64-v3", toolchain)
    environ = {**environment(), "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "zig")}  # do not fill the user's
    command = [*chosen.cc, *COMPILE_FLAGS, "-c", "weights.S", "-o", "weights.o"]
    peak_bytes = peak_memory(command, tmp_path, environ)
    assert 25e6 < total < 32e6
    assert (tmp_path / "weights.o").stat().st_size > total
    assert peak_bytes < 3 * total + 150e6
