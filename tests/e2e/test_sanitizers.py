"""The whole firmware under gcc's sanitizers: an overrun buffer or a race answers well on the desk and fails in the car."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from colibri_build.pipeline import BuildResult
from colibri_build.run.status_line import parse_status
from support.builds import PROMPTS, build_tiny, quick_board
from support.tiny_checkpoint import write_tiny_checkpoint

# No dimension is a multiple of what a kernel does at once.
CONFIG = {
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 10,
    "hidden_size": 76,
    "intermediate_size": 172,
}
FLAGS = "-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -g -ffp-contract=off -march=x86-64-v3 -Iruntime_c -Iruntime_c/include"
FLAGS += " -DTHREADS_LEAST_JOB_NS=0"  # the jobs of a small model are divided, too
LINES = "\n".join([*PROMPTS, "", "\udcff\udcfe", "a " * 100]).encode("utf-8", "surrogateescape")  # 3 good, 3 bad
RUNS: list[tuple[list[str], int]] = [
    (["--selftest"], 0),
    (["--bench", "4"], 0),
    (["--stdin", "--max-tokens", "12"], 3),
    (["--prompt", "turn the", "--temperature", "0.9", "--top-p", "0.8", "--seed", "7"], 0),
    (["--tokens", "1,2,3", "--ids", "--temperature", "0.9"], 0),
    (["--tokens", "300,301"], 3),
    (["--info"], 0),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuildResult]:
    folder = tmp_path_factory.mktemp("sanitizers")
    write_tiny_checkpoint(folder / "tiny", **CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLIBRI_CACHE", str(folder / "cache"))
        yield build_tiny(folder, quick_board(folder), embed="xxd")


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("kernels", "sanitizers"),
    [("AVX2", "address,undefined"), ("PORTABLE", "address,undefined"), ("AVX2", "thread")],
)
def test_no_sanitizer_finds_anything(tmp_path: Path, tiny: BuildResult, kernels: str, sanitizers: str) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(tiny.out, tree, ignore=shutil.ignore_patterns("objects", "colibri_inference"))
    replace_in(tree / "generated" / "board_config.h", "BOARD_KERNELS_AVX2", f"BOARD_KERNELS_{kernels}")
    # gcc gives no red zones to arrays in a section of their own or aligned to more than 64: so a read beyond a weight
    # file is seen.
    placed = 'PLACED(".weights") __attribute__((aligned(4096)))'
    replace_in(tree / "generated" / "weights.c", placed, "__attribute__((aligned(64)))")
    sanitize = f"-fsanitize={sanitizers} -fno-sanitize-recover=all"
    variables = [f"CFLAGS={FLAGS} -Igenerated -Iweights {sanitize}", f"LDFLAGS={sanitize} -pthread -lm"]
    subprocess.run(["make", "-C", tree, "-s", "-j2", *variables], check=True)
    for arguments, exit_code in RUNS:
        for threads in ["1", "3"] if arguments != ["--info"] else [""]:
            # The thread sanitizer needs fixed addresses.
            command = ["setarch", "-R", str(tree / "colibri_inference"), *arguments]
            command += ["--threads", threads] if threads else []
            done = subprocess.run(command, input=LINES, capture_output=True, timeout=60, check=False)
            found = done.stderr.decode("utf-8", "replace")
            assert done.returncode == exit_code, found
            assert "Sanitizer" not in found, found
            assert "runtime error" not in found, found
            if arguments == ["--selftest"]:
                assert parse_status(found)["logits_hash"] == tiny.golden[0].logits_hash
