"""Counts the instructions that each kernel executes, for every board's flags: exact, so no quiet machine is needed.

    python benchmarks/kernel_count.py             prints a table; exit code 1 if a limit is exceeded

Needs gcc, aarch64-linux-gnu-gcc and the package qemu-user (the static QEMU loads no plugins).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from colibri_build.target.board import Board, load_board
from colibri_build.target.toolchain import COMMON_CFLAGS

ROOT = Path(__file__).parents[1]
COMPILER = {"aarch64": "aarch64-linux-gnu-gcc", "x86_64": "gcc"}
GROUP_SIZE = 128
ROWS, COLS, HEAD_DIM = 512, 1024, 64  # as in kernel_count.c

# kernel -> (what one call handles, its unit)
KERNELS = {
    "matvec_w4": (ROWS * COLS / 2, "weight byte"),
    "matvec_w8": (ROWS * COLS, "weight byte"),
    "matvec_f16": (ROWS * COLS * 2, "weight byte"),
    "attention_scores": (ROWS * HEAD_DIM * 2, "cache byte"),
    "attention_mix": (ROWS * HEAD_DIM * 2, "cache byte"),
    "quantize_activation": (COLS, "input"),
    "swiglu": (COLS, "element"),
}
CLASS_DEPENDENT = ("matvec_w4", "quantize_activation")
# (kernel set, kernel, activation bits) -> most instructions a unit; what was reached with gcc 12, plus 3 %
LIMITS = {
    ("avx2", "matvec_w4", 16): 0.50,
    ("avx2", "matvec_w4", 8): 0.33,
    ("neon", "matvec_w4", 16): 0.98,
    ("neon", "matvec_w4", 8): 0.545,
    ("avx2", "matvec_w8", 16): 0.235,
    ("neon", "matvec_w8", 16): 0.52,
}


def main() -> int:
    """Prints one line for each board, class and kernel; 1 if any is above its limit."""
    exceeded = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plugin = build_plugin(folder)
        print(f"{'board':10} {'class':5} {'kernel':20} {'instructions':>12}   limit")
        for board in map(load_board, ("x86-64-v3", "cortex-a53")):
            for bits in (16, 8):
                exceeded += _count_board(board, bits, folder, plugin)
    return 1 if exceeded else 0


def build_plugin(folder: Path) -> Path:
    """The QEMU plugin that counts, as a library in `folder`."""
    plugin = folder / "plugin.so"
    run(["gcc", "-O2", "-shared", "-fPIC", str(ROOT / "benchmarks/instruction_plugin.c"), "-o", str(plugin)])
    return plugin


def _count_board(board: Board, bits: int, folder: Path, plugin: Path) -> int:
    binary = _compile(board, bits, folder)
    exceeded = 0
    for kernel, (amount, unit) in KERNELS.items():
        if bits == 8 and kernel not in CLASS_DEPENDENT:
            continue
        few, many = (counted_instructions(board, binary, plugin, (kernel, str(times))) for times in (1, 3))
        per_unit = (many - few) / 2 / amount
        limit = LIMITS.get((board.kernels, kernel, bits))
        too_many = limit is not None and per_unit > limit
        exceeded += too_many
        note = "" if limit is None else f"{limit}{'  EXCEEDED' if too_many else ''}"
        print(f"{board.name:10} a{bits:<4} {kernel:20} {per_unit:12.3f}   {note:6} per {unit}")
    return exceeded


def _compile(board: Board, bits: int, folder: Path) -> Path:
    generated = folder / f"{board.name}-{bits}"
    generated.mkdir()
    constants = {"GROUP_SIZE": GROUP_SIZE, "ACTIVATION_BITS": bits, "USES_W4": 1, "USES_W8": 1, "USES_F16": 1}
    config = "".join(f"#define MODEL_{name} {value}\n" for name, value in constants.items())
    (generated / "model_config.h").write_text(config)
    (generated / "board_config.h").write_text(f"#define BOARD_KERNELS_{board.kernels.upper()} 1\n")
    runtime = ROOT / "runtime_c"
    sources = [ROOT / "benchmarks/kernel_count.c", *sorted((runtime / "kernels").glob(f"*_{board.kernels}.c"))]
    flags = [*COMMON_CFLAGS, *board.flags.gcc.compile, f"-I{runtime}", f"-I{generated}", "-static"]
    binary = generated / "kernel_count"
    run([COMPILER[board.arch], *flags, *map(str, sources), "-lm", "-o", str(binary)])
    return binary


def counted_instructions(board: Board, binary: Path, plugin: Path, arguments: Sequence[str]) -> int:
    """How many instructions a run of a program takes on the board's CPU."""
    cpu = board.qemu.args[board.qemu.args.index("-cpu") + 1]
    command = [f"qemu-{board.arch}", "-cpu", cpu, "-plugin", str(plugin), "-d", "plugin"]
    found = re.search(r"instructions (\d+)", run([*command, str(binary), *arguments]).stderr)
    if found is None:
        raise SystemExit("QEMU loaded no plugin: install the package qemu-user")
    return int(found[1])


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises SystemExit if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done


if __name__ == "__main__":
    sys.exit(main())
