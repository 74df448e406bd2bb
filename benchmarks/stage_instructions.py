"""Says which stage of the forward pass executes how many instructions a token: exact counts of a finished build.

    python benchmarks/stage_instructions.py BUILD_FOLDER... [--context 512] [--tokens 8] [--json FILE]

Runs the firmware with one thread under QEMU with stage_plugin.c: a prompt of `context` tokens, the start included, then
tokens decoded behind it. A kernel's instructions go to the stage that called it. Needs gcc and the package qemu-user.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from colibri_build.target.board import Board, load_board

HERE = Path(__file__).parent
FIRMWARE = "colibri_inference"
OWN_FOLDERS = ("model", "router", "sample", "app", "tokenizer")  # of runtime_c: who calls the kernels
PRODUCTS = ("matvec_w4", "matvec_w8", "matvec_f16", "matmul_w4", "matmul_w8")
OVER_THE_CACHE = "attention over the cache"
# kernel -> stage, whoever calls it; the others belong to their caller's stage
KERNEL_STAGES = {
    "attention_scores": OVER_THE_CACHE,
    "attention_mix": OVER_THE_CACHE,
    "to_f16": OVER_THE_CACHE,
    "rms_norm": "norms",
    "quantize_activation": "activation codes",
    "swiglu": "gating",
    "matvec_f32": "router",
}
# file -> (stage of its matrix products, stage of all else)
FILE_STAGES = {
    "attention": ("attention matrices", OVER_THE_CACHE),
    "qkv": ("attention matrices", "attention matrices"),
    "qkv_latent": ("attention matrices", "attention matrices"),
    "adjust": ("attention matrices", "adjusting"),
    "rotary": ("rotary", "rotary"),
    "experts": ("expert matrices", "expert sums"),
    "dense": ("dense and shared matrices", "dense and shared matrices"),
    "ffn": ("expert matrices", "residual sums"),
    "groups": ("expert matrices", "expert sums"),
    "head": ("head matrix", "head"),
    "decoder": ("head matrix", "head"),
    "embedding": ("embedding", "embedding"),
    "router": ("router", "router"),
    "softmax": ("router", "router"),
    "sigmoid": ("router", "router"),
    "sampler": ("sampling", "sampling and hash"),
    "generate": ("sampling", "sampling and hash"),
}
OTHER = "other"
N_FUNCTIONS = 24  # that are named


@dataclass(frozen=True)
class Function:
    """A function of the binary: where it lies, and the source file it comes from, without suffix ("" for libc)."""

    begin: int
    end: int
    name: str
    source: str
    is_own: bool


# Instructions by (caller's file, function); None: outside of all functions.
Counts = Counter[tuple[str, Function | None]]


def main() -> int:
    """Prints a table for each build folder; --json writes the same figures."""
    options = _parse()
    results = []
    with tempfile.TemporaryDirectory() as name:
        plugin = _build_plugin(Path(name))
        for folder in options.folders:
            build = json.loads((folder / "build.json").read_text())
            name = f"{build['board']} a{build['options']['activation_bits']}"
            parts = _count(folder, load_board(build["board"]), plugin, options.context, options.tokens)
            points = (f"prompt of {options.context}", options.context), (f"decode at {options.context}", options.tokens)
            for (point, n_tokens), counts in zip(points, parts, strict=True):
                results.append(_result(name, point, counts, n_tokens))
                print(_table(results[-1]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="BUILD_FOLDER", nargs="+", type=Path)
    parser.add_argument("--context", type=int, default=512, help="positions before the tokens that are counted")
    parser.add_argument("--tokens", type=int, default=8, help="tokens that are counted")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _build_plugin(folder: Path) -> Path:
    plugin = folder / "stage_plugin.so"
    _run(["gcc", "-O2", "-shared", "-fPIC", str(HERE / "stage_plugin.c"), "-o", str(plugin)])
    return plugin


def read_functions(folder: Path) -> list[Function]:
    """The binary's functions, ascending. A static one's file stands before it in the symbol table, a global one's is
    the object that defines it."""
    owners = _global_owners(folder / "objects" / "runtime_c")
    with (folder / FIRMWARE).open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        if not isinstance(table, SymbolTableSection):
            raise SystemExit(f"{folder / FIRMWARE} has no symbol table; build it with colibri-build")
        found = {}
        source = ""
        own = _own_sources(folder)
        for symbol in table.iter_symbols():
            if symbol["st_info"]["type"] == "STT_FILE":
                source = Path(symbol.name).stem if symbol.name.endswith(".c") else ""
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"] > 0:
                is_local = symbol["st_info"]["bind"] == "STB_LOCAL"
                origin = source if is_local else owners.get(symbol.name, "")
                begin = symbol["st_value"]
                found[begin] = Function(begin, begin + symbol["st_size"], symbol.name, origin, origin in own)
    return [found[begin] for begin in sorted(found)]


def _own_sources(folder: Path) -> set[str]:
    return {path.stem for own in OWN_FOLDERS for path in (folder / "objects" / "runtime_c" / own).glob("*.o")}


def _global_owners(objects: Path) -> dict[str, str]:
    owners = {}
    for path in sorted(objects.rglob("*.o")):
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            if isinstance(table, SymbolTableSection):
                for symbol in table.iter_symbols():
                    if symbol["st_info"]["type"] == "STT_FUNC":
                        owners[symbol.name] = path.stem
    return owners


def _count(folder: Path, board: Board, plugin: Path, context: int, n_tokens: int) -> list[Counts]:
    """Instructions of one run until its first token, and of the `n_tokens` after that. SystemExit if it chooses fewer."""
    functions = read_functions(folder)
    callers = sorted({function.source for function in functions if function.is_own})
    numbers = {name: number + 1 for number, name in enumerate(callers)}  # 0: before any
    table, out = plugin.with_suffix(".functions"), plugin.with_suffix(".counts")
    table.write_text("".join(f"{f.begin:x} {f.end:x} {numbers[f.source] if f.is_own else -1}\n" for f in functions))
    ids = ",".join(str(1 + i % 97) for i in range(context))
    answer = [folder / FIRMWARE, "--tokens", ids, "--max-tokens", str(n_tokens + 1), "--ids", "--threads", "1"]
    cpu = board.qemu.args[board.qemu.args.index("-cpu") + 1]
    load = f"{plugin},functions={table},out={out},writes={n_tokens}"
    chosen = _run([f"qemu-{board.arch}", "-cpu", cpu, "-plugin", load, *map(str, answer)]).split(",")
    if len(chosen) != n_tokens + 1:
        raise SystemExit(f"{folder}: the answer ends after {len(chosen)} of {n_tokens + 1} tokens; try fewer --tokens")
    parts: list[Counts] = [Counter(), Counter(), Counter()]
    for line in out.read_text().splitlines():
        part, caller, index, amount = map(int, line.split())
        parts[part][callers[caller - 1] if caller else "", functions[index] if index >= 0 else None] += amount
    return parts[:2]


def stage_of(caller: str, function: Function | None) -> str:
    """The stage that a function's instructions belong to; caller: the file of the runtime that runs."""
    products, rest = FILE_STAGES.get(caller, (OTHER, OTHER))
    if function is None or function.source == "threads":
        return "threads" if function else rest
    kernel = function.name.rsplit("_", 1)[0]
    file, _, isa = function.source.rpartition("_")
    if kernel in PRODUCTS or file in PRODUCTS:  # the file: what a kernel calls of its own
        return products
    return KERNEL_STAGES.get(kernel, rest) if isa in ("avx2", "neon", "portable") else rest


def _result(build: str, point: str, counts: Counts, n_tokens: int) -> dict[str, Any]:
    """What is printed and written: counts a token by stage, and of the functions with the most."""
    stages: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for (caller, function), amount in counts.items():
        stages[stage_of(caller, function)] += amount
        names[f"{caller}: {function.name if function else 'outside'}"] += amount
    total = stages.total()
    return {
        "build": build,
        "point": point,
        "instructions_per_token": round(total / n_tokens),
        "stages": {
            stage: {"instructions": round(amount / n_tokens), "percent": round(100 * amount / total, 2)}
            for stage, amount in stages.most_common()
        },
        "functions": {name: round(amount / n_tokens) for name, amount in names.most_common(N_FUNCTIONS)},
    }


def _table(result: dict[str, Any]) -> str:
    lines = [f"\n{result['build']}, {result['point']}: {result['instructions_per_token']:,} instructions a token"]
    lines += [f"  {name:28} {of['instructions']:>14,} {of['percent']:6.2f} %" for name, of in result["stages"].items()]
    return "\n".join(lines)


def _run(command: list[str]) -> str:
    """Standard output; SystemExit for a failure."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
