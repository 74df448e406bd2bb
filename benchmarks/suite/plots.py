"""The plots of the results page, as SVG that is the same for the same figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from suite.figures import middle
from suite.places import RESULTS, Json
from suite.targets import per_token

matplotlib.use("svg")
from matplotlib import pyplot as plt

OURS, PEER = "#1b6ca8", "#b0b0b0"
Bars = list[tuple[str, float]]


def write_plots(results: Json, folder: Path = RESULTS) -> list[str]:
    """Every plot whose figures are there; returns their names."""
    matplotlib.rcParams.update({"svg.hashsalt": "colibri", "font.size": 8, "svg.fonttype": "none"})
    figures = results["figures"]
    found = {
        "decode.svg": ("tokens/s, decoding", _speed(figures, "decode", lambda found: found["engines"])),
        "prefill.svg": ("tokens/s, prompts", _speed(figures, "prefill", lambda found: found)),
        "instructions.svg": ("M instructions a decoded token", _instructions(figures)),
        "startup.svg": ("ms from exec to the first token, warm", _startup(figures)),
        "neighbour.svg": ("p99 with a busy core / quiet median", _neighbour(figures)),
    }
    names = []
    for name, (label, panels) in found.items():
        if panels:
            _draw(panels, label, folder / name)
            names.append(name)
    return names


def _speed(figures: Json, step: str, engines: Any) -> dict[str, Bars]:
    return {
        f"model {letter}, threads: {threads}": [
            (name, middle(runs, "tokens_per_s")) for name, runs in engines(found).items()
        ]
        for letter, by_threads in figures.get(step, {}).items()
        for threads, found in by_threads.items()
    }


def _instructions(figures: Json) -> dict[str, Bars]:
    return {
        f"model {letter}, {cpu}": [(name, per_token(counts)) for name, counts in engines.items()]
        for letter, by_cpu in figures.get("instructions", {}).items()
        for cpu, engines in by_cpu.items()
    }


def _startup(figures: Json) -> dict[str, Bars]:
    return {
        f"model {letter}": [(name, middle(runs, "first_us") / 1000) for name, runs in found["warm"].items()]
        for letter, found in figures.get("startup", {}).items()
    }


def _neighbour(figures: Json) -> dict[str, Bars]:
    return {
        f"model {letter}, threads: {threads}": [
            (name, middle(found["busy"][name], "p99_us") / middle(quiet, "median_us"))
            for name, quiet in found["quiet"].items()
        ]
        for letter, by_threads in figures.get("neighbour", {}).items()
        for threads, found in by_threads.items()
    }


def _draw(panels: dict[str, Bars], label: str, path: Path) -> None:
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 1.7 * rows), squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (title, bars) in zip(axes.flat, panels.items(), strict=False):
        names = [name for name, _ in bars]
        values = [value for _, value in bars]
        colors = [PEER if name.startswith("q4_") else OURS for name in names]
        drawn = axis.barh(names, values, color=colors)
        axis.bar_label(drawn, fmt="%.3g", padding=2)
        axis.invert_yaxis()
        axis.margins(x=0.18)
        axis.set_title(title, fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(label)
    temporary = path.with_name(f".{path.name}.tmp")
    figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    temporary.rename(path)
