"""Cases for matmul_w4 and matmul_w8: every column has to get the product that a matrix-vector product would give."""

from __future__ import annotations

import numpy as np
from kernel_protocol import Array, Case, untouched
from product_cases import BLOCK, ProductMaker, exact_product, spread

from colibri_build.pack import p8
from colibri_build.reference import numbers

KINDS = ("w4", "w8")
COLUMN_COUNTS = (*range(1, 10), 16, 17, 33)
MAX_VECTORS = 3  # columns beyond that repeat a vector
# Tails in rows and inputs; one that is longer than what is done with one layout of the inputs.
SHAPES = ((1, 32), (7, 1), (8, 128), (9, 96), (17, 576), (64, 160), (100, 172), (530, 33))


def column_cases(group_size: int, bits: int) -> list[Case]:
    """Everything about products with several columns that depends on the group size and the activation class."""
    maker = ColumnMaker(group_size, bits)
    cases = [maker.random(kind, 13, 172, n) for kind in KINDS for n in COLUMN_COUNTS]
    cases += [maker.random(kind, *shape, n) for kind in KINDS for shape in SHAPES for n in (2, 5)]
    cases += [maker.random(kind, 65, 160, 3, cuts) for kind in KINDS for cuts in ((0, 4, 9), (2, 5), (8, 9))]
    cases += maker.extremes()
    return cases + [maker.one_column_not_finite(kind) for kind in KINDS]


class ColumnMaker(ProductMaker):
    """Builds cases of several columns for one configuration."""

    def columns(
        self,
        name: str,
        weights: tuple[Array, Array | None, Array],
        vectors: list[numbers.QuantizedActivation],
        n_columns: int,
        cuts: tuple[int, ...] | None = None,
    ) -> Case:
        """Column c multiplies vector c mod their number; weights: codes, zero points (w8: None) and scales."""
        codes, zeros, scales = weights
        rows, cols = codes.shape
        cuts = cuts or (0, numbers.ceil_div(rows, 8))
        packed = p8.w8_codes_to_bytes(codes) if zeros is None else p8.w4_codes_to_bytes(codes)
        buffers = [np.frombuffer(part, np.uint8) for part in (packed, p8.scales_to_bytes(scales, zeros))]
        for x in vectors:
            buffers += self.activation_buffers(x, cols)
        n_inputs = len(buffers)
        live = slice(8 * cuts[0], min(8 * cuts[-1], rows))
        products = [exact_product(codes, zeros, scales, x) for x in vectors]
        expected = {}
        for column in range(n_columns):
            y = untouched(rows, np.float32)
            buffers.append(y)
            expected[n_inputs + column] = y.copy()
            expected[n_inputs + column][live] = products[column % len(vectors)][live]
        return Case(
            f"{name} [{rows}, {cols}] x {n_columns} panels {cuts}",
            "matmul_w8" if zeros is None else "matmul_w4",
            buffers,
            expected,
            ints=(rows, cols, n_columns, len(vectors), len(cuts), *cuts),
            aligned=frozenset(range(n_inputs)),
        )

    def random(self, kind: str, rows: int, cols: int, n_columns: int, cuts: tuple[int, ...] | None = None) -> Case:
        rng = np.random.default_rng((rows, cols, n_columns))
        vectors = [
            numbers.quantize_activation(spread(rng, cols), self.group_size, self.bits)
            for _ in range(min(n_columns, MAX_VECTORS))
        ]
        return self.columns(f"{kind} random", self.random_weights(kind, rows, cols), vectors, n_columns, cuts)

    def extremes(self) -> list[Case]:
        """Weights at both ends with inputs at every corner side by side: no sum may spill into another column."""
        rows, cols = 9, 2 * self.group_size + BLOCK
        groups = numbers.group_count(cols, self.group_size)
        scales = np.full((rows, groups), 1, np.float16)
        corners = (self.largest, -self.largest, 127 * 256 - 128 if self.bits == 16 else -1)
        vectors = [self.constant_activation(code, cols) for code in corners]
        cases = []
        for q, zero in ((15, 0), (15, 15), (0, 15)):
            weights = np.full((rows, cols), q, np.uint8), np.full((rows, groups), zero, np.uint8), scales
            cases.append(self.columns(f"w4 q={q} z={zero}", weights, vectors, 4))
        for q in (127, -127):
            cases.append(self.columns(f"w8 q={q}", (np.full((rows, cols), q, np.int8), None, scales), vectors, 4))
        return cases

    def one_column_not_finite(self, kind: str) -> Case:
        """A column with a group whose scale is NaN is NaN; the others must not be."""
        cols = 3 * self.group_size
        vectors = [self.constant_activation(code, cols) for code in (1, 0, -1)]
        vectors[1].scales[1] = np.nan
        return self.columns(f"{kind} NaN", self.random_weights(kind, 17, cols), vectors, 6)
