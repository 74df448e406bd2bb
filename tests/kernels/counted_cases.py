"""One case for every kernel, of a size that its instructions are counted with (benchmarks/kernel_count.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from column_cases import ColumnMaker
from kernel_protocol import Case
from product_cases import spread
from vector_cases import attention, elementwise, float_products

GROUP_SIZE = 128
ROWS, COLS = 512, 1024  # of a matrix
FLOAT_ROWS = 128  # of f32 and f16 matrices: larger ones do not fit into the harness
LENGTH = 1024  # of a vector
HEAD_DIM, POSITIONS = 64, 512
COLUMN_COUNTS = (4, 8)
WEIGHT_BYTES = {"matvec_w4": 0.5, "matvec_w8": 1.0, "matvec_f16": 2.0, "matvec_f32": 4.0}  # of one weight


@dataclass(frozen=True)
class Counted:
    """A case, and what its count is divided by: `amount` of `unit`."""

    kernel: str
    case: Case
    amount: float
    unit: str


def counted_cases(bits: int) -> list[Counted]:
    """What depends on the activation class; in the a16 class, which is the default, all other kernels as well."""
    return _products(bits) + (_others() if bits == 16 else [])


def _products(bits: int) -> list[Counted]:
    maker = ColumnMaker(GROUP_SIZE, bits)
    x = spread(np.random.default_rng(1), COLS)
    cases = [Counted("quantize_activation", maker.quantize("counted", x), COLS, "input")]
    for kind in ("w4", "w8"):
        n_bytes = ROWS * COLS * WEIGHT_BYTES[f"matvec_{kind}"]
        cases.append(Counted(f"matvec_{kind}", maker.random_product(kind, ROWS, COLS), n_bytes, "weight byte"))
        for n in COLUMN_COUNTS:
            case = maker.random(kind, ROWS, COLS, n)
            cases.append(Counted(f"matmul_{kind}_{n}_columns", case, n_bytes * n, "weight byte and column"))
    return cases


def _others() -> list[Counted]:
    rng = np.random.default_rng(2)
    cases = [Counted(case.operation, case, LENGTH, "element") for case in elementwise(rng, LENGTH)]
    for case in float_products(rng, FLOAT_ROWS, COLS, (0, FLOAT_ROWS)):
        cases.append(Counted(case.operation, case, FLOAT_ROWS * COLS * WEIGHT_BYTES[case.operation], "weight byte"))
    for case in attention(rng, HEAD_DIM, POSITIONS):
        cases.append(Counted(case.operation, case, HEAD_DIM * POSITIONS * 2, "cache byte"))
    return cases
