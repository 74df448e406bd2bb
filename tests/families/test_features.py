"""Everything that only some families have, in the reference's bits on portable C, AVX2 and NEON (Cortex-A53, QEMU).

tests/oracle says that the reference is right; here the firmware's decoder must be the reference, feature by feature.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.artifacts import (
    BuildOptions,
    ModelFolder,
    QuantizedModel,
)
from colibri_build.errors import RenderError
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.pack.writer import write_model_folder
from colibri_build.reference.generate import generate
from colibri_build.reference.model import ReferenceModel
from colibri_build.render import tree as render
from colibri_build.resources import data_dir
from support.features import FEATURES, feature_model
from support.stub_tree import GOLDEN, TOKENIZER, target
from support.tiny_quantized import AWKWARD_CONFIG, random_quantized, tiny_tokenizer_artifact

HERE = Path(__file__).parent
DECODER = ("include", "kernels", "math", "model", "port", "router", "store", "trace")  # folders of runtime_c
PROMPT = (5, 17, 200, 45, 9, 211, 77, 104)
N_TOKENS = 6
# Kernels, compiler, flags, and how the program is started.
BOARDS = {
    "portable": ("x86-64-v3", "portable", ()),
    "avx2": ("x86-64-v3", "avx2", ()),
    "neon": ("cortex-a53", "neon", ("qemu-aarch64-static", "-cpu", "cortex-a53")),
}


def model_of(folder: ModelFolder) -> QuantizedModel:
    return load_quantized(folder, lambda data, size: tiny_tokenizer_artifact(size))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """runtime_c without tokenizer and app, with the program above in their place."""
    root = tmp_path_factory.mktemp("decoder")
    for name in DECODER:
        shutil.copytree(data_dir("runtime_c") / name, root / name)
    shutil.copytree(data_dir("runtime_c") / "tokenizer", root / "tokenizer", ignore=shutil.ignore_patterns("*.c"))
    for source in [*(root / "port").glob("*.c"), *(root / "trace").glob("*.c")]:
        if source.stem != "threads":
            source.unlink()
    (root / "app").mkdir()
    shutil.copyfile(HERE / "decoder_program.c", root / "app" / "main.c")
    return root


def build(
    folder: ModelFolder, board_name: str, kernels: str, decoder: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """One program, one compiler process."""
    board, toolchain = target(board_name)
    monkeypatch.setattr(render, "data_dir", lambda name: decoder)
    tree = render.render_tree(
        folder, board.model_copy(update={"kernels": kernels}), toolchain, OPTIONS, GOLDEN, TOKENIZER, out
    )
    sources = [name for name in tree.sources if "tokenizer_tables" not in name]
    flags = ["-march=armv8-a+crc" if board.arch == "aarch64" else "-march=x86-64-v3", *FLAGS]
    compiler = "aarch64-linux-gnu-gcc" if board.arch == "aarch64" else "gcc"
    command = [compiler, *flags, *tree.compile_flags, *sources, "-static", "-pthread", "-o", "decoder"]
    answer = subprocess.run(command, cwd=tree.path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr[:2000]
    return tree.path / "decoder"


FLAGS = "-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -ffp-contract=off -fno-math-errno".split()
FLAGS += "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror".split()
OPTIONS = BuildOptions(context=32, max_threads=2)


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_has_the_references_bits(
    name: str, decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model_folder(feature_model(name), tmp_path / "model")
    folder = read_model_folder(tmp_path / "model")
    expected = generate(ReferenceModel(model_of(folder), context=32), "", PROMPT, N_TOKENS)
    assert len(set(expected.ids)) > 1, "a model that always says the same proves little"
    for board, (board_name, kernels, runner) in BOARDS.items():
        program = build(folder, board_name, kernels, decoder, tmp_path / board, monkeypatch)
        command = [*runner, str(program), str(N_TOKENS), *map(str, PROMPT)]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
        assert (tuple(map(int, said[:-1])), said[-1]) == (expected.ids, expected.logits_hash), board


def test_a_model_without_a_feature_has_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoder: Path
) -> None:
    """Generated C holds only what the model needs: a plain Mixtral names no feature, and no feature names another."""
    monkeypatch.setattr(render, "data_dir", lambda name: decoder)
    board, toolchain = target("x86-64-v3")
    words = {
        "q_bias",
        "o_bias",
        "q_norm",
        "shared",
        "dense =",
        "selection_bias",
        "window =",
        "SCORING",
        "TOP_GROUPS",
        "_SCALE ",
        "norm_bias",
        "sinks",
        "router_bias",
        "up_bias",
        "SWIGLU",
        "head_bias",
        "ROUTER_THRESHOLD",
    }
    plain = write_model_folder(random_quantized(), tmp_path / "plain-model")
    tree = render.render_tree(plain, board, toolchain, OPTIONS, GOLDEN, TOKENIZER, tmp_path / "plain")
    text = "".join((tree.path / "generated" / file).read_text() for file in ("model_config.h", "model_tables.c"))
    assert [word for word in words if word in text.replace("ATTENTION_SCALE ", "")] == []
    config = replace(AWKWARD_CONFIG, qkv_bias=True)
    biased = write_model_folder(random_quantized(config), tmp_path / "biased-model")
    tree = render.render_tree(biased, board, toolchain, OPTIONS, GOLDEN, TOKENIZER, tmp_path / "biased")
    text = "".join((tree.path / "generated" / file).read_text() for file in ("model_config.h", "model_tables.c"))
    assert [word for word in sorted(words) if word in text.replace("ATTENTION_SCALE ", "")] == ["q_bias"]


def test_a_debug_build_without_experts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoder: Path
) -> None:
    monkeypatch.setattr(render, "data_dir", lambda name: decoder)
    folder = write_model_folder(feature_model("no-experts"), tmp_path / "model")
    options = BuildOptions(context=32, max_threads=2, debug=("timing",))
    with pytest.raises(RenderError, match="--debug timing: this mixtral model has no experts"):
        render.render_tree(folder, *target("x86-64-v3"), options, GOLDEN, TOKENIZER, tmp_path / "out")
