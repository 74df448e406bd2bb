"""No kernel may take more instructions than its baseline: a token would become slower without anyone measuring it.

benchmarks/kernel_count.py counts and says how to write the baseline anew. Counts depend on the compiler: with another
version than the baseline's only the fixed limits are held, and a warning says so.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from colibri_build.target.board import load_board

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import kernel_count
from counted_cases import counted_cases


# tda4vm has the compiler flags of cortex-a53, but for an erratum of that CPU; `make bench` counts it as well.
@pytest.mark.parametrize("board_name", ["x86-64-v3", "cortex-a53"])
def test_no_kernel_takes_more_instructions_than_before(board_name: str, tmp_path: Path) -> None:
    board = load_board(board_name)
    plugin = kernel_count.build_plugin(tmp_path)
    baseline = kernel_count.load_baseline()
    compiler = kernel_count.COMPILER[board.arch]
    version = kernel_count.compiler_version(compiler)
    too_high = []
    for bits in (16, 8):
        counts = kernel_count.count_kernels(board, bits, tmp_path, plugin)
        too_high += kernel_count.over_limits(board, bits, counts)
        if version == baseline.compilers[compiler]:
            too_high += kernel_count.risen(baseline, counts)
            for line in kernel_count.fallen(baseline, counts):
                warnings.warn(line, stacklevel=1)
    if version != baseline.compilers[compiler]:
        warnings.warn(f"'{version}' did not write the baseline: counts are not compared with it", stacklevel=1)
    assert not too_high, "\n".join(too_high)


def test_the_baseline_has_every_kernel_of_every_board_and_nothing_else() -> None:
    """A kernel that was renamed would keep a baseline that nothing is compared with."""
    names = {
        kernel_count.count_name(load_board(board), bits, counted.kernel)
        for board in kernel_count.BOARDS
        for bits in (16, 8)
        for counted in counted_cases(bits)
    }
    assert set(kernel_count.load_baseline().counts) == names


def test_a_rise_of_more_than_two_percent_is_named() -> None:
    baseline = kernel_count.Baseline({}, {"cortex-a53 a16 add": 1000, "cortex-a53 a16 swiglu": 1000})
    assert kernel_count.risen(baseline, {"cortex-a53 a16 add": 1020, "cortex-a53 a16 swiglu": 900}) == []
    lines = kernel_count.risen(baseline, {"cortex-a53 a16 add": 1021, "cortex-a53 a16 to_f16": 7})
    assert lines[0] == "cortex-a53 a16 add: 1000 instructions before, 1021 now (+2.1%)"
    assert lines[1].startswith("cortex-a53 a16 to_f16: 7 instructions, and no baseline")


def test_a_fall_of_more_than_two_percent_is_named() -> None:
    """Otherwise the kernel could become as slow as it was."""
    baseline = kernel_count.Baseline({}, {"cortex-a53 a16 add": 1000, "cortex-a53 a16 swiglu": 1000})
    lines = kernel_count.fallen(baseline, {"cortex-a53 a16 add": 979, "cortex-a53 a16 swiglu": 981, "new": 1})
    assert lines == ["cortex-a53 a16 add: 1000 instructions before, 979 now (-2.1%): write the baseline anew"]


def test_a_kernel_that_does_more_work_counts_more() -> None:
    """Otherwise the counts could be of anything: 8 columns take between 1.5 and 2 times the instructions of 4."""
    board = load_board("cortex-a53")
    counts = kernel_count.load_baseline().counts
    for kind in ("w4", "w8"):
        four, eight = (counts[kernel_count.count_name(board, 16, f"matmul_{kind}_{n}_columns")] for n in (4, 8))
        assert 1.5 * four < eight <= 2 * four
