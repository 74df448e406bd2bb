"""Runs against the clock: decoding, prompts, start, and a busy neighbour. All raw values are kept, by engine and round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from suite.commands import Launched, launch, run, tool
from suite.engines import Engine, rotations
from suite.models import Model
from suite.places import Effort, Json

THREADS = (1, 2)
SHORT_PROMPT, FIRST_TOKEN_PROMPT = 8, 6
BANDWIDTH_MIB, BANDWIDTH_PASSES = 1024, 4
PROMPT_RUNS, PROMPT_RUNS_US = 5, 300_000
BUSY_CPU = 1
COLD_ROUNDS, NEIGHBOUR_ROUNDS = 3, 5
CACHES = Path("/proc/sys/vm/drop_caches")


def decode(members: Sequence[Engine], model: Model, effort: Effort) -> Json:
    """{"1": {"engines": {name: rows}, "bandwidth": [bytes a second, before and after]}, "2": ...}."""
    tokens = model.bench_tokens // (4 if effort.quick else 1)
    before = {threads: bandwidth(threads) for threads in THREADS}
    rows = _rounds(members, effort, lambda engine, threads: decode_row(engine, tokens, threads))
    return {
        str(threads): {
            "engines": rows[threads],
            "bandwidth": [before[threads], bandwidth(threads)],
            "tokens": tokens,
        }
        for threads in THREADS
    }


def decode_row(engine: Engine, tokens: int, threads: int) -> Json:
    """One run: tokens a second and its latencies in microseconds, memory."""
    seen = launch(engine.decode(tokens, threads))
    times = seen.status["bench"]
    row = {name: times[name] for name in ("median_us", "p99_us", "max_us", "std_us")}
    return row | {"tokens_per_s": tokens * 1e6 / times["total_us"], "peak_bytes": seen.peak_bytes}


def bandwidth(threads: int) -> float:
    """Bytes a second that this many threads read from memory, of the fastest pass."""
    program = tool("bandwidth", "-pthread")
    out = run([program, str(threads), str(BANDWIDTH_MIB), str(BANDWIDTH_PASSES)]).stdout
    return float(json.loads(out)["bytes_per_s"])


def prefill(members: Sequence[Engine], model: Model, effort: Effort) -> Json:
    """{"1": {name: rows}, "2": ...}: tokens a second between a short and a long prompt."""
    long = model.long_prompt // (2 if effort.quick else 1)
    rows = _rounds(members, effort, lambda engine, threads: _prefill_row(engine, model, long, threads))
    return {str(threads): rows[threads] for threads in THREADS}


def _prefill_row(engine: Engine, model: Model, long: int, threads: int) -> Json:
    short_us, long_us = (_least_prompt_us(engine, model.ids(n), threads) for n in (SHORT_PROMPT, long))
    return {"tokens_per_s": (long - SHORT_PROMPT) * 1e6 / max(long_us - short_us, 1)}


def _least_prompt_us(engine: Engine, ids: Sequence[int], threads: int) -> int:
    """Of several runs where one is short: a start takes milliseconds more or less, as long as all of a small model's prompt."""
    found: list[int] = []
    while len(found) < PROMPT_RUNS and sum(found) < PROMPT_RUNS_US:
        found.append(_prompt_us(engine, launch(engine.answer(ids, 1, threads))))
    return min(found)


def _prompt_us(engine: Engine, seen: Launched) -> int:
    """The best clock of each side: the driver's around the prompt alone; of ours to the first token, whose constant part
    the difference of two prompts removes."""
    return seen.first_us if engine.is_ours else int(seen.status["bench"]["prefill_us"])


def startup(members: Sequence[Engine], model: Model, effort: Effort) -> Json:
    """From before exec to the first byte of the first token, in microseconds: {"warm": {name: rows}, "cold": ...}."""
    ids = model.ids(FIRST_TOKEN_PROMPT)

    drops = os.access(CACHES, os.W_OK) and not effort.quick  # a trial leaves other programs their caches

    def first(engine: Engine, threads: int, *, cold: bool) -> Json:
        if cold:
            forget_files(engine.files, everything=drops)
        return {"first_us": launch(engine.answer(ids, 1, threads)).first_us}

    few, most = Effort(COLD_ROUNDS, effort.quick, effort.fresh), max(THREADS)
    first(members[0], most, cold=False)
    found: Json = {"threads": most, "cold_by": "drop_caches" if drops else "posix_fadvise"}
    found["warm"] = _rounds(members, effort, partial(first, cold=False), (most,))[most]
    found["cold"] = _rounds(members, few, partial(first, cold=True), (most,))[most]
    return found


def forget_files(files: Sequence[Path], *, everything: bool) -> None:
    """Have the kernel forget what it holds of the files: these files' pages, or all of its caches."""
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if everything:
        CACHES.write_text("3\n")


def faults(members: Sequence[Engine], model: Model, effort: Effort) -> Json:
    """Page faults while decoding, of a shorter and a longer run with one thread, as each side reports them itself.

    {name: {"tokens": [shorter, longer], "faults": [..], "peak_bytes": the larger resident set}}
    """
    lengths = (model.bench_tokens, min(3 * model.bench_tokens, model.context - 32))
    found: Json = {}
    for engine in members:
        runs = [launch(engine.decode(tokens, 1)) for tokens in lengths]
        counts = [run.status["bench"] if engine.is_ours else run.status for run in runs]  # not those of the whole run
        found[engine.name] = {
            "tokens": list(lengths),
            "faults": [count["minor_faults"] + count["major_faults"] for count in counts],
            "peak_bytes": max(run.peak_bytes for run in runs),
        }
    return found


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """A process that never rests, on one core."""
    program = f"import os\nos.sched_setaffinity(0, {{{BUSY_CPU}}})\nos.write(1, b'.')\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        child.stdout.read(1)  # it runs
        yield
    finally:
        child.kill()
        child.wait()


def neighbour(members: Sequence[Engine], model: Model, effort: Effort) -> Json:
    """Decoding, quiet and with a busy core: {"1": {"quiet": {name: rows}, "busy": {name: rows}}, "2": ...}."""
    tokens = max(model.bench_tokens, 128)  # of fewer p99 would be the maximum
    found: Json = {str(threads): {"quiet": {}, "busy": {}} for threads in THREADS}
    for order in rotations(members, NEIGHBOUR_ROUNDS):
        for engine in order:
            for threads in THREADS:
                rows = found[str(threads)]
                rows["quiet"].setdefault(engine.name, []).append(decode_row(engine, tokens, threads))
                with busy_neighbour():
                    rows["busy"].setdefault(engine.name, []).append(decode_row(engine, tokens, threads))
    return found


def _rounds(
    members: Sequence[Engine],
    effort: Effort,
    measure: Callable[[Engine, int], Json],
    thread_counts: Sequence[int] = THREADS,
) -> dict[int, Json]:
    """{threads: {name: [row of each round]}}; the n-th rows of all were measured one after the other."""
    found: dict[int, Json] = {threads: {} for threads in thread_counts}
    for order in rotations(members, effort.rounds):
        for engine in order:
            for threads in thread_counts:
                found[threads].setdefault(engine.name, []).append(measure(engine, threads))
    return found
