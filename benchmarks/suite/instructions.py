"""Executed instructions, counted by QEMU: exact, whatever else the machine does."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path

from colibri_build.target.board import load_board
from suite.cache import digest_of, digest_of_files, measured
from suite.commands import run
from suite.engines import ARCH, Engine, engines
from suite.models import Model
from suite.places import BENCHMARKS, WORK, Effort, Json

CPUS = ("x86-64-v3", "cortex-a53")
DECODED = 6  # tokens; the first one is chosen from the prompt's logits
PROMPTS = (8, 72)  # tokens
SEEDS = (0, 1, 2)
SOURCE = BENCHMARKS / "instruction_plugin.c"
MARK = re.compile(r"^mark (\d+)$", re.MULTILINE)


def instructions(model: Model, effort: Effort) -> Json:
    """{cpu: {name: counts}}, see count()."""
    plugin()  # before threads would compile it at the same time
    found: Json = {}
    for cpu in CPUS:
        members = engines(model, cpu)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            counts = list(pool.map(lambda engine, cpu=cpu: _kept(engine, cpu, effort), members))
        found[cpu] = {engine.name: value for engine, value in zip(members, counts, strict=True)}
    return found


def _kept(engine: Engine, cpu: str, effort: Effort) -> Json:
    name = f"instructions-{engine.model.letter}-{cpu}-{engine.name.replace(' ', '-')}"
    key = digest_of(engine.digest, digest_of_files([BENCHMARKS / "suite" / "instructions.py", SOURCE]))
    value: Json = measured(name, key, lambda: count(engine, cpu), fresh=effort.fresh)
    return value


def count(engine: Engine, cpu: str) -> Json:
    """Instructions of one thread.

    "tokens": [[of each decoded token] of each of SEEDS' prompts], whose lengths are equal; "prompt": of a prompt's token,
    the difference of PROMPTS divided by the tokens between, of ours alone: QEMU takes 8 minutes for a long prompt of
    llama.cpp; "weight_bytes": that a token reads.
    """
    model = engine.model
    seeds = SEEDS if engine.is_ours else SEEDS[:1]
    runs = [marks(engine.answer(model.ids(PROMPTS[0], seed), DECODED, 1), cpu) for seed in seeds]
    counts = {"tokens": [differences(found[:DECODED]) for found in runs], "weight_bytes": engine.weight_bytes}
    if engine.is_ours:
        long = marks(engine.answer(model.ids(PROMPTS[1]), 1, 1), cpu)
        counts["prompt"] = (long[0] - runs[0][0]) / (PROMPTS[1] - PROMPTS[0])
    return counts


def differences(sums: Sequence[int]) -> list[int]:
    """Between neighbours."""
    return [after - before for before, after in pairwise(sums)]


@cache
def plugin() -> Path:
    """The QEMU plugin, compiled."""
    library = WORK / "tools" / "instruction_plugin.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    run(["gcc", "-O2", "-shared", "-fPIC", SOURCE, "-o", library])
    return library


def marks(command: Sequence[str | Path], cpu: str) -> list[int]:
    """Instructions executed when the program wrote its first token, its second, ... Raises ValueError for none."""
    board = load_board(cpu)
    model = board.qemu.args[board.qemu.args.index("-cpu") + 1]
    done = run([f"qemu-{ARCH[cpu]}", "-cpu", model, "-plugin", f"{plugin()},marks=on", *command])
    found = [int(number) for number in MARK.findall(done.stderr)]
    if not found:
        raise ValueError("QEMU counted nothing; try: install the package qemu-user")
    return found
