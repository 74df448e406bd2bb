"""The firmware's decoder alone, built for every ISA and asked for tokens: without tokenizer and app it compiles fast."""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from colibri_build.artifacts import BuildOptions, ModelFolder, QuantizedModel, SourceTree
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.pack.writer import write_model_folder
from colibri_build.render import tree as render
from colibri_build.resources import data_dir
from support.stub_tree import GOLDEN, TOKENIZER, target
from support.tiny_quantized import tiny_tokenizer_artifact

PROGRAM = Path(__file__).parents[1] / "families" / "decoder_program.c"
_DECODER = ("include", "kernels", "math", "model", "port", "router", "store", "trace")  # folders of runtime_c
# Board, kernels, and how the program is started.
BOARDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "portable": ("x86-64-v3", "portable", ()),
    "avx2": ("x86-64-v3", "avx2", ()),
    "cortex-a53": ("cortex-a53", "neon", ("qemu-aarch64-static", "-cpu", "cortex-a53")),
    "cortex-a72": ("tda4vm", "neon", ("qemu-aarch64-static", "-cpu", "cortex-a72")),
}
OPTIONS = BuildOptions(context=32, max_threads=2, prefill_batch=8)
_FLAGS = "-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -ffp-contract=off -fno-math-errno".split()
_FLAGS += "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror".split()
_FLAGS += ["-DTHREADS_LEAST_JOB_NS=0"]  # the jobs of small models are divided, too
_MARCH = {"x86-64-v3": "-march=x86-64-v3", "cortex-a53": "-march=armv8-a+crc", "tda4vm": "-mcpu=cortex-a72"}


def model_of(folder: ModelFolder) -> QuantizedModel:
    """The model in a folder, without its tokenizer."""
    return load_quantized(folder, lambda data, size: tiny_tokenizer_artifact(size))


def copy_decoder(root: Path, program: Path = PROGRAM) -> Path:
    """runtime_c without tokenizer and app, with a program in their place."""
    for name in _DECODER:
        shutil.copytree(data_dir("runtime_c") / name, root / name)
    shutil.copytree(data_dir("runtime_c") / "tokenizer", root / "tokenizer", ignore=shutil.ignore_patterns("*.c"))
    for source in [*(root / "port").glob("*.c"), *(root / "trace").glob("*.c")]:
        if source.stem != "threads":
            source.unlink()
    (root / "app").mkdir()
    shutil.copyfile(program, root / "app" / "main.c")
    return root


def render_decoder(
    folder: ModelFolder, board_name: str, kernels: str, decoder: Path, out: Path, options: BuildOptions = OPTIONS
) -> SourceTree:
    """The tree of one program; `decoder` is what `copy_decoder` made."""
    board, toolchain = target(board_name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "data_dir", lambda name: decoder)
        return render.render_tree(
            folder, board.model_copy(update={"kernels": kernels}), toolchain, options, GOLDEN, TOKENIZER, out
        )


def build_decoder(folder: ModelFolder, board: str, decoder: Path, out: Path, options: BuildOptions = OPTIONS) -> Path:
    """One program for a key of `BOARDS`. Kernels, most of the work, are compiled once for all models that agree on them."""
    board_name, kernels, _ = BOARDS[board]
    tree = render_decoder(folder, board_name, kernels, decoder, out, options)
    compiler = "gcc" if board_name == "x86-64-v3" else "aarch64-linux-gnu-gcc"
    command = [compiler, _MARCH[board_name], *_FLAGS, *tree.compile_flags]
    own = [name for name in tree.sources if "tokenizer_tables" not in name and not _is_kernel(name)]
    _run([*command, *own, *_kernel_objects(tree, command, decoder), "-static", "-pthread", "-o", "decoder"], tree.path)
    return tree.path / "decoder"


def _is_kernel(source: str) -> bool:
    return source.startswith("runtime_c/kernels/")


def _kernel_objects(tree: SourceTree, command: Sequence[str], decoder: Path) -> list[str]:
    """Objects of the kernels, kept beside `decoder` by all that they depend on: the command and the macros they name."""
    generated = [tree.path / "generated" / name for name in ("model_config.h", "board_config.h")]
    lines = [line for file in generated for line in file.read_text().splitlines() if line.startswith("#define")]
    folders = [tree.path / "runtime_c" / name for name in ("kernels", "math", "include")]
    text = "".join(file.read_text() for folder in folders for file in sorted(folder.glob("*.[ch]")))
    used = [line for line in lines if re.search(rf"\b{line.split()[1].split('(')[0]}\b", text)]
    key = hashlib.sha256("\n".join([*command, *used]).encode()).hexdigest()[:16]
    kept = decoder.parent / f"kernels-{key}"
    if not kept.exists():
        fresh = Path(tempfile.mkdtemp(dir=decoder.parent))
        names = [str(tree.path / name) for name in tree.sources if _is_kernel(name)]
        include = [f"-I{tree.path / flag[2:]}" if flag.startswith("-I") else flag for flag in command]
        _run([*include, "-c", *names], fresh)
        fresh.rename(kept)
    return sorted(map(str, kept.glob("*.o")))


def _run(command: Sequence[str], folder: Path) -> None:
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr[:2000]


def ask_decoder(
    program: Path, board: str, prompt: Sequence[int], n_tokens: int, batches: Sequence[int] = ()
) -> tuple[tuple[int, ...], str]:
    """(ids of the greedy answer, hash of the logits they were chosen from).

    `batches`: into how many tokens the prompt is cut; without it, tokens are fed one by one.
    """
    ends = itertools.accumulate(batches or [1] * len(prompt))
    cut = [prompt[end - size : end] for end, size in zip(ends, batches or [1] * len(prompt), strict=True)]
    command = [*BOARDS[board][2], str(program), str(n_tokens), *(",".join(map(str, ids)) for ids in cut)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    return tuple(map(int, said[:-1])), said[-1]


def answers_by_board(
    model: QuantizedModel, decoder: Path, folder: Path, prompt: Sequence[int], n_tokens: int
) -> dict[str, tuple[tuple[int, ...], str]]:
    """What every board of `BOARDS` answers."""
    write_model_folder(model, folder / "model")
    packed = read_model_folder(folder / "model")
    options = BuildOptions(context=len(prompt) + n_tokens, max_threads=2)
    return {
        board: ask_decoder(build_decoder(packed, board, decoder, folder / board, options), board, prompt, n_tokens)
        for board in BOARDS
    }
