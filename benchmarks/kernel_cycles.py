"""Cycles of the products' inner loops on the boards' cores, as llvm-mca predicts them, and what limits them.

    python benchmarks/kernel_cycles.py [--json FILE]

The innermost loop, or where that is unrolled the longest run of multiplications without a branch, is cut out of each
kernel's assembly code and simulated as if it were repeated for ever with every load in the first-level cache.
Needs aarch64-linux-gnu-gcc and the package llvm.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernel_count import COMPILER, ROOT, generate_configuration, run

from colibri_build.files import write_whole
from colibri_build.target.board import load_board
from colibri_build.target.toolchain import COMMON_CFLAGS

BOARDS = {"cortex-a53": "cortex-a53", "tda4vm": "cortex-a72"}  # and the CPU that llvm-mca simulates
KERNELS = ("matvec_w4", "matmul_w4")
ITERATIONS = 100
IN_ORDER_LOSS = 1.1  # a block that takes this much longer than its busiest unit waits for results
_CONDITION = "eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le"
_BRANCH = re.compile(rf"\t(?:b(?:\.?(?:{_CONDITION}))?|cbn?z|tbn?z|ret|bl|br|blr)\b")
# Widening products of bytes: 8 in one instruction.
_MULTIPLICATION = re.compile(r"\tsm(?:ul|la)l2?\tv\d+\.8h")
PRODUCTS = 8


@dataclass(frozen=True)
class Cycles:
    """One block. Weight bytes are counted once for each column that they are multiplied with."""

    instructions: int
    weight_bytes: float
    cycles: float
    cycles_per_weight_byte: float
    busiest_unit: str
    busiest_unit_cycles: float
    bottleneck: str


def main(arguments: Sequence[str]) -> int:
    """Prints one line for each CPU, class and kernel."""
    if arguments and (len(arguments) != 2 or arguments[0] != "--json"):
        raise SystemExit(__doc__)
    figures = {}
    print(f"{'cpu':10} {'class':5} {'kernel':10} {'cycles a weight byte':>20} {'busiest unit':>13}   bottleneck")
    for name, cpu in BOARDS.items():
        for bits in (16, 8):
            for kernel in KERNELS:
                found = block_cycles(name, cpu, bits, kernel)
                figures[f"{cpu} a{bits} {kernel}"] = asdict(found)
                print(
                    f"{cpu:10} a{bits:<4} {kernel:10} {found.cycles_per_weight_byte:20.3f}"
                    f" {found.busiest_unit_cycles / found.weight_bytes:13.3f}   {found.bottleneck}"
                )
    if arguments:
        write_whole(Path(arguments[1]), (json.dumps(figures, indent=1) + "\n").encode())
    return 0


def block_cycles(board_name: str, cpu: str, bits: int, kernel: str) -> Cycles:
    """What llvm-mca says about a kernel's inner loop with the board's flags."""
    block = inner_block(assembly(board_name, bits, kernel))
    planes = bits // 8
    weight_bytes = PRODUCTS * multiplications(block) / 2 / planes
    cycles, pressure = simulate(block, cpu)
    unit = max(pressure, key=lambda name: pressure[name])
    limited = cycles <= IN_ORDER_LOSS * pressure[unit]
    bottleneck = f"unit {unit}" if limited else f"results not ready in time (busiest unit: {unit})"
    return Cycles(len(block), weight_bytes, cycles, round(cycles / weight_bytes, 4), unit, pressure[unit], bottleneck)


def assembly(board_name: str, bits: int, kernel: str) -> str:
    """The compiler's output for the file of a kernel."""
    board = load_board(board_name)
    with tempfile.TemporaryDirectory() as name:
        generated = generate_configuration(board, bits, Path(name))
        source = ROOT / "runtime_c" / "kernels" / f"{kernel}_{board.kernels}.c"
        flags = [*COMMON_CFLAGS, *board.flags.gcc.compile, f"-I{ROOT / 'runtime_c'}", f"-I{generated}"]
        return run([COMPILER[board.arch], *flags, "-S", str(source), "-o", "-"]).stdout


def inner_block(text: str) -> list[str]:
    """The loop without other branches that has the most multiplications; where none has any, the run between branches."""
    runs: list[list[str]] = [[]]
    loops: list[list[str]] = []
    label = ""
    for line in text.splitlines():
        if _BRANCH.match(line):
            if label and line.split()[-1] == label:
                loops.append(runs[-1])
            runs.append([])
            label = ""
        elif line and not line[0].isspace():
            runs.append([])
            label = line.rstrip(":")
        elif re.match(r"\t[a-z]", line):
            runs[-1].append(line)
    best = max(loops, key=multiplications, default=[])
    return best if multiplications(best) else max(runs, key=multiplications)


def multiplications(block: Sequence[str]) -> int:
    """How many instructions multiply bytes."""
    return sum(1 for line in block if _MULTIPLICATION.match(line))


def simulate(block: Sequence[str], cpu: str) -> tuple[float, dict[str, float]]:
    """Cycles of one pass over the block, and for how many of them each unit of the CPU is busy."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "block.s"
        source.write_text("\n".join(block) + "\n")
        options = ["-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-json"]
        found: dict[str, Any] = json.loads(run(["llvm-mca", *options, str(source)]).stdout)
    region = found["CodeRegions"][0]
    resources = [name.split(".")[0] for name in found["TargetInfo"]["Resources"]]
    copies = {name: resources.count(name) for name in resources}
    pressure: defaultdict[str, float] = defaultdict(float)
    for use in region["ResourcePressureView"]["ResourcePressureInfo"]:
        if use["InstructionIndex"] < len(block):  # what follows is the sum
            name = resources[use["ResourceIndex"]]
            pressure[name] += use["ResourceUsage"] / copies[name]
    return region["SummaryView"]["TotalCycles"] / ITERATIONS, dict(pressure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
