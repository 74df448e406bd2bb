"""The targets, and whether the figures reach them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import StatisticsError, median
from typing import Any

from suite.figures import best, further_faults, middle, paired, spread
from suite.places import Json

BUILT_FOR = ("x86-64-v3", "cortex-a53")  # by build_speed.py
OVER_THE_CACHE = "attention over the cache"  # a stage
PRODUCTS = ("matrices", "matrix")  # ends of the names of stages that are products
REACHED, MISSED, UNKNOWN = "reached", "not reached", "not measured"
Figures = Json  # step -> model -> what the step measured


@dataclass(frozen=True)
class Target:
    """`figure` finds a number in the figures, KeyError where it was not measured; `limit` is what it has to be.

    `compare` is operator.le, .ge, .lt or .eq; `digits` are shown after the point.
    """

    name: str
    text: str
    limit: float
    compare: Callable[[Any, Any], Any]
    figure: Callable[[Figures], float]
    digits: int = 2


@dataclass(frozen=True)
class Verdict:
    """A judged target."""

    name: str
    text: str
    wanted: str
    found: str
    state: str  # REACHED, MISSED or UNKNOWN


SIGNS = {operator.le: "at most", operator.ge: "at least", operator.lt: "under", operator.eq: "exactly"}


def judge(target: Target, figures: Figures) -> Verdict:
    """Compare; whatever is missing is not measured, never reached."""
    wanted = f"{SIGNS[target.compare]} {target.limit:g}"
    try:
        found = target.figure(figures)
    except (KeyError, IndexError, StatisticsError, ZeroDivisionError):
        return Verdict(target.name, target.text, wanted, "", UNKNOWN)
    state = REACHED if target.compare(found, target.limit) else MISSED
    return Verdict(target.name, target.text, wanted, f"{found:.{target.digits}f}", state)


def peer_names(rows: Json) -> list[str]:
    """llama.cpp's among the engines of a table."""
    return [name for name in rows if name.startswith("q4_")]


def _gemv(kernel: str, f: Figures) -> float:
    return float(f["kernels"]["all"]["count"]["figures"][kernel])


def per_token(counts: Json) -> float:
    """Millions of instructions of a decoded token, the median: llama.cpp's first one also plans its graph."""
    return float(median(counts["tokens"][0])) / 1e6


def _token(cpu: str, engine: str, f: Figures) -> float:
    return per_token(f["instructions"]["a"][cpu][engine])


def _decode(model: str, threads: str, ours: str, f: Figures) -> float:
    rows = f["decode"][model][threads]["engines"]
    return paired(rows, "tokens_per_s", ours, best(rows, "tokens_per_s", peer_names(rows))).median


def _two_against_one(rows: Callable[[str], Sequence[Json]]) -> float:
    """Two threads against one, round by round; `rows` gets "1" or "2"."""
    return paired({threads: rows(threads) for threads in "12"}, "tokens_per_s", "2", "1").median


def _scaling(model: str, ours: str, f: Figures) -> float:
    return _two_against_one(lambda threads: f["decode"][model][threads]["engines"][ours])


def _prefill(ours: str, f: Figures) -> float:
    rows = f["prefill"]["a"]["1"]
    return paired(rows, "tokens_per_s", ours, best(rows, "tokens_per_s", peer_names(rows))).median


def _first_ms(f: Figures) -> float:
    return middle(f["startup"]["a"]["warm"]["a16"], "first_us") / 1000


def _first_ratio(kind: str, f: Figures) -> float:
    rows = f["startup"]["a"]["warm"]
    members = [name for name in peer_names(rows) if name.endswith(kind)]
    return paired(rows, "first_us", "a16", best(rows, "first_us", members, least=True)).median


def _binary_bytes(f: Figures) -> float:
    return float(f["build"]["a"]["a16"]["binary_bytes"])


def _memory_of_binary(f: Figures) -> float:
    return middle(f["decode"]["a"]["1"]["engines"]["a16"], "peak_bytes") / _binary_bytes(f)


def _memory_prefaulted(f: Figures) -> float:
    return float(f["faults"]["a"]["a16 prefaulted"]["peak_bytes"]) / _binary_bytes(f)


def _memory_ratio(f: Figures) -> float:
    rows = f["decode"]["a"]["1"]["engines"]
    fastest = best(rows, "tokens_per_s", peer_names(rows))
    return middle(rows["a16"], "peak_bytes") / middle(rows[fastest], "peak_bytes")


def _stages(cpu: str, f: Figures) -> dict[str, float]:
    """Percent of a decoded token's instructions by stage, of model a at context 512."""
    for found in f["stages"]["all"][f"a {cpu} a16"]["figures"]:
        if found["point"].startswith("decode"):
            return {stage: float(of["percent"]) for stage, of in found["stages"].items()}
    raise KeyError("decode")


def _attention(cpu: str, f: Figures) -> float:
    return _stages(cpu, f)[OVER_THE_CACHE]


def _rest(cpu: str, f: Figures) -> float:
    """The largest stage that is neither a product of matrices nor attention over the cache."""
    stages = _stages(cpu, f)
    return max(of for stage, of in stages.items() if stage != OVER_THE_CACHE and not stage.endswith(PRODUCTS))


def _busy(threads: str, f: Figures) -> float:
    found = f["neighbour"]["a"][threads]
    return middle(found["busy"]["a16"], "p99_us") / middle(found["quiet"]["a16"], "median_us")


def _busy_scaling(ours: str, f: Figures) -> float:
    return _two_against_one(lambda threads: f["neighbour"]["a"][threads]["busy"][ours])


def _faults(f: Figures) -> float:
    return float(max(f["faults"]["a"]["a16 prefaulted"]["faults"]))


def _default_faults(f: Figures) -> float:
    return further_faults(f["faults"]["a"]["a16"])


def _spread(cpu: str, f: Figures) -> float:
    return spread(f["instructions"]["a"][cpu]["a16"]["tokens"]) * 100


def _builder(step: str, name: str, f: Figures) -> float:
    """A figure of build_speed.py. Raises KeyError for a step that is not there."""
    rows = {row["step"]: row for row in f["builder"]["all"]["figures"]["rows"]}
    return float(rows[step][name])


def _slowest_rebuild(f: Figures) -> float:
    return max(_builder(f"rebuild for {board}, nothing changed", "seconds", f) for board in BUILT_FOR)


def _largest_tensors(f: Figures) -> float:
    """What quantizing allocates, in sizes of build_speed.py's largest tensor (32000 x 512) as f32."""
    return _builder("quantize (rtn)", "held_bytes", f) / (32000 * 512 * 4)


def _gemv_targets() -> list[Target]:
    x86, a53, a72 = "x86-64-v3", "cortex-a53", "tda4vm"
    limits = {(x86, 16): 0.50, (a53, 16): 1.05, (a72, 16): 1.05, (x86, 8): 0.33, (a53, 8): 0.53, (a72, 8): 0.53}
    return [
        Target(
            f"gemv-{cpu}-a{bits}",
            f"4-bit product, instructions a weight byte, {cpu}, a{bits}",
            limit,
            operator.le,
            partial(_gemv, f"{cpu} a{bits} matvec_w4"),
            3,
        )
        for (cpu, bits), limit in limits.items()
    ]


def _token_targets() -> list[Target]:
    limits = {("x86-64-v3", 16): 64, ("cortex-a53", 16): 132, ("x86-64-v3", 8): 44, ("cortex-a53", 8): 70}
    return [
        Target(
            f"token-{cpu}-a{bits}",
            f"millions of instructions a token, model a, {cpu}, a{bits}",
            limit,
            operator.le,
            partial(_token, cpu, f"a{bits}"),
            1,
        )
        for (cpu, bits), limit in limits.items()
    ]


def _decode_targets() -> list[Target]:
    limits = {("a16", "1"): 1.5, ("a16", "2"): 1.25, ("a8", "1"): 1.7, ("a8", "2"): 1.3}
    return [
        Target(
            f"decode-{model}-{ours}-{threads}",
            f"decoding against llama.cpp's better configuration, model {model}, {ours}, threads: {threads}",
            limit,
            operator.ge,
            partial(_decode, model, threads, ours),
        )
        for model in "ab"
        for (ours, threads), limit in limits.items()
    ]


TARGETS = (
    *_gemv_targets(),
    *_token_targets(),
    *_decode_targets(),
    *(
        Target(
            f"scaling-{ours}",
            f"two threads against one, model a, {ours}",
            1.8,
            operator.ge,
            partial(_scaling, "a", ours),
        )
        for ours in ("a16", "a8")
    ),
    Target(
        "prefill-a16",
        "prompts against llama.cpp's better, model a, a16, one thread",
        1.1,
        operator.ge,
        partial(_prefill, "a16"),
    ),
    Target(
        "prefill-a8",
        "prompts against llama.cpp's better, model a, a8, one thread",
        1.6,
        operator.ge,
        partial(_prefill, "a8"),
    ),
    Target("first-token", "exec to first token, model a, a16, warm, ms", 45, operator.le, _first_ms, 1),
    Target(
        "first-token-stored",
        "the same against llama.cpp without repacking",
        0.45,
        operator.le,
        partial(_first_ratio, "as stored"),
    ),
    Target(
        "first-token-repacked",
        "the same against llama.cpp with repacking",
        0.16,
        operator.le,
        partial(_first_ratio, "repacked"),
    ),
    Target("memory-binary", "resident set against the binary's size, model a", 1.05, operator.le, _memory_of_binary, 3),
    Target("memory-prefaulted", "the same with --prefault", 1.05, operator.le, _memory_prefaulted, 3),
    Target(
        "memory-peer",
        "resident set against llama.cpp's fastest configuration, model a",
        0.55,
        operator.le,
        _memory_ratio,
    ),
    *(
        Target(
            f"attention-{cpu}",
            f"attention over the cache at context 512, % of a token's instructions, model a, {cpu}, a16",
            10,
            operator.le,
            partial(_attention, cpu),
            1,
        )
        for cpu in ("x86-64-v3", "cortex-a53")
    ),
    *(
        Target(
            f"rest-{cpu}",
            f"the largest stage but products and attention, % of the same, {cpu}, a16",
            5,
            operator.le,
            partial(_rest, cpu),
            1,
        )
        for cpu in ("x86-64-v3", "cortex-a53")
    ),
    *(
        Target(
            f"busy-{n}",
            f"p99 with a busy core against the quiet median, model a, a16, threads: {n}",
            3,
            operator.lt,
            partial(_busy, n),
        )
        for n in "12"
    ),
    *(
        Target(
            f"two-threads-{model}-{ours}",
            f"two threads against one, model {model}, {ours}",
            1,
            operator.ge,
            partial(_scaling, model, ours),
        )
        for model in "bcd"
        for ours in ("a16", "a8")
    ),
    *(
        Target(
            f"two-threads-busy-{ours}",
            f"two threads against one, one core busy, model a, {ours}",
            1,
            operator.ge,
            partial(_busy_scaling, ours),
        )
        for ours in ("a16", "a8")
    ),
    Target("faults-default", "page faults of each further token, model a, a16", 0, operator.eq, _default_faults),
    Target("faults", "page faults while decoding, model a, a16 --prefault", 0, operator.eq, _faults, 0),
    *(
        Target(
            f"spread-{cpu}",
            f"spread of instructions a token at equal length, %, model a, {cpu}",
            0.1,
            operator.lt,
            partial(_spread, cpu),
            4,
        )
        for cpu in ("x86-64-v3", "cortex-a53")
    ),
    *(
        Target(
            f"build-{board}",
            f"build of 121 MB after quantization, seconds, {board}",
            10,
            operator.lt,
            partial(_builder, f"build for {board}", "seconds"),
            1,
        )
        for board in BUILT_FOR
    ),
    Target(
        "rebuild",
        "the same with nothing changed, seconds, the slower board",
        1,
        operator.lt,
        _slowest_rebuild,
    ),
    Target(
        "quantize-memory",
        "memory that quantizing allocates, in largest tensors as f32 (the file's are bf16, half as large)",
        3,
        operator.le,
        _largest_tensors,
    ),
)


def judge_all(figures: Figures) -> list[Verdict]:
    """Every target, in the order of the page."""
    return [judge(target, figures) for target in TARGETS]
