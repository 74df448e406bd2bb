"""The thread team: a lost or doubled share would corrupt rows; a race would do so once a week on the board."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMON = [
    "-std=c11",
    "-D_POSIX_C_SOURCE=200809L",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
    "-pthread",
]
DIVIDE = "-DTHREADS_LEAST_JOB_NS=0"  # short jobs, too


@pytest.mark.parametrize(
    ("compiler", "flags", "run"),
    [
        (["gcc"], ["-O3", DIVIDE], []),
        (["gcc"], ["-O3", "-DCHECK_REST"], []),
        (["gcc"], ["-O1", "-g", "-fsanitize=thread", DIVIDE], ["setarch", "-R"]),
        (["aarch64-linux-gnu-gcc", "-static"], ["-O3", DIVIDE], ["qemu-aarch64-static", "-cpu", "cortex-a53"]),
    ],
    ids=["native", "short-jobs-alone", "thread-sanitizer", "cortex-a53"],
)
def test_every_item_is_done_once(tmp_path: Path, compiler: list[str], flags: list[str], run: list[str]) -> None:
    (tmp_path / "model_config.h").write_text("#define MODEL_MAX_THREADS 4\n", encoding="utf-8")
    includes = [f"-I{ROOT}/runtime_c", f"-I{ROOT}/runtime_c/include", f"-I{tmp_path}"]
    sources = [str(ROOT / "tests/port/threads_main.c")]
    program = str(tmp_path / "threads")
    subprocess.run([*compiler, *COMMON, *flags, *includes, *sources, "-o", program], check=True)
    done = subprocess.run([*run, program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
