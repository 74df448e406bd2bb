"""Matrix products and sums whose bits do not depend on the machine, the BLAS or its threads.

The search of AWQ chooses between candidates by their error. With ordinary floating-point matrix products two machines
would disagree in the last bits of the errors, now and then choose differently, and make different model folders from
the same checkpoint. Here the factors are rounded to integers, few enough bits that every partial sum fits the 53 bits
of binary64: then any order of summation, fused or not, gives the same, exact sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_SIGNIFICAND_BITS = 53
_MOST_BITS = 24  # more than float32 holds
_LEAST_EXPONENT = -900  # keeps the unit of a row of tiny values a normal number


def _to_integers(x: NDArray[Any], bits: int) -> tuple[F64, F64]:
    """Rows (last axis) as integers of magnitude <= 2^bits, and the unit of each row, a power of two [..., 1]."""
    values = x.astype(np.float64)
    _, exponent = np.frexp(np.max(np.abs(values), axis=-1, keepdims=True))
    unit = np.ldexp(1.0, np.maximum(exponent, _LEAST_EXPONENT) - bits)
    return np.rint(values / unit), unit


def matmul_nt(x: NDArray[Any], w: NDArray[Any]) -> F64:
    """x [..., n, k] times w [..., m, k] transposed -> [..., n, m].

    Both factors are rounded to at least 19 bits of their row's largest value (k <= 16384), the sums are exact.
    """
    inner = x.shape[-1]
    bits = min(_MOST_BITS, (_SIGNIFICAND_BITS - max(inner - 1, 1).bit_length()) // 2)
    x_int, x_unit = _to_integers(x, bits)
    w_int, w_unit = _to_integers(w, bits)
    product = x_int @ np.swapaxes(w_int, -1, -2)
    return np.asarray(product * (x_unit * np.swapaxes(w_unit, -1, -2)), np.float64)


def tree_sum(x: NDArray[Any], axis: int = -1) -> F64:
    """Sum over one axis in binary64, halving: term i meets term i + n//2; an odd last term waits."""
    terms = np.moveaxis(x, axis, 0).astype(np.float64)
    if not len(terms):
        return np.zeros(terms.shape[1:], np.float64)
    while len(terms) > 1:
        half = len(terms) // 2
        rest = terms[2 * half :]
        terms = terms[:half] + terms[half : 2 * half]
        if len(rest):
            terms = np.concatenate([terms, rest])
    return np.asarray(terms[0], np.float64)


def total(x: NDArray[Any]) -> float:
    """Tree sum over all elements."""
    return float(tree_sum(x.ravel()))
