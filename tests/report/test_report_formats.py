"""JSON, Markdown and Perfetto: what other programs read. JSON is checked against the schema of docs/reports.md by hand."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Run, error_line, runner
from support.trace_writer import TraceWriter, example, frame, write_run

FIGURES = {"count", "total_us", "mean_us", "median_us", "p99_us", "min_us", "max_us", "std_us", "histogram"}
TOP = {
    "format", "version", "is_whole", "model", "build", "clock_hz", "has_starts", "sources", "records", "losses", "runs",
    "latency", "stages", "layer_stages", "layers", "experts", "pairs", "memory", "tokens", "comparison",
}  # fmt: skip
LOSSES = {
    "dropped_records", "bad_frames", "partial_records", "gaps", "lost_frames", "malformed_frames", "unknown_records",
    "malformed_lines", "missing_tokens", "incomplete_tokens", "cut_tokens",
}  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    writer = example(5, 40)
    write_run(writer, 3, 10, seed=2)
    path = tmp_path / "trace.bin"
    path.write_bytes(writer.binary())
    return path


def test_json_has_the_documented_keys_and_sums_that_agree(run: Run, trace: Path) -> None:
    code, out, err = run("report", trace, "--format", "json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert set(report) == TOP and set(report["losses"]) == LOSSES
    assert (report["format"], report["version"], report["is_whole"]) == ("colibri-trace-report", 1, True)
    assert set(report["latency"]) == {"all", "prefill", "decode"}
    for figures in [*report["latency"].values(), *(stage["figures"] for stage in report["stages"])]:
        assert set(figures) == FIGURES
    assert [run["tokens"] for run in report["runs"]] == [45, 13]
    assert len(report["tokens"]) == report["latency"]["all"]["count"] == report["records"]["TOKEN"] == 58
    assert sum(token["us"] for token in report["tokens"]) == pytest.approx(
        report["latency"]["all"]["total_us"], abs=0.1
    )
    assert sum(use["tokens"] for use in report["experts"]) == 58 * 4 * 2
    assert report["sources"][0]["encoding"] == "binary" and report["comparison"] is None


def test_every_documented_key_is_in_the_document(run: Run, trace: Path) -> None:
    document = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    _, out, _ = run("report", trace, "--format", "json", "--compare", trace)

    def names(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list) else set()

    report = json.loads(out)
    records = set(report.pop("records"))
    missing = {name for name in names(report) | records if f"`{name}`" not in document}
    assert not missing


@pytest.mark.parametrize("form", ["html", "json", "md", "perfetto"])
def test_the_same_trace_gives_the_same_bytes(run: Run, trace: Path, tmp_path: Path, form: str) -> None:
    results = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        copy = folder / trace.name
        copy.write_bytes(trace.read_bytes())
        assert run("report", copy, "-o", folder / "out", "--format", form, "--compare", trace)[0] == 0
        results.append((folder / "out").read_bytes())
    assert results[0] == results[1]


def test_markdown_says_what_is_lost_before_any_figure(run: Run, tmp_path: Path) -> None:
    frames = [frame(body) for body in example(5, 20).bodies()]
    path = tmp_path / "lossy.bin"
    path.write_bytes(b"".join(frames[:6] + frames[8:])[:-9])
    code, out, err = run("report", path, "--format", "md")
    assert code == 0
    assert re.search(r"\*\*The trace is not whole: 1 partial record, 1 gap, 2 lost frames", out)
    assert out.index("not whole") < out.index("## Latency")
    assert err.startswith("note: lossy.bin is not whole: ")
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert all(line.count("|") == rows[0].count("|") for line in rows[:2])


def test_perfetto_gets_tracks_with_names_and_slices_that_do_not_overlap(run: Run, trace: Path) -> None:
    _, out, _ = run("report", trace, "--format", "perfetto")
    events = json.loads(out)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    processes = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert processes == ["run 0 (trace.bin)", "run 1 (trace.bin)"]
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert {"pid", "tid", "ts", "dur", "name", "cat", "args"} == set(event) - {"ph"}
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert set(tracks) == set(names)
    assert {"tokens", "attention", "router", "experts", "head", "embedding", "expert 7"} <= set(names.values())
    for slices in tracks.values():
        slices.sort()
        assert all(before[1] <= after[0] + 0.002 for before, after in pairwise(slices))
    of_tokens = [e for e in events if e.get("cat") == "token"]
    assert len(of_tokens) == 58
    within = {(e["pid"], e["ts"]): e["dur"] for e in of_tokens}
    assert sum(within.values()) == pytest.approx(max(end for slices in tracks.values() for _, end in slices), abs=0.1)


def test_perfetto_keeps_the_experts_of_several_threads_within_their_block(run: Run, tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.info()
    for layer in range(4):
        writer.time("expert", layer, 1, 1000 * layer, 1500)  # two threads: more than the block's 800 together
        writer.time("expert", layer, 2, 1000 * layer, 100)
        writer.time("experts", layer, 0, 1000 * layer, 800)
    writer.token("decode", 0, 1, 4000)
    path = tmp_path / "threads.bin"
    path.write_bytes(writer.binary())
    _, out, _ = run("report", path, "--format", "perfetto")
    slices = [e for e in json.loads(out)["traceEvents"] if e.get("cat") == "expert"]
    assert [(e["ts"], e["dur"], e["args"]["ticks"]) for e in slices[:2]] == [(0.0, 12.0, 1500), (12.0, 0.8, 100)]


def test_a_comparison_names_the_first_difference_and_the_slower_stage(run: Run, tmp_path: Path) -> None:
    this, other = tmp_path / "this.bin", tmp_path / "other.log"
    this.write_bytes(example(5, 40, slow=1.5).binary())
    writer = example(5, 40)
    lines = writer.text().decode().splitlines()
    at = [index for index, line in enumerate(lines) if line.startswith("[ROUTING] layer=2")][9]
    found = re.search(r"top_k=\[(\d),(\d)\]", lines[at])
    assert found
    lines[at] = lines[at].replace(found[0], f"top_k=[{found[2]},{found[1]}]")
    later = next(index for index, line in enumerate(lines) if index > at and line.startswith("[ROUTING] layer=0"))
    lines[later] = re.sub(r"top_k=\[(\d),(\d)\]", r"top_k=[\2,\1]", lines[later])
    other.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _, out, _ = run("report", this, "--compare", other, "--format", "json")
    comparison = json.loads(out)["comparison"]
    assert (comparison["compared_tokens"], comparison["different_tokens"]) == (45, 0)
    assert (comparison["compared_decisions"], comparison["different_decisions"]) == (180, 2)
    first = comparison["first_decision"]
    assert (first["run"], first["position"], first["layer"]) == (0, 9, 2)
    assert first["this"] == first["other"][::-1] == [int(found[1]), int(found[2])]
    change = {item["what"]: item["change"] for item in comparison["changes"]}
    assert change["attention"] == pytest.approx(0.5, abs=0.01) and abs(change["head"]) < 0.01
    assert all(item["divergence_bits"] == 0 for item in comparison["divergences"])
    _, page, _ = run("report", this, "--compare", other, "--format", "md")
    assert "2 of 180 routing decisions differ, first at run 0, position 9, layer 2" in page


def test_experts_without_one_in_common_diverge_by_one_bit(run: Run, tmp_path: Path) -> None:
    for name, expert in (("a", 1), ("b", 5)):
        writer = TraceWriter(layers=1)
        writer.info()
        writer.routing(0, [expert], [1.0])
        writer.token("decode", 0, 7, None)
        (tmp_path / name).write_bytes(writer.binary())
    _, out, _ = run("report", tmp_path / "a", "--compare", tmp_path / "b", "--format", "json")
    assert json.loads(out)["comparison"]["divergences"][0]["divergence_bits"] == 1


def test_bad_input_is_one_line_and_writes_nothing(run: Run, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    empty, other = tmp_path / "empty.bin", tmp_path / "other.bin"
    empty.write_bytes(b"")
    writer = TraceWriter(model="00112233aabbccdd")
    write_run(writer)
    other.write_bytes(writer.binary())
    for arguments, words in (
        ([empty], "empty.bin is empty"),
        ([tmp_path / "none"], "No such file"),
        ([tmp_path], "Is a directory"),
        ([trace, other], "other.bin is of model 00112233aabbccdd, trace.bin of model 2f6c0a5de1b94c77"),
        ([trace, "--compare", other], "trace.bin is of model 2f6c0a5de1b94c77, other.bin of model 00112233aabbccdd"),
        ([trace, "--build", tmp_path], "holds no finished build"),
        ([trace, "--first-token", "58"], "there is no token 58: the trace has tokens 0 to 57"),
    ):
        code, _, err = run("report", *arguments, "-o", out)
        assert code == 2 and words in error_line(err) and not out.exists()


def test_a_page_goes_to_report_html_unless_told_otherwise(
    run: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace.parent)
    code, out, _ = run("report", trace.name)
    assert code == 0 and out.startswith("report.html  ")
    assert (trace.parent / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    run("report", trace.name, "-o", "r.md")
    assert (trace.parent / "r.md").read_text(encoding="utf-8").startswith("# Trace report")
