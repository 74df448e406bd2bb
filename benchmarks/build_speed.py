"""Time and memory of the builder: quantize, plan, each step of a build, and a build in which nothing changed.

    .venv/bin/python benchmarks/build_speed.py [FOLDER] [--board x86-64-v3] [--layers 8] [--json FILE]

Makes a seeded checkpoint with the shape of OLMoE (the default becomes a model folder of 121 MB) in FOLDER, or in one that is
removed in the end, and runs the commands as a user would. "held" is the anonymous memory of the largest process, sampled
every 5 ms: what it allocated; "resident" also counts the pages of mapped files, which the system takes back when it needs
them. The steps of a build are told apart by the lines that it prints.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from import_at_scale import CONFIG, TOKENIZER, shapes, write_shard

DIM, HIDDEN, HEADS, EXPERTS, TOP_K, VOCAB = 512, 1536, 8, 8, 2, 32000
PERIOD_S = 0.005
LINK = "colibri_inference.unfinished"  # in the linker's command alone
STEPS = {  # first words of a stage's line -> name of the step
    "check": "check the model",
    "ask": "golden answers",
    "render": "render",
    "compile": "compile",
    "link": "link",
    "inspect": "inspect",
}


@dataclass(frozen=True)
class Row:
    """A command, or a step of the one above it; bytes of its largest process."""

    step: str
    seconds: float
    held_bytes: int
    resident_bytes: int


def make_checkpoint(folder: Path, layers: int) -> None:
    """A folder as transformers saves it, all of it random numbers in bfloat16."""
    folder.mkdir(parents=True)
    sizes = {
        "hidden_size": DIM,
        "intermediate_size": HIDDEN,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_experts": EXPERTS,
        "num_experts_per_tok": TOP_K,
        "num_hidden_layers": layers,
        "vocab_size": VOCAB,
    }
    config = {**CONFIG, **sizes}
    write_shard(folder / "model.safetensors", list(shapes(config, layers)), layers)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shutil.copy(TOKENIZER, folder)


class Memory(threading.Thread):
    """What a process or one below it held and had resident, whichever had most, at every moment."""

    def __init__(self, pid: int, begin: float) -> None:
        super().__init__(daemon=True)
        self._pid, self._begin, self._ended = pid, begin, threading.Event()
        self._samples: list[tuple[float, int, int]] = []  # seconds since `begin`, bytes held, bytes resident
        self._peak = 0  # resident, as the kernel knows it
        self.start()

    def run(self) -> None:
        """Sample until the end."""
        while not self._ended.wait(PERIOD_S):
            held = resident = 0
            for pid in self._family(self._pid):
                try:
                    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
                except OSError:
                    continue
                fields = dict(line.split(":", 1) for line in status.splitlines())
                held = max(held, self._bytes(fields.get("RssAnon", "0 kB")))
                resident = max(resident, self._bytes(fields.get("VmRSS", "0 kB")))
                self._peak = max(self._peak, self._bytes(fields.get("VmHWM", "0 kB")))
            self._samples.append((time.monotonic() - self._begin, held, resident))

    def end(self) -> None:
        """Stop sampling."""
        self._ended.set()
        self.join()

    def row(self, step: str, begin: float, end: float) -> Row:
        """Of some seconds."""
        seen = [(held, resident) for at, held, resident in self._samples if begin <= at < end] or [(0, 0)]
        held, resident = (max(column) for column in zip(*seen, strict=True))
        return Row(step, end - begin, held, resident)

    def whole(self, step: str, seconds: float) -> Row:
        """Of all of it."""
        return replace(self.row(step, 0, seconds), resident_bytes=self._peak)

    @staticmethod
    def _bytes(text: str) -> int:
        return int(text.split()[0]) * 1024

    def _family(self, pid: int) -> Iterator[int]:
        yield pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
        except OSError:
            return
        for child in children:
            yield from self._family(int(child))


def run(step: str, command: list[str], cache: Path) -> list[Row]:
    """Run a command; returns its row, and those of its steps, from the lines that it prints with -v."""
    begin = time.monotonic()
    environment = {**os.environ, "COLIBRI_CACHE": str(cache)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    memory = Memory(process.pid, begin)
    assert process.stderr is not None
    said = [(time.monotonic() - begin, line.strip()) for line in process.stderr]
    code = process.wait()
    seconds = time.monotonic() - begin
    memory.end()
    if code:
        sys.exit("\n".join([f"{' '.join(command)}: exit code {code}", *(line for _, line in said[-5:])]))
    return [memory.whole(step, seconds), *(memory.row(*part) for part in steps_of(seconds, said))]


def steps_of(seconds: float, said: list[tuple[float, str]]) -> Iterator[tuple[str, float, float]]:
    """Name, begin and end of the steps of a build, from its lines; of another command, none."""
    begins = [(at, line.split()[1]) for at, line in said if line.startswith("== ")]
    begins += [(at, "link") for at, line in said if LINK in line]
    begins = sorted(begin for begin in begins if begin[1] in STEPS)
    for (begin, word), (end, _) in pairwise([(0.0, "start"), *begins, (seconds, "")] if begins else []):
        yield f"- {STEPS.get(word, 'start, find the compiler')}", begin, end


def measure(folder: Path, boards: list[str], layers: int) -> Iterator[Row]:
    """Every row, in order."""
    checkpoint, model, cache = folder / "checkpoint", folder / "model", folder / "cache"
    if not checkpoint.exists():
        make_checkpoint(checkpoint, layers)
    programs = Path(sys.executable).parent
    build = str(programs / "colibri-build")
    yield from run("quantize (rtn)", [str(programs / "colibri-quantize"), str(checkpoint), str(model)], cache)
    yield from run("plan", [build, "plan", "-b", boards[0], str(model)], cache)
    for board in boards:
        out = folder / "build" / board
        command = [build, "-v", "-b", board, "-o", str(out), str(model)]
        shutil.rmtree(out, ignore_errors=True)
        golden = cache / board  # else the answers of the board before would be taken
        yield from run(f"build for {board}", command, golden)
        yield from run(f"rebuild for {board}, nothing changed", command, golden)


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| step | seconds | held | resident |", "|---|---:|---:|---:|"]
    for row in rows:
        sizes = [f"{size / 2**20:.0f} MiB" for size in (row.held_bytes, row.resident_bytes)]
        lines.append(f"| {row.step} | {row.seconds:.2f} | {sizes[0]} | {sizes[1]} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table; write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument(
        "--board", action="append", help="may be given several times; default: x86-64-v3 and cortex-a53"
    )
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    with nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = list(measure(folder, args.board or ["x86-64-v3", "cortex-a53"], args.layers))
        facts = {
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "checkpoint_bytes": sum(file.stat().st_size for file in (folder / "checkpoint").iterdir()),
            "model_bytes": sum(file.stat().st_size for file in (folder / "model").iterdir()),
        }
    print(f"{facts['model_bytes']:,} bytes of model, {facts['cores']} cores, load {facts['load']:.1f}\n")
    print(table(rows))
    if args.json:
        record = {**facts, "rows": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
