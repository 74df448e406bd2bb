"""Cases for quantize_activation, matvec_w4 and matvec_w8 of one group size and activation class."""

from __future__ import annotations

import numpy as np
from kernel_protocol import Array, Case, untouched

from colibri_build.pack import p8
from colibri_build.reference import numbers

BLOCK = numbers.BLOCK_INPUTS
ALL_ROWS = (*range(1, 18), 64, 100)
ALL_COLS = (1, 8, 31, 32, 33, 64, 96, 100, 127, 128, 129, 160, 172, 224, 256, 576, 1408)
SHAPES = sorted(
    {(rows, cols) for rows in ALL_ROWS for cols in (100, 172)}
    | {(rows, cols) for rows in (1, 8, 13) for cols in ALL_COLS}
    | {(64, 576), (100, 1408)}
)


def product_cases(group_size: int, bits: int) -> list[Case]:
    """Everything that depends on the group size and the activation class."""
    maker = ProductMaker(group_size, bits)
    cases = [maker.quantize(name, x) for name, x in _activation_inputs(group_size)]
    for rows, cols in SHAPES:
        cases += [maker.random_product(kind, rows, cols) for kind in ("w4", "w8")]
    cases += [maker.not_finite_input(value) for value in (np.nan, np.inf, -np.inf)]
    cases += maker.extreme_products()
    cases += [maker.split_product(kind, cuts) for kind in ("w4", "w8") for cuts in ((0, 3, 4, 9), (2, 5), (8, 9))]
    cases += [maker.not_finite_product(kind, value) for kind in ("w4", "w8") for value in (np.nan, np.inf, -np.inf)]
    return cases


def _activation_inputs(group_size: int) -> list[tuple[str, Array]]:
    rng = np.random.default_rng(1)
    inputs = [(f"n={n}", spread(rng, n)) for n in ALL_COLS]
    for bits, limit in numbers.ACTIVATION_MAX.items():
        ties = (np.arange(64) - 32).astype(np.float32) * np.float32(0.5)
        ties[0] = limit  # codes are rint(x) in this class
        inputs.append((f"ties of a{bits}", ties))
    inputs.append(("zero", np.zeros(200, np.float32)))
    inputs.append(("denormal", np.full(200, 1e-41, np.float32)))
    for name, value in (
        ("just dead", np.nextafter(np.float32(1e-30), np.float32(0))),
        ("just alive", np.float32(1e-30)),
    ):
        x = np.linspace(-1, 1, 2 * group_size, dtype=np.float32) * np.float32(1e-31)
        x[3] = value
        inputs.append((name, x))
    inputs.append(("largest floats", np.array([3.4028235e38, -3.4028235e38, 1e38, 1.0] * 40, np.float32)))
    constants = np.repeat(np.array([3.5, -3.5], np.float32), 2 * group_size)
    inputs.append(("all at the limit", constants))
    return inputs


def spread(rng: np.random.Generator, n: int) -> Array:
    """Values over many magnitudes, with outliers, zeros, a denormal and (from 64 on) one dead group of 32."""
    x = (rng.standard_normal(n) * np.exp2(rng.integers(-6, 3, n))).astype(np.float32)
    x[rng.random(n) < 0.02] *= 60
    x[::17] = 0.0
    x[n // 2] = 1e-41
    if n >= 64:
        x[32:64] = rng.standard_normal(32).astype(np.float32) * np.float32(1e-39)
    return x


def planes(codes: Array) -> tuple[Array, Array]:
    """The signed bytes of int codes: code = 256*high + low."""
    high = (codes + 128) >> 8
    return high, codes - 256 * high


def exact_product(values: Array, zeros: Array | None, scales: Array, x: numbers.QuantizedActivation) -> Array:
    """y [rows] of weight codes [rows, cols], zero points and fp16 scales [rows, n_groups], as docs/numerics.md says."""
    grouped = numbers.pad_to_groups(values.astype(np.int64), x.codes.shape[1])
    d = np.einsum("rgk,gk->rg", grouped, x.codes.astype(np.int64))
    if zeros is not None:
        d = d - zeros.astype(np.int64) * x.codes.sum(axis=1, dtype=np.int64)
    y = np.zeros(values.shape[0], np.float32)
    with np.errstate(invalid="ignore"):
        for group in range(d.shape[1]):
            y = y + d[:, group].astype(np.float32) * (scales[:, group].astype(np.float32) * x.scales[group])
    return y


class ProductMaker:
    """Builds cases for one configuration; random numbers depend on the case alone."""

    def __init__(self, group_size: int, bits: int) -> None:
        self.group_size = group_size
        self.bits = bits
        self.largest = numbers.ACTIVATION_MAX[bits]

    def activation_buffers(self, x: numbers.QuantizedActivation, cols: int) -> list[Array]:
        """high, low, codes, scales, high_sums, low_sums as quantize_activation leaves them."""
        flat = x.codes.reshape(-1)[: numbers.ceil_div(cols, BLOCK) * BLOCK]
        high, low = planes(x.codes) if self.bits == 16 else (x.codes, np.zeros_like(x.codes))
        trim = flat.size
        buffers = [high.reshape(-1)[:trim].astype(np.int8), low.reshape(-1)[:trim].astype(np.int8)]
        buffers += [flat.astype(np.int16), x.scales.astype(np.float32)]
        buffers += [high.sum(axis=1).astype(np.int16), low.sum(axis=1).astype(np.int16)]
        if self.bits == 8:
            buffers[1] = untouched(trim, np.int8)
            buffers[5] = untouched(x.scales.size, np.int16)
        return buffers

    def quantize(self, name: str, x: Array) -> Case:
        expected = self.activation_buffers(numbers.quantize_activation(x, self.group_size, self.bits), x.size)
        return Case(
            f"quantize_activation {name}",
            "quantize_activation",
            [x, *(untouched(b.size, b.dtype) for b in expected)],
            {index + 1: buffer for index, buffer in enumerate(expected)},
            ints=(x.size,),
            aligned=frozenset(range(1, 7)),
        )

    def product(
        self,
        name: str,
        weights: Array,
        zeros: Array | None,
        scales: Array,
        x: numbers.QuantizedActivation,
        cuts: tuple[int, ...] | None = None,
    ) -> Case:
        """matvec_w4 where there are zero points, else matvec_w8; each range between two cuts is one call."""
        rows, cols = weights.shape
        cuts = cuts or (0, numbers.ceil_div(rows, 8))
        codes = p8.w8_codes_to_bytes(weights) if zeros is None else p8.w4_codes_to_bytes(weights)
        y = untouched(rows, np.float32)
        live = slice(8 * cuts[0], min(8 * cuts[-1], rows))
        expected = y.copy()
        expected[live] = exact_product(weights, zeros, scales, x)[live]
        return Case(
            f"{name} [{rows}, {cols}] panels {cuts}",
            "matvec_w8" if zeros is None else "matvec_w4",
            [
                np.frombuffer(codes, np.uint8),
                np.frombuffer(p8.scales_to_bytes(scales, zeros), np.uint8),
                *self.activation_buffers(x, cols),
                y,
            ],
            {8: expected},
            ints=(rows, cols, len(cuts), *cuts),
            aligned=frozenset({0, 1, *range(2, 8)}),
        )

    def random_weights(self, kind: str, rows: int, cols: int) -> tuple[Array, Array | None, Array]:
        rng = np.random.default_rng((rows, cols))
        groups = numbers.group_count(cols, self.group_size)
        scales = np.exp2(rng.uniform(-12, -2, (rows, groups))).astype(np.float16)
        subnormal = rng.random((rows, groups)) < 0.1
        scales[subnormal] = rng.integers(0, 0x400, int(subnormal.sum())).astype(np.uint16).view(np.float16)
        if kind == "w8":
            return rng.integers(-127, 128, (rows, cols)).astype(np.int8), None, scales
        zeros = rng.integers(0, 16, (rows, groups)).astype(np.uint8)
        return rng.integers(0, 16, (rows, cols)).astype(np.uint8), zeros, scales

    def random_product(self, kind: str, rows: int, cols: int) -> Case:
        x = spread(np.random.default_rng(cols), cols)
        quantized = numbers.quantize_activation(x, self.group_size, self.bits)
        return self.product(f"{kind} random", *self.random_weights(kind, rows, cols), quantized)

    def extreme_products(self) -> list[Case]:
        """Codes at every corner, where int16 sums (w4) and int32 sums (w8) are nearest to their limits."""
        rows, cols = 9, 2 * self.group_size + BLOCK
        groups = numbers.group_count(cols, self.group_size)
        scales = np.full((rows, groups), 1, np.float16)
        corners = [self.largest, -self.largest, 0]
        corners += [127 * 256 - 128, 126 * 256 + 127, -127 * 256 + 127, -128] if self.bits == 16 else [-1]
        cases = []
        for code in corners:
            x = self.constant_activation(code, cols)
            for q in (0, 15):
                for zero in (0, 15):
                    weights = np.full((rows, cols), q, np.uint8)
                    zeros = np.full((rows, groups), zero, np.uint8)
                    cases.append(self.product(f"w4 q={q} z={zero} code={code}", weights, zeros, scales, x))
            for q in (127, -127):
                cases.append(self.product(f"w8 q={q} code={code}", np.full((rows, cols), q, np.int8), None, scales, x))
        return cases

    def constant_activation(self, code: int, cols: int) -> numbers.QuantizedActivation:
        codes = numbers.pad_to_groups(np.full(cols, code, np.int32), self.group_size)
        return numbers.QuantizedActivation(codes, np.full(codes.shape[0], 0.37, np.float32))

    def split_product(self, kind: str, cuts: tuple[int, ...]) -> Case:
        """9 panels (the last with one row) in pieces, as threads take them; rows outside stay as they were."""
        x = numbers.quantize_activation(spread(np.random.default_rng(7), 160), self.group_size, self.bits)
        return self.product(f"{kind} split", *self.random_weights(kind, 65, 160), x, cuts)

    def not_finite_input(self, value: float) -> Case:
        """A value that is not finite must not vanish: its group gets the scale NaN and codes 0."""
        x = spread(np.random.default_rng(3), 3 * self.group_size + 5)
        at = self.group_size + 7
        x[at] = 0
        without = x.copy()
        without[self.group_size : 2 * self.group_size] = 0
        case = self.quantize(f"with {value}", without)
        case.buffers[0][:] = x
        case.buffers[0][at] = value
        case.expected[4][1] = np.nan
        return case

    def not_finite_product(self, kind: str, value: float) -> Case:
        """A group whose scale is NaN (see not_finite_input) makes every row NaN."""
        x = self.constant_activation(0, 3 * self.group_size)
        x.scales[1] = value
        return self.product(f"{kind} {value}", *self.random_weights(kind, 17, 3 * self.group_size), x)
