"""Says which stage of the forward pass takes how much time a decoded token on this machine.

    python benchmarks/stage_times.py MODEL... [--board x86-64-v3] [--tokens 256] [--threads 1] [--json FILE]

Builds each model folder with `--debug timing`, decodes with every second token recorded, and adds up the median of every
stage and layer. Finer than the trace's stages are the counts of stage_instructions.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

BUILDER = Path(sys.executable).parent / "colibri-build"
WITHIN_EXPERTS = "expert"  # this stage lies within "experts"


def main() -> int:
    """Prints a table for each model; --json writes the same figures."""
    options = _parse()
    results = []
    for model in options.models:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            build = ["build", "--board", options.board, "--debug", "timing", "--golden-tokens", "4"]
            _run([str(BUILDER), *build, "-o", str(folder / "build"), str(model)])
            bench = _record(folder, options.tokens, options.threads)
            report = json.loads(_run([str(BUILDER), "report", str(folder / "trace"), "--format", "json"]).stdout)
        results.append(
            {"model": model.name, "board": options.board, "threads": options.threads, **_times(report, bench)}
        )
        print(_table(results[-1]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", metavar="MODEL", nargs="+", type=Path)
    parser.add_argument("--board", default="x86-64-v3", help="one that this machine runs itself")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _record(folder: Path, n_tokens: int, threads: int) -> dict[str, int]:
    """Writes folder/trace; returns the firmware's own figures, in microseconds."""
    binary = folder / "build" / "colibri_inference"
    descriptor = os.open(folder / "trace", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        arguments = ["--bench", str(n_tokens), "--threads", str(threads), "--trace", "binary"]
        done = _run([str(binary), *arguments, "--trace-fd", str(descriptor)], (descriptor,))
    finally:
        os.close(descriptor)
    status: dict[str, Any] = json.loads(done.stderr.rsplit("COLIBRI_STATUS ", 1)[1])
    bench: dict[str, int] = status["bench"]
    return bench


def _times(report: dict[str, Any], bench: dict[str, int]) -> dict[str, Any]:
    """Medians added up over the layers, and what of a token lies outside of them."""
    stages: Counter[str] = Counter()
    for row in report["layer_stages"]:
        if row["stage"] != WITHIN_EXPERTS:
            stages[row["stage"]] += row["median_us"]
    token = bench["traced_median_us"]
    stages["rest: sampling, hash, recording"] = token - sum(stages.values())
    ranked = sorted(stages.items(), key=lambda item: -item[1])
    return {
        "median_us": bench["median_us"],
        "recorded_median_us": token,
        "stages": {name: {"us": round(us, 1), "percent": round(100 * us / token, 1)} for name, us in ranked},
    }


def _table(result: dict[str, Any]) -> str:
    head = f"\n{result['model']} on {result['board']}, {result['threads']} thread(s)"
    lines = [f"{head}: median {result['median_us']} us a token, {result['recorded_median_us']} us when recorded"]
    lines += [f"  {name:34} {of['us']:>10.1f} us {of['percent']:5.1f} %" for name, of in result["stages"].items()]
    return "\n".join(lines)


def _run(command: list[str], descriptors: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False, pass_fds=descriptors)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done


if __name__ == "__main__":
    sys.exit(main())
