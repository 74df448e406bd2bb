"""The router in C and in NumPy: a wrong expert or weight makes a model subtly stupid without any error."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from colibri_build.reference.router import choose_top_k, exp2_negative, route

RUNTIME = Path(__file__).parents[2] / "runtime_c"
WARNINGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
NOT_FINITE = -6


def compile_router(folder: Path, n_experts: int, top_k: int, norm_topk: bool) -> ctypes.CDLL:
    config = folder / "model_config.h"
    config.write_text(
        f"#define MODEL_N_EXPERTS {n_experts}\n#define MODEL_TOP_K {top_k}\n#define MODEL_NORM_TOPK {int(norm_topk)}\n",
        encoding="utf-8",
    )
    library = folder / "router.so"
    subprocess.run(
        ["gcc", *WARNINGS, "-ffp-contract=off", "-shared", "-fPIC", f"-I{RUNTIME}", f"-I{RUNTIME}/include", f"-I{folder}",
         str(RUNTIME / "router" / "router.c"), "-o", str(library)],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(library))


class Router:
    """The compiled C router behind the reference's interface."""

    def __init__(self, folder: Path, n_experts: int, top_k: int, norm_topk: bool) -> None:
        self.library = compile_router(folder, n_experts, top_k, norm_topk)

        class Routing(ctypes.Structure):
            _fields_ = (("experts", ctypes.c_int * top_k), ("weights", ctypes.c_float * top_k))

        self.out = Routing()

    def __call__(self, logits: np.ndarray) -> int:
        pointer = np.ascontiguousarray(logits, np.float32).ctypes.data_as(ctypes.c_void_p)
        status: int = self.library.route(pointer, ctypes.byref(self.out))
        return status


SHAPES = [(8, 2), (6, 1), (5, 5), (60, 4), (256, 16), (1, 1)]


def sample_logits(n_experts: int) -> list[np.ndarray]:
    """Spread, close, tied, far apart, denormal."""
    rng = np.random.default_rng(n_experts)
    cases = [rng.standard_normal(n_experts) * scale for scale in (1e-3, 1, 10, 1000) for _ in range(100)]
    cases += [np.round(rng.standard_normal(n_experts)) for _ in range(100)]
    cases += [np.zeros(n_experts), np.full(n_experts, -7.5), np.full(n_experts, 1e-41), np.full(n_experts, 3e38)]
    return [case.astype(np.float32) for case in cases]


@pytest.mark.parametrize("norm_topk", [True, False])
@pytest.mark.parametrize(("n_experts", "top_k"), SHAPES)
def test_c_equals_the_reference(tmp_path: Path, n_experts: int, top_k: int, norm_topk: bool) -> None:
    router = Router(tmp_path, n_experts, top_k, norm_topk)
    for logits in sample_logits(n_experts):
        assert router(logits) == 0
        expected = route(logits, top_k, norm_topk)
        assert tuple(router.out.experts) == expected.experts
        assert np.array(router.out.weights, np.float32).tobytes() == np.array(expected.weights, np.float32).tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_not_finite_is_a_fault_and_not_expert_minus_one(tmp_path: Path, bad: float) -> None:
    router = Router(tmp_path, 8, 2, True)
    for position in range(8):
        logits = np.linspace(-1, 1, 8).astype(np.float32)
        logits[position] = bad
        assert router(logits) == NOT_FINITE


@pytest.mark.parametrize("norm_topk", [True, False])
def test_weights_are_the_softmax_of_binary64(norm_topk: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        logits = (rng.standard_normal(16) * 3).astype(np.float32)
        got = route(logits, 4, norm_topk)
        e = np.exp(logits.astype(np.float64) - logits.max())
        chosen = list(np.argsort(-logits, kind="stable")[:4])
        exact = e[chosen] / (e[chosen].sum() if norm_topk else e.sum())
        assert list(got.experts) == chosen
        assert np.all(np.abs(np.array(got.weights) - exact) <= 1e-5 * exact + 1e-9)


def test_ties_take_the_lower_index() -> None:
    assert choose_top_k(np.array([1, 3, 3, 1, 3], np.float32), 2) == [1, 2]


def test_powers_of_two_are_exact() -> None:
    assert [exp2_negative(n << 20) for n in range(31)] == [1 << (30 - n) for n in range(31)]
    assert exp2_negative(0x7FFFFFFF) == 0
