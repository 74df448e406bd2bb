"""Small C trees with real generated files and a runtime of one file: built in a second instead of ten."""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path

import pytest

from colibri_build.artifacts import BuildOptions, Generation, ModelFolder, SourceTree
from colibri_build.pack.writer import write_model_folder
from colibri_build.render import tree as render
from colibri_build.resources import data_dir
from colibri_build.target.board import Board, load_board
from colibri_build.target.toolchain import Toolchain, resolve_toolchain
from support.tiny_quantized import random_quantized

OPTIONS = BuildOptions(context=32, max_threads=2)
GOLDEN = Generation('say "é"?\\\n', (1, 2), (3, 4, 5), "0123456789abcdef", "length")
TOKENIZER = '#include "tokenizer/tables.h"\nconst int tokenizer_n_prefix_ids = 0;\n'
_HEADERS = ("include/colibri.h", "kernels/kernels.h", "store/model_tables.h", "tokenizer/tables.h")
_HEADERS += ("tokenizer/steps.h", "tokenizer/id_list.h", "tokenizer/tokenizer.h")

# Touches every table, so that the linker keeps all of them, and prints facts that a test can compare.
MAIN_C = """\
#include <inttypes.h>
#include <stdio.h>

#include "store/model_tables.h"
#include "tokenizer/tables.h"

static unsigned sum_of(const Matrix *m, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        sum = sum * 31u + ((const unsigned char *)m->codes)[i];
    }
    return sum;
}

int main(void) {
    unsigned sum = sum_of(&model_embedding, 64) ^ sum_of(&model_lm_head, 64);
    for (int layer = 0; layer < MODEL_N_LAYERS; layer++) {
        sum ^= sum_of(&model_layers[layer].router, 16);
        for (int expert = 0; expert < MODEL_N_EXPERTS; expert++) {
            sum ^= sum_of(&model_experts[layer][expert].down, 16);
        }
    }
    printf("%s|%s|%s|%s|%016" PRIx64 "|%d|%a|%a|%d|%u\\n", BOARD_NAME, model_name, model_digest, model_golden_prompt,
           model_golden_hash, model_golden_ids[MODEL_N_GOLDEN - 1], (double)model_inv_freq[MODEL_HEAD_DIM / 2 - 1],
           (double)model_final_norm[0], model_eos_ids[0] + tokenizer_n_prefix_ids, sum);
    return 0;
}
"""


def main_program(before: str = "", inside: str = "") -> str:
    """MAIN_C with text before its functions and at the start of main."""
    text = MAIN_C.replace("static unsigned", before + "static unsigned", 1)
    return text.replace("int main(void) {\n", "int main(void) {\n" + inside, 1)


def tiny_folder(tmp: Path, **changes: object) -> ModelFolder:
    """A model folder of random codes; `changes` are arguments of random_quantized."""
    return write_model_folder(random_quantized(**changes), tmp / "model")  # type: ignore[arg-type]


@lru_cache
def target(board: str = "x86-64-v3", toolchain: str = "debian-gcc") -> tuple[Board, Toolchain]:
    """A board and its toolchain."""
    loaded = load_board(board)
    return loaded, resolve_toolchain(loaded, toolchain)


def stub_runtime(root: Path, main_c: str = MAIN_C) -> Path:
    """Write the runtime's public headers and one source file below `root`."""
    for name in _HEADERS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(data_dir("runtime_c") / name, root / name)
    (root / "app").mkdir(exist_ok=True)
    (root / "app" / "main.c").write_text(main_c, encoding="utf-8")
    return root


def stub_tree(
    tmp: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: tuple[Board, Toolchain],
    out: Path | None = None,
    main_c: str = MAIN_C,
    options: BuildOptions = OPTIONS,
    folder: ModelFolder | None = None,
) -> SourceTree:
    """Render the tiny model with the stub runtime into `out` (default: tmp/out)."""
    runtime = stub_runtime(tmp / "runtime", main_c)
    monkeypatch.setattr(render, "data_dir", lambda name: runtime)
    model = folder or tiny_folder(tmp)
    return render.render_tree(model, *where, options, GOLDEN, TOKENIZER, out or tmp / "out")
