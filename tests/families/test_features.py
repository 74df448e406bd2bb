"""Everything that only some families have, in the reference's bits on portable C, AVX2 and NEON (Cortex-A53, QEMU).

tests/oracle says that the reference is right; here the firmware's decoder must be the reference, feature by feature.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.artifacts import BuildOptions
from colibri_build.errors import RenderError
from colibri_build.pack.reader import read_model_folder
from colibri_build.pack.writer import write_model_folder
from colibri_build.reference.generate import generate
from colibri_build.reference.model import ReferenceModel
from support.decoder_builds import ask_decoder, build_decoder, copy_decoder, model_of, render_decoder
from support.features import FEATURES, feature_model
from support.tiny_quantized import AWKWARD_CONFIG, random_quantized

PROMPT = (5, 17, 200, 45, 9, 211, 77, 104)
N_TOKENS = 6
BATCHES = ((8,), (1, 5, 2))  # how the prompt is cut; test_batches.py cuts longer ones


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_decoder(tmp_path_factory.mktemp("decoder"))


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_has_the_references_bits(name: str, decoder: Path, tmp_path: Path) -> None:
    write_model_folder(feature_model(name), tmp_path / "model")
    folder = read_model_folder(tmp_path / "model")
    expected = generate(ReferenceModel(model_of(folder), context=32), "", PROMPT, N_TOKENS)
    assert len(set(expected.ids)) > 1, "a model that always says the same proves little"
    for board in ("portable", "avx2", "cortex-a53"):
        program = build_decoder(folder, board, decoder, tmp_path / board)
        assert ask_decoder(program, board, PROMPT, N_TOKENS) == (expected.ids, expected.logits_hash), board
        for batches in BATCHES:
            answer = ask_decoder(program, board, PROMPT, N_TOKENS, batches)
            assert answer == (expected.ids, expected.logits_hash), (board, batches)


def test_a_model_without_a_feature_has_nothing_of_it(tmp_path: Path, decoder: Path) -> None:
    """Generated C holds only what the model needs: a plain Mixtral names no feature, and no feature names another."""
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
    tree = render_decoder(plain, "x86-64-v3", "avx2", decoder, tmp_path / "plain")
    text = "".join((tree.path / "generated" / file).read_text() for file in ("model_config.h", "model_tables.c"))
    assert [word for word in words if word in text.replace("ATTENTION_SCALE ", "")] == []
    config = replace(AWKWARD_CONFIG, qkv_bias=True)
    biased = write_model_folder(random_quantized(config), tmp_path / "biased-model")
    tree = render_decoder(biased, "x86-64-v3", "avx2", decoder, tmp_path / "biased")
    text = "".join((tree.path / "generated" / file).read_text() for file in ("model_config.h", "model_tables.c"))
    assert [word for word in sorted(words) if word in text.replace("ATTENTION_SCALE ", "")] == ["q_bias"]


def test_a_debug_build_without_experts_is_refused(tmp_path: Path, decoder: Path) -> None:
    folder = write_model_folder(feature_model("no-experts"), tmp_path / "model")
    options = BuildOptions(context=32, max_threads=2, debug=("timing",))
    with pytest.raises(RenderError, match="--debug timing: this mixtral model has no experts"):
        render_decoder(folder, "x86-64-v3", "avx2", decoder, tmp_path / "out", options)
