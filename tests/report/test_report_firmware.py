"""Traces of a real firmware: what the report says is what its text trace says to a few regular expressions."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import builds
from support.command_line import Run, error_line, runner
from support.trace_writer import example

PROMPT = ("--prompt", "turn the window on", "--max-tokens", "12", "--threads", "2")


@dataclass(frozen=True)
class Recorded:
    """A finished build, its console with the text trace in it, and the binary trace of the same prompt."""

    build: Path
    board: str
    log: Path
    binary: Path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("firmware")
    result = builds.build_tiny(folder, builds.quick_board(folder), debug=("memory", "routing", "timing"))
    log, binary = folder / "console.log", folder / "trace.bin"
    log.write_text(builds.run(result, *PROMPT, "--trace", "text").stderr, encoding="utf-8")
    with binary.open("wb") as stream:  # records lie between other text, as on a console
        command = [str(result.firmware.elf), *PROMPT, "--trace", "binary"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=stream, timeout=60, check=True)
    return Recorded(result.out, result.board.name, log, binary)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


def report(run: Run, *arguments: object) -> dict[str, Any]:
    code, out, err = run("report", *arguments, "--format", "json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_report_of_a_console_is_what_its_lines_say(run: Run, recorded: Recorded) -> None:
    text = recorded.log.read_text(encoding="utf-8")
    found = report(run, recorded.log)
    assert found["is_whole"] and found["sources"][0]["encoding"] == "text"
    uses: Counter[tuple[int, int]] = Counter()
    for layer, chosen in re.findall(r"^\[ROUTING\] layer=(\d+), top_k=\[([\d,]+)\]", text, re.M):
        uses.update((int(layer), int(expert)) for expert in chosen.split(","))
    assert {(e["layer"], e["expert"]): e["tokens"] for e in found["experts"] if e["tokens"]} == dict(uses)
    assert found["records"]["TOKEN"] == len(re.findall(r"^\[TOKEN\]", text, re.M)) > 12
    assert found["records"]["TIME"] == len(re.findall(r"^\[TIME\]", text, re.M))
    for phase in ("prefill", "decode"):
        spent = [int(n) for n in re.findall(rf"^\[TOKEN\] {phase} .*: (\d+) ticks", text, re.M)]
        assert found["latency"][phase]["count"] == len(spent)
        assert found["latency"][phase]["max_us"] == pytest.approx(max(spent) * 1e6 / found["clock_hz"], abs=0.001)
    places = re.findall(r"^\[MEMORY\] expert_(\d+)_(\d+) @ 0x([0-9a-f]+) \(size=(\d+)\)", text, re.M)
    assert len(places) == len(found["memory"]["experts"])
    assert sum(int(size) for *_, size in places) == found["memory"]["total_bytes"]


def test_both_encodings_of_one_prompt_have_the_same_tokens_and_choices(run: Run, recorded: Recorded) -> None:
    found = report(run, recorded.binary, "--compare", recorded.log)
    assert found["sources"][0]["encoding"] == "binary" and found["has_starts"]
    comparison = found["comparison"]
    assert comparison["compared_tokens"] == found["records"]["TOKEN"]
    assert (comparison["different_tokens"], comparison["different_decisions"]) == (0, 0)
    assert comparison["compared_decisions"] == found["records"]["TOKEN"] * found["model"]["n_layers"]


def test_the_stages_of_a_token_lie_within_it(run: Run, recorded: Recorded) -> None:
    _, out, _ = run("report", recorded.binary, "--format", "perfetto")
    events = [event for event in json.loads(out)["traceEvents"] if event["ph"] == "X"]
    tokens = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["cat"] == "token"]
    for event in events:
        end = event["ts"] + event["dur"]
        assert any(first - 0.01 <= event["ts"] and end <= last + 0.01 for first, last in tokens), event


def test_the_build_names_its_board_and_the_text_of_the_tokens(run: Run, recorded: Recorded, tmp_path: Path) -> None:
    build = report(run, recorded.binary, "--build", recorded.build)["build"]
    assert build["board"] == recorded.board and build["context"] > 0 and "token_texts" not in build
    page = tmp_path / "page.html"
    assert run("report", recorded.binary, "--build", recorded.build, "-o", page)[0] == 0
    data = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    assert data
    texts = json.loads(data[1])["texts"]
    ids = [token["id"] for token in report(run, recorded.binary)["tokens"]]
    assert "window" in "".join(texts[str(number)] for number in ids)


def test_a_trace_of_another_model_is_refused_with_both_digests(run: Run, recorded: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "foreign.bin"
    path.write_bytes(example(2, 2).binary())
    digest = json.loads((recorded.build / "build.json").read_bytes())["model"][:16]
    code, _, err = run("report", path, "--build", recorded.build)
    assert code == 2
    assert f"foreign.bin is of model 2f6c0a5de1b94c77, the build {recorded.build} of model {digest}" in error_line(err)
