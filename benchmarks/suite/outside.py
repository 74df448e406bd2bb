"""Figures of the other programs in benchmarks/: kernels, stages, the tokenizer, the builder, import at scale."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from suite.models import MODELS
from suite.ours import BOARD_X86, firmware
from suite.places import BENCHMARKS, ROOT, WORK, Json

COUNT = re.compile(r"^(\S+)\s+a(\d+)\s+(\S+)\s+([\d.]+)", re.MULTILINE)
TIME_LIMIT_S = 3600
STAGES_CONTEXT, TIMED_TOKENS = 512, 256


def program(name: str, *arguments: str | Path) -> Json:
    """Run one of benchmarks/; {"exit_code", "text"}. Exit code 1 of a count says that a limit is exceeded.

    What it says of a failure names files of this machine: that goes to our standard error, and into no result.
    """
    path = BENCHMARKS / name
    if not path.is_file():
        return {"exit_code": None, "text": f"{name} is not there"}
    words = [sys.executable, str(path), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests' / 'tokenizer'}:{ROOT / 'builder'}"}
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=TIME_LIMIT_S, check=False, env=environment)
    return {"exit_code": done.returncode, "text": done.stdout.strip()}


def with_json(name: str, *arguments: str | Path) -> Json:
    """The same with the option --json FILE; adds the file's content as "figures"."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        found = program(name, *arguments, "--json", out)
        if out.is_file():
            found["figures"] = json.loads(out.read_text())
    return found


def kernels() -> Json:
    """Instructions of each kernel, and llvm-mca's cycles of the inner loops."""
    counted = program("kernel_count.py")
    return {"count": counted | {"figures": parse_counts(counted["text"])}, "cycles": with_json("kernel_cycles.py")}


def parse_counts(text: str) -> Json:
    """{"board a16 kernel": instructions a unit}, from kernel_count.py's table."""
    return {f"{board} a{bits} {kernel}": float(number) for board, bits, kernel, number in COUNT.findall(text)}


def stages(letters: Sequence[str]) -> Json:
    """Instructions of a token by stage for both cores, {"a cortex-a53 a16": ...}, and its time here, {"a time": ...}."""
    found: Json = {}
    for letter in letters:
        model = MODELS[letter]
        builds = [firmware(model, board, 16) for board in (BOARD_X86, model.board_a53)]
        context = str(min(STAGES_CONTEXT, model.context - 32))
        with ThreadPoolExecutor(len(builds)) as pool:
            counts = pool.map(
                lambda x, n=context: with_json("stage_instructions.py", x.path.parent, "--context", n), builds
            )
        found |= {
            f"{letter} {built.board.split('/')[0]} {built.name}": count
            for built, count in zip(builds, counts, strict=True)
        }
        tokens = str(min(TIMED_TOKENS, model.context - 32))
        found[f"{letter} time"] = with_json(
            "stage_times.py", model.folder() / "quantized" / "model", "--tokens", tokens
        )
    return found


def tokenizer() -> Json:
    """Instructions and bytes a second of encoding."""
    return program("tokenizer_speed.py")


def builder() -> Json:
    """Time and memory of quantizing and building a model of 121 MB, step by step."""
    return with_json("build_speed.py")


def import_at_scale() -> Json:
    """Time and memory of the builder with a model of 6.9 G weights; takes a quarter of an hour and 25 GB."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        return program("import_at_scale.py", folder)
