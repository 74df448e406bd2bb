"""Measures our firmware beside llama.cpp, and writes benchmarks/results/ (make bench).

    .venv/bin/python benchmarks/run.py                    everything that is not measured yet, over an hour
    .venv/bin/python benchmarks/run.py --only decode,startup --model a,b --quick
    .venv/bin/python benchmarks/run.py --report           only the page and the plots

What is made and measured is kept in build/bench (at most 10 GB), and measured again only when one of the programs is another.
With --only or --model the other figures stay as they are in results.json. Needs what scripts/setup.sh bench installs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "tokenizer")]

from suite.machine import describe  # noqa: E402
from suite.models import MODELS  # noqa: E402 (found through the path above)
from suite.places import FULL_ROUNDS, QUICK_ROUNDS, RESULTS, Effort, Json, write_json  # noqa: E402
from suite.plots import write_plots  # noqa: E402
from suite.report import RESULTS_JSON, write_report  # noqa: E402
from suite.steps import STEPS, Step  # noqa: E402

NOTHING: Json = {"figures": {}, "machine": {}, "rounds": 0, "trials": []}


def main() -> int:
    """Exit code 0; 1 where a step failed or a count is above its limit, which is said on standard error.

    What a step that fails would have measured is not measured: older figures go.
    """
    options = parse()
    results = read_results()
    failed = 0
    if not options.report:
        effort = Effort(QUICK_ROUNDS if options.quick else FULL_ROUNDS, options.quick, options.fresh)
        letters = options.model.split(",") if options.model else list(MODELS)
        for step in chosen_steps(options.only, large=options.large):
            failed += measure(step, letters, effort, results)
        results |= {"rounds": effort.rounds, "machine": describe()}
    publish(results)
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="STEPS", help=f"with commas between: {','.join(STEPS)}")
    parser.add_argument("--model", metavar="LETTERS", help=f"with commas between: {','.join(MODELS)}")
    parser.add_argument("--quick", action="store_true", help="few and short runs: a trial of the benchmark, no result")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured with the same programs")
    parser.add_argument("--large", action="store_true", help="also import a model of 6.9 G weights (15 minutes, 25 GB)")
    parser.add_argument(
        "--report", action="store_true", help="write the page and the plots of results.json, measure nothing"
    )
    options = parser.parse_args()
    for given, known in ((options.only, STEPS), (options.model, MODELS)):
        unknown = set(given.split(",")) - set(known) if given else set()
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}; try {', '.join(known)}")
    return options


def chosen_steps(only: str | None, *, large: bool) -> list[Step]:
    """In the order of the table; the opt-in step only where it is asked for."""
    names = only.split(",") if only else [name for name in STEPS if name != "large"]
    return [STEPS[name] for name in STEPS if name in names or (name == "large" and large)]


def read_results() -> Json:
    """What an earlier run found."""
    path = RESULTS / RESULTS_JSON
    found: Json = json.loads(path.read_text()) if path.is_file() else dict(NOTHING)
    return found


def measure(step: Step, letters: list[str], effort: Effort, results: Json) -> int:
    """Run a step for each model that it is for, and keep its figures; how many failed."""
    figures = results["figures"].setdefault(step.name, {})
    failed = 0
    for letter in [letter for letter in step.models if letter in letters] if step.models else ["all"]:
        begin = time.monotonic()
        try:
            figures[letter] = step.measure(letter, effort)
        except Exception as error:  # a step that fails must not lose the others' figures
            failed += 1
            figures.pop(letter, None)
            print(f"{step.name} {letter}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        trials = set(results["trials"]) - {f"{step.name} {letter}"}
        results["trials"] = sorted(trials | {f"{step.name} {letter}"} if effort.quick else trials)
        write_json(RESULTS / RESULTS_JSON, results)
        for text in exceeded(figures[letter]):
            failed += 1
            print(f"{step.name} {letter}: {text}", file=sys.stderr, flush=True)
        print(f"{step.name:14} {letter:4} {time.monotonic() - begin:7.1f} s", flush=True)
    return failed


def exceeded(figures: Json) -> list[str]:
    """The last lines of programs that ended with another exit code than 0: a count above its limit, or a fault."""
    found = [part for part in (figures, *figures.values()) if isinstance(part, dict) and "exit_code" in part]
    return ["\n".join(part["text"].splitlines()[-5:]) for part in found if part["exit_code"] != 0]


def publish(results: Json) -> None:
    """results.json, plots and page."""
    results["plots"] = write_plots(results)
    write_json(RESULTS / RESULTS_JSON, results)
    write_report()
    print(RESULTS / "results.md")


if __name__ == "__main__":
    sys.exit(main())
