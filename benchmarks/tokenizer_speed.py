"""How fast the firmware's tokenizer encodes published vocabularies: instructions a byte on two boards, bytes a second here.

    PYTHONPATH=tests/tokenizer python benchmarks/tokenizer_speed.py      exit code 1 if there are more instructions than a limit

Bytes a second depend on the machine and what else it does; they are shown, and no limit is set for them.

Needs gcc, aarch64-linux-gnu-gcc, the package qemu-user, and the vocabularies that scripts/setup.sh fetches.
"""

from __future__ import annotations

import operator
import random
import sys
import tempfile
from pathlib import Path

from kernel_count import COMPILER, ROOT, build_plugin, counted_instructions, run
from real_vocabularies import VOCABULARIES
from tokenizer_corpus import SENTENCES
from tokenizers import Tokenizer

from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.render.tokenizer_tables import tokenizer_tables_source
from colibri_build.target.board import Board, load_board
from colibri_build.target.toolchain import COMMON_CFLAGS

NAMES = ("gpt2", "mistral", "deepseek4", "qwen")
# board -> most instructions a byte of prose with the slowest vocabulary: what was reached with gcc 12, plus a tenth
LIMITS = {"x86-64-v3": 530, "cortex-a53": 505}


def texts(folder: Path) -> dict[str, Path]:
    """Prose, code, and sentences in the scripts of the world."""
    rng = random.Random(3)
    files = {
        "prose": [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))],
        "code": sorted((ROOT / "runtime_c").rglob("*.c"))[:60],
    }
    found = {name: b"".join(path.read_bytes() for path in paths) for name, paths in files.items()}
    found["scripts"] = "\n".join(rng.choice(SENTENCES) for _ in range(2000)).encode()
    for name, data in found.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in found}


def compile_for(board: Board, tables: Path) -> Path:
    """The program with the tables in a folder, as the board's firmware is compiled."""
    runtime = ROOT / "runtime_c"
    sources = [ROOT / "benchmarks/tokenizer_speed.c", tables / "tokenizer_tables.c"]
    sources += sorted((runtime / "tokenizer").glob("*.c"))
    includes = [f"-I{runtime}", f"-I{runtime / 'include'}", f"-I{tables}"]
    binary = tables / board.name
    flags = [*COMMON_CFLAGS, *board.flags.gcc.compile, *includes, "-static"]
    run([COMPILER[board.arch], *flags, *map(str, sources), "-o", str(binary)])
    return binary


def write_tables(name: str, folder: Path) -> Path:
    """A folder with tokenizer_tables.c and what it includes."""
    tables = folder / f"{name}-tables"
    tables.mkdir()
    json_text = VOCABULARIES[name]()
    size = Tokenizer.from_str(json_text).get_vocab_size()
    source = tokenizer_tables_source(read_tokenizer_bytes(json_text.encode(), size))
    (tables / "tokenizer_tables.c").write_text(source)
    (tables / "model_config.h").write_text(f"#define MODEL_VOCAB_SIZE {size}\n#define MODEL_CONTEXT 65536\n")
    return tables


def main() -> int:
    """Prints one line for each vocabulary and text; 1 if prose takes more instructions than LIMITS allow."""
    boards = [load_board(name) for name in LIMITS]
    exceeded = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plugin = build_plugin(folder)
        inputs = texts(folder)
        print(f"{'vocabulary':12} {'text':8} {'MB/s':>6}  instructions a byte: {', '.join(LIMITS)}")
        for vocabulary in NAMES:
            tables = write_tables(vocabulary, folder)
            binaries = [compile_for(board, tables) for board in boards]
            for kind, path in inputs.items():
                speed = float(run([str(binaries[0]), str(path), "20"]).stdout)
                counts = [
                    instructions_a_byte(board, binary, plugin, path)
                    for board, binary in zip(boards, binaries, strict=True)
                ]
                too_many = kind == "prose" and any(map(operator.gt, counts, LIMITS.values()))
                exceeded |= too_many
                numbers = "  ".join(f"{count:6.1f}" for count in counts)
                print(f"{vocabulary:12} {kind:8} {speed / 1e6:6.1f}  {numbers}{'  EXCEEDED' if too_many else ''}")
    return int(exceeded)


def instructions_a_byte(board: Board, binary: Path, plugin: Path, path: Path) -> float:
    """What one more encoding takes."""
    few, many = (counted_instructions(board, binary, plugin, (str(path), str(times))) for times in (1, 2))
    return (many - few) / path.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
