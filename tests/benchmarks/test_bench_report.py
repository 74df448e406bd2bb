"""The verdicts and the page: a target that was missed or not measured must never read as reached."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from typing import Any

import pytest
from suite import report, targets
from suite.targets import MISSED, REACHED, UNKNOWN, Target, judge

ISSUE_KINDS = (
    "gemv",
    "token",
    "decode",
    "scaling",
    "prefill",
    "first",
    "memory",
    "attention",
    "rest",
    "busy",
    "two-threads",
    "faults",
    "spread",
    "build",
    "rebuild",
    "quantize",
)


def runs(speed: float, **others: float) -> list[dict[str, float]]:
    return [{"tokens_per_s": speed, "median_us": 1e6 / speed, "p99_us": 1e6 / speed, "std_us": 1.0, **others}] * 3


def engines(a16: float, peer: float) -> dict[str, Any]:
    memory = {"peak_bytes": 100.0 * 2**20, "max_us": 9.0}
    return {
        "a16": runs(a16, **memory),
        "q4_0 repacked": runs(peer, **memory),
        "q4_k_m as stored": runs(peer / 2, **memory),
    }


@pytest.fixture
def results() -> dict[str, Any]:
    found = {"engines": engines(30, 20), "bandwidth": [1e9, 2e9], "weight_bytes": dict.fromkeys(engines(1, 1), 10**7)}
    return {
        "machine": {"cpu": "a CPU", "cores": 2},
        "rounds": 3,
        "trials": [],
        "plots": ["decode.svg"],
        "figures": {"decode": {"a": {"1": found}}},
    }


@pytest.mark.parametrize(
    "compare, found, state",
    [
        (operator.le, 45.0, REACHED),
        (operator.le, 45.01, MISSED),
        (operator.lt, 45.0, MISSED),
        (operator.ge, 44.99, MISSED),
        (operator.ge, 45.0, REACHED),
        (operator.eq, 46.0, MISSED),
    ],
)
def test_a_verdict_is_on_the_unrounded_figure(compare: Any, found: float, state: str) -> None:
    target = Target("t", "text", 45, compare, lambda figures: found, digits=0)
    assert judge(target, {}).state == state


def test_what_was_not_measured_is_not_reached() -> None:
    """An empty results file must not look like a success."""
    assert {verdict.state for verdict in targets.judge_all({})} == {UNKNOWN}


def test_every_kind_of_target_is_on_the_page() -> None:
    names = [target.name for target in targets.TARGETS]
    assert len(set(names)) == len(names)
    for kind in ISSUE_KINDS:
        assert any(name.startswith(kind) for name in names), kind


def test_decoding_is_judged_against_the_better_peer(results: dict[str, Any]) -> None:
    """30 against 20 and 10 tokens a second is 1.5, not 3."""
    verdicts = {verdict.name: verdict for verdict in targets.judge_all(results["figures"])}
    assert (verdicts["decode-a-a16-1"].found, verdicts["decode-a-a16-1"].state) == ("1.50", REACHED)
    results["figures"]["decode"]["a"]["1"]["engines"] = engines(29, 20)
    assert {v.name: v.state for v in targets.judge_all(results["figures"])}["decode-a-a16-1"] == MISSED


def test_the_page_says_why(results: dict[str, Any]) -> None:
    page = report.page(results, {"decode-a-a16-1": "both read the same bytes"})
    row = next(line for line in page.splitlines() if "better configuration, model a, a16, threads: 1" in line)
    assert row.endswith("| at least 1.5 | 1.50 | reached | both read the same bytes |")
    assert "| a, a16 | 1 | 30.0 | 1.50 (1.50-1.50) | 15 |" in page


def test_a_note_on_no_target_is_refused(results: dict[str, Any]) -> None:
    """A renamed target would lose its reason silently."""
    with pytest.raises(ValueError, match="decode-a-a17"):
        report.page(results, {"decode-a-a17": "?"})


def test_the_page_depends_on_its_files_alone(results: dict[str, Any], tmp_path: Path) -> None:
    """Two people with the same results.json must see the same page."""
    (tmp_path / "results.json").write_text(json.dumps(results))
    report.write_report(tmp_path)
    first = (tmp_path / "results.md").read_bytes()
    (tmp_path / "results.json").write_text(json.dumps(results, sort_keys=True))
    report.write_report(tmp_path)
    assert (tmp_path / "results.md").read_bytes() == first


def test_a_trial_is_called_one(results: dict[str, Any]) -> None:
    assert "no result" not in report.page(results, {})
    results["trials"] = ["decode a"]
    assert "| measured with --quick, a trial and no result | decode a |" in report.page(results, {})


@pytest.mark.parametrize("percent, state", [(9.5, REACHED), (10.5, MISSED)])
def test_attention_is_that_of_decoding(percent: float, state: str) -> None:
    """Not of the prompts, whose shares differ; products are no rest that should be vectorised."""
    shares = {"attention over the cache": percent, "expert matrices": 70.0, "head matrix": 10.0, "rotary": 4.0}
    stages = {name: {"percent": of} for name, of in shares.items()}
    points = [{"point": "prompt of 512", "stages": {}}, {"point": "decode at 512", "stages": stages}]
    found = {"stages": {"all": {"a cortex-a53 a16": {"figures": points}}}}
    verdicts = {verdict.name: verdict for verdict in targets.judge_all(found)}
    assert verdicts["attention-cortex-a53"].state == state
    assert verdicts["rest-cortex-a53"].found == "4.0"
