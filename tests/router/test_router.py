"""The router in C and in NumPy: a wrong expert or weight makes a model subtly stupid without any error."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri_build.artifacts import GroupScore, ModelConfig, Scoring
from colibri_build.reference.router import choose_top_k, exp2_negative, route
from support.tiny_quantized import AWKWARD_CONFIG

RUNTIME = Path(__file__).parents[2] / "runtime_c"
WARNINGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
NOT_FINITE = -6


def compile_router(folder: Path, config: ModelConfig) -> ctypes.CDLL:
    values = {
        "N_EXPERTS": config.n_experts,
        "TOP_K": config.top_k,
        "NORM_TOPK": int(config.norm_topk),
        "HAS_EXPERTS": 1,
    }
    if config.scoring is Scoring.SIGMOID:
        values["SCORING_SIGMOID"] = 1
    if config.scoring is Scoring.SPARSEMIXER:
        values |= {"SCORING_SPARSEMIXER": 1, "ROUTER_THRESHOLD": f"{float(np.float32(2 * config.router_jitter))!r}f"}
    if config.selection_bias:
        values["SELECTION_BIAS"] = 1
    if config.top_groups < config.n_groups:
        values |= {"N_GROUPS": config.n_groups, "TOP_GROUPS": config.top_groups}
        values |= {"GROUP_BEST_TWO": 1} if config.group_score is GroupScore.BEST_TWO else {}
    lines = [f"#define MODEL_{name} {value}\n" for name, value in values.items()]
    if config.routed_scale != 1.0:
        lines.append(f"#define MODEL_ROUTED_SCALE {config.routed_scale}f\n")
    (folder / "model_config.h").write_text("".join(lines), encoding="utf-8")
    library = folder / "router.so"
    subprocess.run(
        ["gcc", *WARNINGS, "-ffp-contract=off", "-shared", "-fPIC", f"-I{RUNTIME}", f"-I{RUNTIME}/include", f"-I{folder}",
         *map(str, sorted((RUNTIME / "router").glob("*.c"))), "-o", str(library)],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(library))


class Router:
    """The compiled C router behind the reference's interface."""

    def __init__(self, folder: Path, config: ModelConfig) -> None:
        self.library = compile_router(folder, config)
        top_k = config.top_k

        class Routing(ctypes.Structure):
            _fields_ = (("experts", ctypes.c_int * top_k), ("weights", ctypes.c_float * top_k))

        self.out = Routing()

    def __call__(self, logits: np.ndarray, bias: np.ndarray | None = None) -> int:
        pointer = np.ascontiguousarray(logits, np.float32).ctypes.data_as(ctypes.c_void_p)
        biases = None if bias is None else bias.ctypes.data_as(ctypes.c_void_p)
        status: int = self.library.route(pointer, biases, ctypes.byref(self.out))
        return status


def router_config(n_experts: int, top_k: int, norm_topk: bool, **fields: Any) -> ModelConfig:
    """A configuration of which only the router matters."""
    return replace(AWKWARD_CONFIG, n_experts=n_experts, top_k=top_k, norm_topk=norm_topk, **fields)


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
    router = Router(tmp_path, router_config(n_experts, top_k, norm_topk))
    for logits in sample_logits(n_experts):
        assert router(logits) == 0
        expected = route(logits, router_config(n_experts, top_k, norm_topk))
        assert tuple(router.out.experts) == expected.experts
        assert np.array(router.out.weights, np.float32).tobytes() == np.array(expected.weights, np.float32).tobytes()


KINDS: dict[str, dict[str, Any]] = {
    "sigmoid": {"scoring": Scoring.SIGMOID},
    "sigmoid-bias": {"scoring": Scoring.SIGMOID, "selection_bias": True},
    "sigmoid-groups-two": {
        "scoring": Scoring.SIGMOID, "selection_bias": True, "n_groups": 4, "top_groups": 2,
        "group_score": GroupScore.BEST_TWO, "routed_scale": 2.5,
    },
    "softmax-groups-max": {"n_groups": 4, "top_groups": 2, "routed_scale": 16.0},
}  # fmt: skip


@pytest.mark.parametrize("norm_topk", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_router_equals_the_reference(tmp_path: Path, kind: str, norm_topk: bool) -> None:
    config = router_config(12, 3, norm_topk, **KINDS[kind])
    router = Router(tmp_path, config)
    bias = np.random.default_rng(1).standard_normal(12).astype(np.float32) if config.selection_bias else None
    for logits in sample_logits(12):
        assert router(logits, bias) == 0
        expected = route(logits, config, bias)
        assert tuple(router.out.experts) == expected.experts
        assert np.array(router.out.weights, np.float32).tobytes() == np.array(expected.weights, np.float32).tobytes()


@pytest.mark.parametrize(("n_experts", "jitter"), [(12, 0.01), (16, 0.4), (2, 0.0)])
def test_the_sparse_mixer_equals_the_reference(tmp_path: Path, n_experts: int, jitter: float) -> None:
    config = router_config(n_experts, 2, False, scoring=Scoring.SPARSEMIXER, router_jitter=jitter)
    router = Router(tmp_path, config)
    shared = 0
    for logits in sample_logits(n_experts):
        assert router(logits) == 0
        with np.errstate(over="ignore"):
            expected = route(logits, config)
        assert tuple(router.out.experts) == expected.experts
        assert np.array(router.out.weights, np.float32).tobytes() == np.array(expected.weights, np.float32).tobytes()
        shared += expected.weights != (1.0, 1.0)
    assert shared > 10 or n_experts == 2, "experts that come close are never seen"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_not_finite_is_a_fault_and_not_expert_minus_one(tmp_path: Path, bad: float) -> None:
    router = Router(tmp_path, router_config(8, 2, True))
    for position in range(8):
        logits = np.linspace(-1, 1, 8).astype(np.float32)
        logits[position] = bad
        assert router(logits) == NOT_FINITE


@pytest.mark.parametrize("norm_topk", [True, False])
def test_weights_are_the_softmax_of_binary64(norm_topk: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        logits = (rng.standard_normal(16) * 3).astype(np.float32)
        got = route(logits, router_config(len(logits), 4, norm_topk))
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
