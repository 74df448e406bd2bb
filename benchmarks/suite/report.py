"""Writes the results page from results.json and the notes: the same files give the same page."""

from __future__ import annotations

import json
from pathlib import Path

from suite import tables
from suite.places import RESULTS, Json, write_file
from suite.speed import COLD_ROUNDS, NEIGHBOUR_ROUNDS
from suite.targets import UNKNOWN, judge_all

NOTES = "notes.json"  # target -> why it was reached or not, by hand
RESULTS_JSON, RESULTS_MD = "results.json", "results.md"


def write_report(folder: Path = RESULTS) -> None:
    """results.md beside results.json. Raises ValueError for a note on a target that is none."""
    results = json.loads((folder / RESULTS_JSON).read_text())
    path = folder / NOTES
    notes = json.loads(path.read_text()) if path.is_file() else {}
    write_file(folder / RESULTS_MD, page(results, notes))


def page(results: Json, notes: Json) -> str:
    """The whole page, as Markdown."""
    figures = results["figures"]
    lines = [
        "# Results",
        "",
        "Made by `make bench`; what each figure is and how it is measured: [performance](../../docs/performance.md).",
        "",
    ]
    lines += _machine(results)
    lines += ["## Targets", "", *_targets(figures, notes)]
    for title, plot, body in _sections(figures):
        if body:
            lines += [f"## {title}", ""]
            lines += [f"![{title}]({plot})", ""] if plot and plot in results["plots"] else []
            lines += body
    return "\n".join(lines).rstrip() + "\n"


def _machine(results: Json) -> list[str]:
    rows = [[name.replace("_", " "), str(value)] for name, value in sorted(results["machine"].items())]
    rows.append(["rounds", f"{results['rounds']}; cold starts {COLD_ROUNDS}, a busy core {NEIGHBOUR_ROUNDS}"])
    if results["trials"]:
        rows.append(["measured with --quick, a trial and no result", ", ".join(results["trials"])])
    return tables.table(("measured with", ""), rows, numbers=False)


def _targets(figures: Json, notes: Json) -> list[str]:
    verdicts = judge_all(figures)
    unknown = set(notes) - {verdict.name for verdict in verdicts}
    if unknown:
        raise ValueError(f"{NOTES}: no such target: {', '.join(sorted(unknown))}")
    counts = {state: sum(v.state == state for v in verdicts) for state in dict.fromkeys(v.state for v in verdicts)}
    summary = ", ".join(f"{count} {state}" for state, count in counts.items())
    rows = [
        [v.text, v.wanted, v.found, v.state if v.state != UNKNOWN else UNKNOWN, notes.get(v.name, "")] for v in verdicts
    ]
    return [f"{summary}.", "", *tables.table(("target", "wanted", "found", "", "why"), rows, numbers=False)]


def _sections(figures: Json) -> list[tuple[str, str, list[str]]]:
    kernels = figures.get("kernels", {}).get("all")
    tokenizer = figures.get("tokenizer", {}).get("all")
    large = figures.get("large", {}).get("all")
    builder = figures.get("builder", {}).get("all")
    return [
        ("Executed instructions", "instructions.svg", _if(figures, "instructions", tables.instructions)),
        ("Decoding", "decode.svg", _if(figures, "decode", tables.decode)),
        ("Prompts", "prefill.svg", _if(figures, "prefill", tables.prefill)),
        ("Exec to first token", "startup.svg", _if(figures, "startup", tables.startup)),
        ("A busy core beside it", "neighbour.svg", _if(figures, "neighbour", tables.neighbour)),
        ("Page faults of decoding", "", _if(figures, "faults", tables.faults)),
        ("Building", "", _if(figures, "build", tables.build)),
        ("Correctness", "", _if(figures, "correct", tables.correct)),
        ("Stages", "", _if(figures, "stages", tables.stages)),
        ("Kernels", "", tables.text_block(kernels["count"]) + tables.text_block(kernels["cycles"]) if kernels else []),
        ("Tokenizer", "", tables.text_block(tokenizer) if tokenizer else []),
        ("The builder, step by step", "", builder["text"].splitlines() if builder else []),
        ("Import at scale", "", large["text"].splitlines() if large else []),
    ]


def _if(figures: Json, step: str, make: object) -> list[str]:
    assert callable(make)
    lines: list[str] = make(figures) if figures.get(step) else []
    return lines
