"""Matrix products and sums whose bits do not depend on the machine, the BLAS or its threads.

The search of AWQ chooses between candidates by their error. With ordinary floating-point matrix products two machines
would disagree in the last bits of the errors, now and then choose differently, and make different model folders from
the same checkpoint. Here the factors are rounded to integers, few enough bits that every partial sum fits the 53 bits
of binary64: then any order of summation, fused or not, gives the same, exact sum.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from colibri_build.artifacts import ModelConfig

F64 = NDArray[np.float64]

_SIGNIFICAND_BITS = 53
_MOST_BITS = 24  # more than float32 holds
_LEAST_EXPONENT = -900  # keeps the unit of a row of tiny values a normal number
_WIDE = 1 << 20  # weights of a matrix from which the threads of the BLAS pay


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads_for(config: ModelConfig) -> AbstractContextManager[object]:
    """One BLAS thread while a small model is computed.

    The threads of OpenBLAS spin while they wait for one another: on a busy machine that made the search of a model of
    dim 128 eight times slower than one thread.
    """
    if config.dim * max(config.dim, config.hidden_dim) >= _WIDE:
        return nullcontext()
    limit: AbstractContextManager[object] = _controller().limit(limits=1)
    return limit


def one_blas_thread_beside(workers: object) -> AbstractContextManager[object]:
    """One BLAS thread for each of several workers; all of them for one."""
    if getattr(workers, "n_threads", 1) == 1:
        return nullcontext()
    limit: AbstractContextManager[object] = _controller().limit(limits=1)
    return limit


class Fixed(NamedTuple):
    """A matrix [..., rows, k] as integers; the value of a row is its integers times its unit, a power of two."""

    integers: F64  # magnitudes up to 2^bits
    units: F64  # [..., rows, 1]


def fixed(x: NDArray[Any]) -> Fixed:
    """x [..., rows, k] rounded to as many bits of each row's largest value as exact sums over k allow."""
    inner = x.shape[-1]
    bits = min(_MOST_BITS, (_SIGNIFICAND_BITS - max(inner - 1, 1).bit_length()) // 2)
    values = x.astype(np.float64)
    _, exponent = np.frexp(np.max(np.abs(values), axis=-1, keepdims=True))
    shift = bits - np.maximum(exponent, _LEAST_EXPONENT)
    values *= np.ldexp(1.0, shift)
    return Fixed(np.rint(values, out=values), np.ldexp(1.0, -shift))


def matmul_nt(x: NDArray[Any] | Fixed, w: NDArray[Any] | Fixed) -> F64:
    """x [..., n, k] times w [..., m, k] transposed -> [..., n, m].

    Both factors are rounded to at least 19 bits of their row's largest value (k <= 16384), the sums are exact.
    """
    x = x if isinstance(x, Fixed) else fixed(x)
    w = w if isinstance(w, Fixed) else fixed(w)
    product = x.integers @ np.swapaxes(w.integers, -1, -2)
    product *= x.units
    product *= np.swapaxes(w.units, -1, -2)
    return np.asarray(product, np.float64)


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
