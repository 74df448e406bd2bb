"""The tables of the results page, from the raw figures alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from suite.figures import Ratio, best, further_faults, middle, paired, spread
from suite.places import Json
from suite.targets import peer_names, per_token

MIB = 2**20
KINDS = ("as stored", "repacked")  # llama.cpp's ways to load


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> list[str]:
    """Markdown; the first column is text, and the others, too, unless they are numbers."""
    lines = [f"| {' | '.join(header)} |", f"| --- |{(' ---: |' if numbers else ' --- |') * (len(header) - 1)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def ratio_text(ratio: Ratio) -> str:
    """1.52 (1.49-1.55)."""
    return f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def ours_of(rows: Json) -> list[str]:
    """Our engines among those of a table."""
    return [name for name in rows if not name.startswith("q4_")]


def decode(figures: Json) -> list[str]:
    """Tokens a second, paired ratios, part of the read bandwidth, latency."""
    header = (
        "model, engine",
        "threads",
        "tokens/s",
        "ratio to llama.cpp's better",
        "read bandwidth, %",
        "median ms",
        "p99 ms",
        "std ms",
        "RSS MiB",
    )
    rows = []
    for letter, by_threads in figures.get("decode", {}).items():
        for threads, found in by_threads.items():
            engines = found["engines"]
            peers = peer_names(engines)
            better = best(engines, "tokens_per_s", peers) if peers else ""
            for name, runs in engines.items():
                rows.append(_decode_row(letter, name, threads, found, runs, better))
    return table(header, rows)


def _decode_row(letter: str, name: str, threads: str, found: Json, runs: Sequence[Json], better: str) -> list[str]:
    speed = middle(runs, "tokens_per_s")
    against = (
        ratio_text(paired(found["engines"], "tokens_per_s", name, better))
        if better and name != better
        else "(the better)"
    )
    part = 100 * speed * found["weight_bytes"][name] / max(found["bandwidth"])
    times = [f"{middle(runs, key) / 1000:.2f}" for key in ("median_us", "p99_us", "std_us")]
    return [
        f"{letter}, {name}",
        threads,
        f"{speed:.1f}",
        against,
        f"{part:.0f}",
        *times,
        f"{middle(runs, 'peak_bytes') / MIB:.0f}",
    ]


def prefill(figures: Json) -> list[str]:
    """Tokens of a prompt a second, paired ratios."""
    rows = []
    for letter, by_threads in figures.get("prefill", {}).items():
        for threads, engines in by_threads.items():
            peers = peer_names(engines)
            better = best(engines, "tokens_per_s", peers) if peers else ""
            for name, runs in engines.items():
                against = (
                    ratio_text(paired(engines, "tokens_per_s", name, better))
                    if better and name != better
                    else "(the better)"
                )
                rows.append([f"{letter}, {name}", threads, f"{middle(runs, 'tokens_per_s'):.0f}", against])
    return table(("model, engine", "threads", "tokens/s", "ratio to llama.cpp's better"), rows)


def instructions(figures: Json) -> list[str]:
    """Executed instructions a token and a weight byte."""
    header = (
        "model, engine",
        "CPU",
        "decoded token, M",
        "a weight byte",
        "prompt's token, M",
        "spread at equal length, %",
    )
    rows = []
    for letter, by_cpu in figures.get("instructions", {}).items():
        for cpu, engines in by_cpu.items():
            for name, counts in engines.items():
                millions = per_token(counts)
                equal = f"{100 * spread(counts['tokens']):.4f}" if len(counts["tokens"]) > 1 else ""
                byte = millions * 1e6 / counts["weight_bytes"]
                prompt = f"{counts['prompt'] / 1e6:.3f}" if "prompt" in counts else ""
                rows.append([f"{letter}, {name}", cpu, f"{millions:.3f}", f"{byte:.3f}", prompt, equal])
    return table(header, rows)


def startup(figures: Json) -> list[str]:
    """From exec to the first token."""
    rows = []
    for letter, found in figures.get("startup", {}).items():
        peers = {kind: [name for name in peer_names(found["warm"]) if name.endswith(kind)] for kind in KINDS}
        better = [best(found["warm"], "first_us", names, least=True) for names in peers.values() if names]
        for name, warm in found["warm"].items():
            cold = found["cold"][name]
            numbers = [f"{middle(runs, 'first_us') / 1000:.1f}" for runs in (warm, cold)]
            ratios = [ratio_text(paired(found["warm"], "first_us", name, other)) for other in better]
            rows.append([f"{letter}, {name}", *numbers, *ratios])
    return table(("model, engine", "warm ms", "cold ms", *(f"warm against {kind}" for kind in KINDS)), rows)


def faults(figures: Json) -> list[str]:
    """Page faults of decoding."""
    rows = []
    for letter, engines in figures.get("faults", {}).items():
        for name, row in engines.items():
            rows.append(
                [
                    f"{letter}, {name}",
                    *(f"{n} in {of}" for n, of in zip(row["faults"], row["tokens"], strict=True)),
                    f"{further_faults(row):.3f}",
                ]
            )
    return table(("model, engine", "faults in tokens", "faults in tokens", "each further token"), rows)


def neighbour(figures: Json) -> list[str]:
    """Latency beside a busy core."""
    rows = []
    for letter, by_threads in figures.get("neighbour", {}).items():
        for threads, found in by_threads.items():
            for name, quiet in found["quiet"].items():
                busy = found["busy"][name]
                median = middle(quiet, "median_us")
                numbers = [
                    middle(busy, "median_us"),
                    middle(busy, "p99_us"),
                    middle(busy, "max_us"),
                    middle(busy, "std_us"),
                ]
                ratio = f"{numbers[1] / median:.1f}"
                speeds = [f"{middle(runs, 'tokens_per_s'):.1f}" for runs in (quiet, busy)]
                rows.append(
                    [
                        f"{letter}, {name}",
                        threads,
                        f"{median / 1000:.2f}",
                        *(f"{n / 1000:.2f}" for n in numbers),
                        ratio,
                        *speeds,
                    ]
                )
    header = (
        "model, engine",
        "threads",
        "quiet median ms",
        "busy median",
        "busy p99",
        "busy maximum",
        "busy std",
        "p99 / quiet median",
        "quiet tokens/s",
        "busy tokens/s",
    )
    return table(header, rows)


def build(figures: Json) -> list[str]:
    """Time and memory of quantizing and building, sizes."""
    header = ("model, engine", "quantize s", "MiB", "build s", "MiB", "unchanged s", "weights MiB", ".text KiB")
    rows = []
    for letter, engines in figures.get("build", {}).items():
        for name, cost in engines.items():
            build_parts = ["", "", ""]
            if "build_s" in cost:
                build_parts = [
                    f"{cost['build_s']:.1f}",
                    f"{cost['build_peak_bytes'] / MIB:.0f}",
                    f"{cost['rebuild_s']:.1f}",
                ]
            size = cost.get("binary_bytes", cost.get("file_bytes", 0))
            quantize = [f"{cost['quantize_s']:.1f}", f"{cost['quantize_peak_bytes'] / MIB:.0f}"]
            rows.append(
                [f"{letter}, {name}", *quantize, *build_parts, f"{size / MIB:.1f}", f"{cost['text_bytes'] / 1024:.0f}"]
            )
    return table(header, rows)


def correct(figures: Json) -> list[str]:
    """What the text and the reference say."""
    rows = []
    for letter, found in figures.get("correct", {}).items():
        for bits, beside in found["dense"].items():
            rows.append(
                [f"{letter}, {bits}: tokens equal to the dense model's", f"{beside['equal']} of {beside['tokens']}"]
            )
        rows.append(
            [
                f"{letter}, a16: runs equal to the reference, bit by bit",
                f"{'all' if found['verified'] else 'NOT ALL'} of {found['runs']}",
            ]
        )
    return table(("check", "result"), rows)


def stages(figures: Json) -> list[str]:
    """Where the instructions of a token go, in percent."""
    lines: list[str] = []
    for name, found in figures.get("stages", {}).get("all", {}).items():
        if name.endswith(" time"):
            lines += text_block(found)
            continue
        for result in found.get("figures", []):
            rows = [[stage, f"{of['percent']:.2f}"] for stage, of in result["stages"].items() if of["percent"] >= 0.05]
            lines += [
                f"{name}, {result['point']}: {result['instructions_per_token'] / 1e6:.2f} M instructions a token",
                "",
            ]
            lines += table(("stage", "%"), rows)
    return lines


def text_block(found: Json) -> list[str]:
    """What another program printed, as it is; nothing of one that failed before it printed."""
    return ["```", *found["text"].splitlines(), "```", ""] if found["text"] else []
