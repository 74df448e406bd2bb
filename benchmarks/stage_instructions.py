"""Says which stage of the forward pass executes how many instructions a token: exact counts of a finished build.

    python benchmarks/stage_instructions.py BUILD_FOLDER... [--context 512] [--tokens 8] [--json FILE]

Runs the firmware with one thread under QEMU with stage_plugin.c, twice, and takes the difference: decoding at `context`
positions, and prompts. A kernel's instructions go to the stage that called it. Needs gcc and the package qemu-user.
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


@dataclass(frozen=True)
class Function:
    """A function of the binary: where it lies, and the source file it comes from, without suffix ("" for libc)."""

    begin: int
    end: int
    name: str
    source: str
    is_own: bool


def main() -> int:
    """Prints a table for each build folder; --json writes the same figures."""
    options = _parse()
    results = []
    with tempfile.TemporaryDirectory() as name:
        plugin = _build_plugin(Path(name))
        for folder in options.folders:
            build = json.loads((folder / "build.json").read_text())
            for point, few, many, n_tokens in _points(options.context, options.tokens):
                stages, functions = _difference(folder, load_board(build["board"]), plugin, (few, many), n_tokens)
                bits = build["options"]["activation_bits"]
                results.append(_result(f"{build['board']} a{bits}", point, stages, functions))
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


def _points(context: int, n_tokens: int) -> list[tuple[str, list[str], list[str], int]]:
    """(what, arguments of the shorter run, of the longer, tokens between them)."""
    ids = [str(1 + i % 97) for i in range(96)]
    prompts = [["--tokens", ",".join(ids[:n]), "--max-tokens", "1"] for n in (32, 96)]
    return [
        (f"decode at {context}", ["--bench", str(context)], ["--bench", str(context + n_tokens)], n_tokens),
        ("prompt at 32 to 96", prompts[0], prompts[1], 64),
    ]


def _build_plugin(folder: Path) -> Path:
    plugin = folder / "stage_plugin.so"
    _run(["gcc", "-O2", "-shared", "-fPIC", str(HERE / "stage_plugin.c"), "-o", str(plugin)])
    return plugin


def _difference(
    folder: Path, board: Board, plugin: Path, runs: tuple[list[str], list[str]], n_tokens: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Instructions a token by stage, and by "caller: function", between two runs."""
    functions = read_functions(folder)
    few, many = (_count(folder / FIRMWARE, board, plugin, functions, arguments) for arguments in runs)
    stages: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for key in many.keys() | few.keys():
        caller, function = key
        amount = many[key] - few[key]
        stages[stage_of(caller, function)] += amount
        names[f"{caller}: {function.name if function else 'outside'}"] += amount
    return _per_token(stages, n_tokens), _per_token(names, n_tokens)


def _per_token(counts: Counter[str], n_tokens: int) -> dict[str, float]:
    return {name: n / n_tokens for name, n in counts.items() if n}


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


def _count(
    binary: Path, board: Board, plugin: Path, functions: list[Function], arguments: list[str]
) -> Counter[tuple[str, Function | None]]:
    """Instructions of one run by (caller's file, function); None: outside of all functions."""
    contexts = sorted({function.source for function in functions if function.is_own})
    numbers = {name: number + 1 for number, name in enumerate(contexts)}  # 0: before any
    table, out = plugin.with_suffix(".functions"), plugin.with_suffix(".counts")
    table.write_text("".join(f"{f.begin:x} {f.end:x} {numbers[f.source] if f.is_own else -1}\n" for f in functions))
    cpu = board.qemu.args[board.qemu.args.index("-cpu") + 1]
    load = f"{plugin},functions={table},out={out}"
    _run([f"qemu-{board.arch}", "-cpu", cpu, "-plugin", load, str(binary), *arguments, "--threads", "1"])
    counts: Counter[tuple[str, Function | None]] = Counter()
    for line in out.read_text().splitlines():
        context, index, amount = map(int, line.split())
        counts[contexts[context - 1] if context else "", functions[index] if index >= 0 else None] += amount
    return counts


def stage_of(caller: str, function: Function | None) -> str:
    """The stage that a function's instructions belong to; caller: the file of the runtime that runs."""
    products, rest = FILE_STAGES.get(caller, (OTHER, OTHER))
    if function is None or function.source == "threads":
        return "threads" if function else rest
    kernel = function.name.rsplit("_", 1)[0]
    if kernel in PRODUCTS:
        return products
    is_kernel = function.source.rsplit("_", 1)[-1] in ("avx2", "neon", "portable")
    return KERNEL_STAGES.get(kernel, rest) if is_kernel else rest


def _result(build: str, point: str, stages: dict[str, float], functions: dict[str, float]) -> dict[str, Any]:
    total = sum(stages.values())
    ranked = sorted(stages.items(), key=lambda item: -item[1])
    return {
        "build": build,
        "point": point,
        "instructions_per_token": round(total),
        "stages": {name: {"instructions": round(n), "percent": round(100 * n / total, 2)} for name, n in ranked},
        "functions": {name: round(n) for name, n in sorted(functions.items(), key=lambda item: -item[1])[:24]},
    }


def _table(result: dict[str, Any]) -> str:
    lines = [f"\n{result['build']}, {result['point']}: {result['instructions_per_token']:,} instructions a token"]
    lines += [f"  {name:28} {of['instructions']:>14,} {of['percent']:6.2f} %" for name, of in result["stages"].items()]
    return "\n".join(lines)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
