"""Cases for what does not depend on the group size: element-wise, float products, attention, math/scalar.h."""

from __future__ import annotations

import numpy as np
from kernel_protocol import Array, Case, untouched

from colibri_build.reference import numbers

LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 172, 576)
HEAD_DIMS = (2, 4, 6, 8, 10, 16, 24, 32, 34, 40, 64, 72, 80, 96, 100, 128)
POSITIONS = (1, 2, 3, 4, 5, 7, 8, 9, 33)
ALL_HALVES = np.arange(65536, dtype=np.uint16)


def vector_cases() -> list[Case]:
    """All of them."""
    rng = np.random.default_rng(5)
    cases: list[Case] = []
    for n in LENGTHS:
        cases += elementwise(rng, n)
    for cols in (*LENGTHS, 1408):
        cases += float_products(rng, 5, cols, (0, 5))
    cases += float_products(rng, 17, 100, (0, 3, 4, 11, 17)) + float_products(rng, 17, 33, (2, 9))
    for head_dim in HEAD_DIMS:
        cases += attention(rng, head_dim, 6)
    for n in POSITIONS:
        cases += attention(rng, 64, n) + attention(rng, 10, n)
    cases += [_maximum_at(n, at) for n in (1, 7, 8, 9, 23) for at in range(n)]
    cases += [_exp_shifted("exp over its range", exp_inputs(), 0.0, 1.0), *_silu_extremes()]
    cases += [*_narrowing(), _widening()]
    cases += _not_finite()
    return cases + _scalar()


def _values(rng: np.random.Generator, n: int) -> Array:
    return (rng.standard_normal(n) * np.exp2(rng.integers(-4, 4, n))).astype(np.float32)


def _halves(rng: np.random.Generator, n: int) -> Array:
    """fp16 of ordinary size, one in ten subnormal."""
    halves = _values(rng, n).astype(np.float16)
    subnormal = rng.random(n) < 0.1
    halves[subnormal] = rng.integers(0, 0x400, int(subnormal.sum())).astype(np.uint16).view(np.float16)
    return halves


def elementwise(rng: np.random.Generator, n: int) -> list[Case]:
    x, y, w = (_values(rng, n) for _ in range(3))
    eps, weight = 1e-5, float(np.float32(0.3))
    normed = numbers.rms_norm(x, w, eps)
    swiglu = numbers.silu(x) * y
    return [
        Case(f"rms_norm n={n}", "rms_norm", [x, w, untouched(n, "f4")], {2: normed}, (n,), (eps,)),
        Case(f"rms_norm in place n={n}", "rms_norm_in_place", [x, w], {0: normed}, (n,), (eps,)),
        Case(f"swiglu n={n}", "swiglu", [x, y], {0: swiglu}, (n,)),
        Case(f"add_scaled n={n}", "add_scaled", [y, x], {0: y + np.float32(weight) * x}, (n,), (weight,)),
        Case(f"add n={n}", "add", [y, x], {0: y + x}, (n,)),
        Case(f"maximum n={n}", "maximum", [x], {}, (n,), result=float(x.max())),
        _exp_shifted(f"exp_shifted n={n}", x, float(x.max()), 0.77),
        Case(f"to_f16 n={n}", "to_f16", [x, untouched(n, "f2")], {1: x.astype(np.float16)}, (n,)),
    ]


def _maximum_at(n: int, at: int) -> Case:
    """All numbers negative, so that a lane of zeros would win; the largest one at each place."""
    x = np.full(n, -2.0, np.float32)
    x[at] = -0.5
    return Case(f"maximum at {at} of {n}", "maximum", [x], {}, (n,), result=-0.5)


def _exp_shifted(name: str, x: Array, largest: float, factor: float) -> Case:
    with np.errstate(over="ignore"):
        shifted = (x - np.float32(largest)) * np.float32(factor)
        e = numbers.exp(shifted)
        total = float(numbers.lane_sum(e))
    return Case(name, "exp_shifted", [x], {0: e}, (x.size,), (largest, factor), result=total)


def exp_inputs() -> Array:
    """Dense over [-90, 90], each side of both clamps, and the ends of the float range. No NaN."""
    clamps = np.array([-87, 88], np.float32)
    around = [np.nextafter(clamps, np.float32(side)) for side in (-1000, 1000)]
    tiny = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-38, -1e-38], np.float32)
    huge = np.array([3.4028235e38, -3.4028235e38, 1e30, -1e30, 709, -745, np.inf, -np.inf], np.float32)
    dense = np.linspace(-90, 90, 120_001, dtype=np.float32)
    bits = np.random.default_rng(6).integers(0, 0x7F800000, 40_000).astype(np.uint32).view(np.float32)
    return np.concatenate([clamps, *around, tiny, huge, dense, bits, -bits])


def _silu_extremes() -> list[Case]:
    x = exp_inputs()[:60_000]
    x = x[np.isfinite(x)]
    one = np.ones_like(x)
    return [Case("swiglu over its range", "swiglu", [x, one], {0: numbers.silu(x) * one}, (x.size,))]


def float_products(rng: np.random.Generator, rows: int, cols: int, cuts: tuple[int, ...]) -> list[Case]:
    """Rows outside the cuts stay as they were; every range between two cuts is one call."""
    x = _values(rng, cols)
    cases = []
    for name, weights in (("f32", _values(rng, rows * cols)), ("f16", _halves(rng, rows * cols))):
        y = untouched(rows, "f4")
        expected = y.copy()
        live = slice(cuts[0], cuts[-1])
        expected[live] = numbers.dot(weights.reshape(rows, cols).astype(np.float32), x)[live]
        ints = (rows, cols, len(cuts), *cuts)
        cases.append(Case(f"matvec_{name} {ints}", f"matvec_{name}", [weights, x, y], {2: expected}, ints))
    return cases


def attention(rng: np.random.Generator, head_dim: int, n: int) -> list[Case]:
    q, cache = _values(rng, head_dim), _halves(rng, n * head_dim)
    wide = cache.astype(np.float32).reshape(n, head_dim)
    scale = float(np.float32(1 / np.sqrt(head_dim)))
    weights = rng.random(n).astype(np.float32)
    total = numbers.lane_sum(weights)
    mixed = np.zeros(head_dim, np.float32)
    for p in range(n):
        mixed = mixed + weights[p] * wide[p]
    ints = (head_dim, n)
    scores = numbers.dot(wide, q) * np.float32(scale)
    return [
        Case(
            f"attention_scores {ints}", "attention_scores", [q, cache, untouched(n, "f4")], {2: scores}, ints, (scale,)
        ),
        Case(
            f"attention_mix {ints}",
            "attention_mix",
            [weights, cache, untouched(head_dim, "f4")],
            {2: mixed / total},
            ints,
            (float(total),),
        ),
    ]


def rounding_inputs() -> Array:
    """Every finite fp16 value, the midpoints to the next one and their neighbours; then ends of the float range."""
    exact = ALL_HALVES.view(np.float16).astype(np.float32)
    exact = exact[np.isfinite(exact) & (exact >= 0)]
    middle = (exact[:-1] + exact[1:]) / np.float32(2)
    tiny = np.array([1e-45, 1e-38, 2.9802322e-8, 2.9802326e-8, 65519.996], np.float32)
    positive = np.concatenate(
        [exact, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, exact[1:]), tiny]
    )
    return np.concatenate([positive, -positive])


OVERFLOWING = (65520.0, -65520.0, 3.4028235e38, np.inf, -np.inf, np.nan)


def _narrowing() -> list[Case]:
    x = rounding_inputs()
    cases = [Case("to_f16 rounding", "to_f16", [x, untouched(x.size, "f2")], {1: x.astype(np.float16)}, (x.size,))]
    for value in OVERFLOWING:
        for at in (0, 5, 7, 8, 10):
            x = np.linspace(-1, 1, 11, dtype=np.float32)
            x[at] = value
            with np.errstate(over="ignore"):
                halves = x.astype(np.float16)
            name = f"to_f16 {value} at {at}"
            cases.append(Case(name, "to_f16", [x, untouched(11, "f2")], {1: halves}, (11,), status=-1))
    return cases


def _widening() -> Case:
    """Every fp16 value as a matrix of 8 columns of which one counts."""
    rows = ALL_HALVES.size // 8
    weights = ALL_HALVES.view(np.float16)
    rng = np.random.default_rng(8)
    x = _values(rng, 8)
    with np.errstate(invalid="ignore"):
        y = numbers.dot(weights.reshape(rows, 8).astype(np.float32), x)
    return Case(
        "matvec_f16 all values", "matvec_f16", [weights, x, untouched(rows, "f4")], {2: y}, (rows, 8, 2, 0, rows)
    )


def _not_finite() -> list[Case]:
    """NaN must reach the results, or a broken model would run on; n = 11 puts it into a tail as well."""
    cases = []
    nan = float("nan")
    all_nan = np.full(11, np.nan, np.float32)
    for at in (0, 10):
        x, y = np.linspace(-2, 2, 11, dtype=np.float32), np.ones(11, np.float32)
        x[at] = nan
        halves = np.ones(22, np.float16)
        mixed = np.ones(11, np.float32) * np.float32(2)
        mixed[at] = nan
        halves[at] = np.nan
        e = numbers.exp(x)
        cases += [
            Case(f"rms_norm NaN at {at}", "rms_norm", [x, y, untouched(11, "f4")], {2: all_nan}, (11,), (1e-5,)),
            Case(f"swiglu NaN at {at}", "swiglu", [x, y], {0: numbers.silu(x) * y}, (11,)),
            Case(f"add NaN at {at}", "add", [y, x], {0: y + x}, (11,)),
            Case(f"exp_shifted NaN at {at}", "exp_shifted", [x], {0: e}, (11,), (0.0, 1.0), result=nan),
            Case(
                f"matvec_f32 NaN at {at}",
                "matvec_f32",
                [y, x, untouched(1, "f4")],
                {2: all_nan[:1]},
                (1, 11, 2, 0, 1),
            ),
            Case(
                f"attention_mix NaN at {at}",
                "attention_mix",
                [y[:2], halves, untouched(11, "f4")],
                {2: mixed},
                (11, 2),
                (1.0,),
            ),
        ]
    return cases


def _scalar() -> list[Case]:
    """math/scalar.h, which model/ and router/ use as well."""
    halves, wide = ALL_HALVES.view(np.float16), ALL_HALVES.view(np.float16).astype(np.float32)
    with np.errstate(over="ignore"):
        x = np.concatenate([rounding_inputs(), np.array(OVERFLOWING, np.float32)])
        narrow = x.astype(np.float16)
    e = exp_inputs()
    angles = np.concatenate(
        [np.linspace(-40, 40, 20_001), np.float32(np.geomspace(1e-6, 9e5, 20_001)).astype(np.float64)]
    )
    sine, cosine = numbers.sincos(angles)
    integers = np.concatenate(
        [np.linspace(-40_000, 40_000, 30_001, dtype=np.float32), np.arange(-64, 65) / np.float32(2)]
    )
    positive = np.abs(exp_inputs())
    finite = np.array([0.0, -1.5, 3.4028235e38, 1e-45, np.inf, -np.inf, np.nan], np.float32)
    silu = exp_inputs()[:60_000]
    silu = silu[np.isfinite(silu)]

    def case(name: str, which: int, given: Array, *expected: Array) -> Case:
        outputs = [untouched(want.size, want.dtype) for want in expected]
        return Case(name, "scalar", [given, *outputs], dict(enumerate(expected, 1)), (given.size, which))

    return [
        case("f16_to_f32", 0, halves, wide),
        case("f32_to_f16", 1, x, narrow),
        case("exp_f32", 2, e, numbers.exp(e)),
        case("silu_f32", 3, silu, numbers.silu(silu)),
        case("sincos_f32", 4, angles, sine, cosine),
        case("round_to_int", 5, integers.astype(np.float32), np.rint(integers).astype(np.int32)),
        case("square_root", 6, positive, np.sqrt(positive)),
        case("exp_f32 of NaN", 2, np.array([np.nan], np.float32), np.array([np.nan], np.float32)),
        case("is_finite", 7, finite, np.isfinite(finite).astype(np.int32)),
    ]
