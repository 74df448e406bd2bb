"""The figures of a report, against Python's statistics, and against the trace's text read by regular expressions alone."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from colibri_build.report.build import make_report
from colibri_build.report.figures import figures
from colibri_build.report.model import Figures, Report
from colibri_build.trace.read import read_traces
from support.trace_writer import TraceWriter, example, write_memory, write_run


def big() -> TraceWriter:
    writer = example(12, 100)
    write_run(writer, 4, 30, top_k=3, seed=4)
    return writer


@pytest.fixture(scope="module")
def text() -> str:
    return big().text().decode()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("trace") / "trace.bin"
    path.write_bytes(big().binary())
    return make_report(read_traces([path]))


def check(figures: Figures | None, ticks: list[int]) -> None:
    assert figures
    values = [count * 1e6 / 62_500_000 for count in ticks]
    assert figures.count == len(values)
    assert figures.total_us == pytest.approx(sum(values), abs=0.001)
    assert figures.median_us == pytest.approx(statistics.median(values), abs=0.001)
    assert figures.mean_us == pytest.approx(statistics.fmean(values), abs=0.001)
    assert figures.std_us == pytest.approx(statistics.pstdev(values), abs=0.001)
    assert (figures.min_us, figures.max_us) == pytest.approx((min(values), max(values)), abs=0.001)
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert figures.p99_us == pytest.approx(cuts[98], abs=0.001)
    assert sum(figures.histogram.counts) == len(values)
    assert len(figures.histogram.edges_us) == len(figures.histogram.counts) + 1
    edges = figures.histogram.edges_us
    assert list(edges) == sorted(edges)
    lowest = sum(value < edges[1] for value in values)
    assert figures.histogram.counts[0] == lowest


@pytest.mark.parametrize("phase", ["all", "prefill", "decode"])
def test_the_latency_of_tokens_is_that_of_the_records(report: Report, text: str, phase: str) -> None:
    wanted = r"\w+" if phase == "all" else phase
    ticks = [int(n) for n in re.findall(rf"^\[TOKEN\] {wanted} position=\d+ id=\d+: (\d+) ticks", text, re.M)]
    check(report.latency[phase], ticks)


@pytest.mark.parametrize(
    "stage, line",
    [
        ("embedding", "embedding"),
        ("attention", r"layer_\d+ attention"),
        ("router", r"layer_\d+ router"),
        ("experts", r"layer_\d+ experts"),
        ("expert", r"expert_\d+_\d+ FFN"),
        ("head", "head"),
    ],
)
def test_the_latency_of_a_stage_is_that_of_its_records(report: Report, text: str, stage: str, line: str) -> None:
    ticks = [int(n) for n in re.findall(rf"^\[TIME\] {line}: (\d+) ticks", text, re.M)]
    found = next(item for item in report.stages if item.stage == stage)
    check(found.figures, ticks)
    whole = sum(int(n) for n in re.findall(r"^\[TOKEN\].*: (\d+) ticks", text, re.M))
    assert found.share == (None if stage == "expert" else pytest.approx(sum(ticks) / whole, abs=1e-6))


def test_each_layer_has_the_median_of_its_own_stages(report: Report, text: str) -> None:
    assert len(report.layer_stages) == 3 * 4
    for item in report.layer_stages:
        ticks = re.findall(rf"^\[TIME\] layer_{item.layer} {item.stage}: (\d+) ticks", text, re.M)
        assert item.count == len(ticks)
        assert item.median_us == pytest.approx(statistics.median(map(int, ticks)) * 0.016, abs=0.001)


def test_the_shares_of_a_token_add_up_to_all_of_it(report: Report) -> None:
    assert sum(stage.share for stage in report.stages if stage.share is not None) == pytest.approx(1, abs=1e-5)


def test_the_use_of_the_experts_is_that_of_the_lines(report: Report, text: str) -> None:
    tokens: Counter[tuple[int, int]] = Counter()
    weights: defaultdict[tuple[int, int], float] = defaultdict(float)
    pairs: Counter[tuple[int, int, int]] = Counter()
    decisions: Counter[int] = Counter()
    for layer, ids, scores in re.findall(r"^\[ROUTING\] layer=(\d+), top_k=\[(.*)\], scores=\[(.*)\]", text, re.M):
        chosen = [int(word) for word in ids.split(",")]
        decisions[int(layer)] += 1
        for expert, score in zip(chosen, scores.split(","), strict=True):
            tokens[int(layer), expert] += 1
            weights[int(layer), expert] += float(score)
        pairs.update((int(layer), a, b) for a, b in combinations(sorted(chosen), 2))
    assert len(report.experts) == 32 and report.model.top_k == 3
    for use in report.experts:
        key = use.layer, use.expert
        assert use.tokens == tokens[key]
        assert use.share == pytest.approx(tokens[key] / decisions[use.layer], abs=1e-6)
        assert use.mean_weight == pytest.approx(weights[key] / tokens[key] if tokens[key] else 0, abs=6e-4)
    assert {(pair.layer, pair.a, pair.b): pair.tokens for pair in report.pairs} == dict(pairs)
    for pair in report.pairs:
        by_chance = tokens[pair.layer, pair.a] / decisions[pair.layer] * tokens[pair.layer, pair.b]
        assert pair.lift == pytest.approx(pair.tokens / by_chance, abs=6e-4)
    assert [layer.decisions for layer in report.layers] == [decisions[layer] for layer in range(4)]


def test_each_expert_has_the_median_of_its_own_times(report: Report, text: str) -> None:
    for use in report.experts:
        lines = re.findall(rf"^\[TIME\] expert_{use.layer}_{use.expert} FFN: (\d+) ticks", text, re.M)
        expected = statistics.median(map(int, lines)) * 0.016 if lines else None
        assert use.median_us == (None if expected is None else pytest.approx(expected, abs=0.001))


def test_effective_experts_are_all_if_used_alike_and_one_if_always_the_same(tmp_path: Path) -> None:
    writer = TraceWriter(layers=2)
    writer.info()
    for position in range(16):
        writer.routing(0, [position % 8], [1.0])
        writer.routing(1, [3], [1.0])
        writer.token("decode", position, 1, None)
    path = tmp_path / "t.log"
    path.write_bytes(writer.text())
    made = make_report(read_traces([path]))
    assert [layer.effective_experts for layer in made.layers] == [8.0, 1.0]
    assert made.latency == {"all": None, "prefill": None, "decode": None} and made.stages == ()


def test_the_memory_map_is_by_address_with_its_gaps(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.info()
    write_memory(writer, gap=4096)
    writer.memory(3, 7, 0x1000, 100)  # said again after a restart: the last word counts
    writer.token("decode", 0, 1, None)
    path = tmp_path / "t.bin"
    path.write_bytes(writer.binary())
    memory = make_report(read_traces([path])).memory
    assert memory and len(memory.experts) == 32
    assert (memory.experts[0].layer, memory.experts[0].expert, memory.experts[0].address) == (3, 7, 0x1000)
    addresses = [expert.address for expert in memory.experts]
    assert addresses == sorted(addresses)
    assert [hole.bytes for hole in memory.holes[1:]] == [4096] * 3
    assert memory.total_bytes == 31 * 1245184 + 100


def test_durations_over_two_decades_are_shown_on_a_logarithmic_scale() -> None:
    narrow, wide = figures([10.0, 11.0, 19.0]), figures([1.0, 2.0, 4.0, 900.0])
    assert narrow and wide
    assert (narrow.histogram.scale, wide.histogram.scale) == ("linear", "log")
    edges = wide.histogram.edges_us
    assert edges[1] / edges[0] == pytest.approx(edges[-1] / edges[-2], rel=0.01)
