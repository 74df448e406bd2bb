"""Counts the instructions that each kernel executes, for every board's flags: exact, so no quiet machine is needed.

    python benchmarks/kernel_count.py                    a table; exit code 1 if a limit or the baseline is exceeded
    python benchmarks/kernel_count.py --write-baseline   makes the counts the new benchmarks/kernel_baseline.json

The program that is counted is tests/kernels/kernel_harness.c, so the bits of each result are checked as well.
Needs gcc, aarch64-linux-gnu-gcc and the package qemu-user (the static QEMU loads no plugins).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from colibri_build.files import write_whole
from colibri_build.target.board import Board, load_board
from colibri_build.target.toolchain import COMMON_CFLAGS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "kernels"))

from counted_cases import GROUP_SIZE, Counted, counted_cases  # noqa: E402 (after the path of it)
from kernel_protocol import differences, encode_cases  # noqa: E402

BASELINE = ROOT / "benchmarks" / "kernel_baseline.json"
BOARDS = ("x86-64-v3", "cortex-a53", "tda4vm")
COMPILER = {"aarch64": "aarch64-linux-gnu-gcc", "x86_64": "gcc"}
CLASS_DEPENDENT = ("quantize_activation", "matvec_w", "matmul_w")  # files that know the activation class
TOLERANCE = 0.02  # a count may be this much above its baseline
# (kernel set, kernel, activation bits) -> most instructions a weight byte, whatever the baseline says.
LIMITS = {
    ("avx2", "matvec_w4", 16): 0.50,
    ("avx2", "matvec_w4", 8): 0.33,
    ("neon", "matvec_w4", 16): 1.05,
    ("neon", "matvec_w4", 8): 0.53,
}


@dataclass(frozen=True)
class Baseline:
    """What was counted with which compilers; a count has the name that `count_name` gives it."""

    compilers: dict[str, str]
    counts: dict[str, int]


def main(arguments: Sequence[str]) -> int:
    """Prints one line for each board, class and kernel; 1 if any is too high."""
    if list(arguments) not in ([], ["--write-baseline"]):
        raise SystemExit(__doc__)
    counts: dict[str, int] = {}
    exceeded: list[str] = []
    print(f"{'board':10} {'class':5} {'kernel':20} {'a unit':>9}")
    with tempfile.TemporaryDirectory() as name:
        plugin = build_plugin(Path(name))
        for board in map(load_board, BOARDS):
            for bits in (16, 8):
                found = count_kernels(board, bits, Path(name), plugin)
                counts |= found
                exceeded += over_limits(board, bits, found)
                _print_counts(board, bits, found)
    if arguments:
        baseline = Baseline({name: compiler_version(name) for name in COMPILER.values()}, counts)
        write_whole(BASELINE, (json.dumps(asdict(baseline), indent=1) + "\n").encode())
        return 0
    exceeded += risen(load_baseline(), counts)
    print("\n".join((*exceeded, *fallen(load_baseline(), counts))))
    return 1 if exceeded else 0


def count_name(board: Board, bits: int, kernel: str) -> str:
    """What a count is called in the baseline."""
    return f"{board.name} a{bits} {kernel}"


def load_baseline() -> Baseline:
    """The committed one."""
    return Baseline(**json.loads(BASELINE.read_text()))


def compiler_version(compiler: str) -> str:
    """The first line of --version."""
    return run([compiler, "--version"]).stdout.splitlines()[0]


def risen(baseline: Baseline, counts: dict[str, int]) -> list[str]:
    """One line for each count that is too far above its baseline, or has none."""
    lines = []
    for name, count in counts.items():
        old = baseline.counts.get(name)
        if old is None:
            lines.append(f"{name}: {count} instructions, and no baseline (write it with --write-baseline)")
        elif count > old * (1 + TOLERANCE):
            lines.append(f"{name}: {old} instructions before, {count} now ({count / old - 1:+.1%})")
    return lines


def fallen(baseline: Baseline, counts: dict[str, int]) -> list[str]:
    """One line for each count that is so far below its baseline that a rise up to it would go unseen."""
    return [
        f"{name}: {old} instructions before, {count} now ({count / old - 1:+.1%}): write the baseline anew"
        for name, count in counts.items()
        if count < (old := baseline.counts.get(name, 0)) * (1 - TOLERANCE)
    ]


def over_limits(board: Board, bits: int, counts: dict[str, int]) -> list[str]:
    """One line for each count above what the kernel may ever take."""
    lines = []
    for counted in counted_cases(bits):
        per_unit = counts[count_name(board, bits, counted.kernel)] / counted.amount
        limit = LIMITS.get((board.kernels, counted.kernel, bits))
        if limit is not None and per_unit > limit:
            name = count_name(board, bits, counted.kernel)
            lines.append(f"{name}: {per_unit:.3f} instructions a {counted.unit}, at most {limit} are allowed")
    return lines


def _print_counts(board: Board, bits: int, counts: dict[str, int]) -> None:
    for counted in counted_cases(bits):
        per_unit = counts[count_name(board, bits, counted.kernel)] / counted.amount
        limit = LIMITS.get((board.kernels, counted.kernel, bits))
        note = "" if limit is None else f"   limit {limit}"
        print(f"{board.name:10} a{bits:<4} {counted.kernel:20} {per_unit:9.4f} per {counted.unit}{note}")


def build_plugin(folder: Path) -> Path:
    """The QEMU plugin that counts, as a library in `folder`."""
    plugin = folder / "plugin.so"
    run(["gcc", "-O2", "-shared", "-fPIC", str(ROOT / "benchmarks/instruction_plugin.c"), "-o", str(plugin)])
    return plugin


def count_kernels(board: Board, bits: int, folder: Path, plugin: Path) -> dict[str, int]:
    """Instructions of one call of each kernel, by name. Raises SystemExit if a result has wrong bits."""
    binary = build_harness(board, bits, folder)
    counted = counted_cases(bits)
    cases, results = binary.with_suffix(".cases"), binary.with_suffix(".results")
    cases.write_bytes(encode_cases([one.case for one in counted]))
    command = [*_qemu(board), "-plugin", f"{plugin},marks=on", "-d", "plugin"]
    said = run([*command, str(binary), str(cases), str(results), "count"]).stderr
    marks = [int(number) for number in re.findall(r"^mark (\d+)$", said, re.MULTILINE)]
    if len(marks) != 2 * len(counted):
        raise SystemExit(f"QEMU gave {len(marks)} counts of {2 * len(counted)}: is the package qemu-user installed?")
    if wrong := differences([one.case for one in counted], results.read_bytes()):
        raise SystemExit(f"{board.name} a{bits}: wrong results\n" + "\n".join(wrong))
    return _by_name(board, bits, counted, marks)


def _by_name(board: Board, bits: int, counted: list[Counted], marks: list[int]) -> dict[str, int]:
    spans = (after - before for before, after in zip(marks[::2], marks[1::2], strict=True))
    return {count_name(board, bits, one.kernel): span for one, span in zip(counted, spans, strict=True)}


def generate_configuration(board: Board, bits: int, folder: Path) -> Path:
    """A folder with model_config.h and board_config.h as the generator writes them for the kernels."""
    generated = folder / f"{board.name}-{bits}"
    generated.mkdir()
    constants = {"GROUP_SIZE": GROUP_SIZE, "ACTIVATION_BITS": bits, "USES_W4": 1, "USES_W8": 1, "USES_F16": 1}
    config = "".join(f"#define MODEL_{name} {value}\n" for name, value in constants.items())
    (generated / "model_config.h").write_text(config)
    (generated / "board_config.h").write_text(f"#define BOARD_KERNELS_{board.kernels.upper()} 1\n")
    return generated


def build_harness(board: Board, bits: int, folder: Path) -> Path:
    """tests/kernels/kernel_harness.c with the board's kernels and flags."""
    generated = generate_configuration(board, bits, folder)
    runtime = ROOT / "runtime_c"
    kernels = sorted((runtime / "kernels").glob(f"*_{board.kernels}.c"))
    products = [path for path in kernels if path.name.startswith(CLASS_DEPENDENT)]
    others = [path for path in kernels if path not in products]
    flags = [*COMMON_CFLAGS, *board.flags.gcc.compile, f"-I{runtime}", f"-I{generated}"]
    shared = folder / f"{board.name}-shared.o"
    if not shared.exists():
        sources = [*others, ROOT / "tests/kernels/kernel_harness.c"]
        run([COMPILER[board.arch], *flags, *map(str, sources), "-r", "-o", str(shared)])
    binary = generated / "kernel_harness"
    run([COMPILER[board.arch], *flags, *map(str, products), str(shared), "-static", "-lm", "-o", str(binary)])
    return binary


def counted_instructions(board: Board, binary: Path, plugin: Path, arguments: Sequence[str]) -> int:
    """How many instructions a run of a program takes on the board's CPU."""
    command = [*_qemu(board), "-plugin", str(plugin), "-d", "plugin"]
    found = re.search(r"instructions (\d+)", run([*command, str(binary), *arguments]).stderr)
    if found is None:
        raise SystemExit("QEMU loaded no plugin: install the package qemu-user")
    return int(found[1])


def _qemu(board: Board) -> list[str]:
    cpu = board.qemu.args[board.qemu.args.index("-cpu") + 1]
    return [f"qemu-{board.arch}", "-cpu", cpu]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises SystemExit if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
