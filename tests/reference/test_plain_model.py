"""docs/numerics.md and FORMAT.md are enough to write the decoder again, and the reference computes what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri_build.artifacts import Format, Kind
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.pack.reader import load_quantized
from colibri_build.pack.writer import write_model_folder
from colibri_build.quantize.engine import quantize_model
from colibri_build.quantize.options import QuantizeOptions
from colibri_build.reference import matrix
from colibri_build.reference.model import ReferenceModel
from support.features import feature_model
from support.model_folder_decoder import decode_folder
from support.plain_model import PlainModel
from support.tiny_checkpoint import write_tiny_checkpoint

SHAPE = {"hidden_size": 44, "intermediate_size": 70, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 6}
CASES: list[tuple[dict[str, Any], int, dict[Kind, Format]]] = [
    ({"sliding_window": 3}, 16, {}),
    ({"num_experts_per_tok": 3}, 8, {Kind.ATTENTION: Format.W4, Kind.LM_HEAD: Format.F16}),
    ({}, 16, {Kind.EXPERT: Format.W8, Kind.EMBEDDING: Format.F16}),
]


@pytest.mark.parametrize(("config", "bits", "formats"), CASES, ids=["window", "a8", "w8"])
def test_the_reference_is_what_the_documents_say(
    tmp_path: Path, config: dict[str, Any], bits: int, formats: dict[Kind, Format]
) -> None:
    model = read_checkpoint(write_tiny_checkpoint(tmp_path / "tiny", **SHAPE, **config))
    options = QuantizeOptions(method="rtn", group_size=32, formats=formats)
    folder = write_model_folder(quantize_model(model, options)[0], tmp_path / "folder")
    reference = ReferenceModel(load_quantized(folder, read_tokenizer_bytes), activation_bits=bits)
    written = json.loads((folder.path / "config.json").read_text(encoding="utf-8"))
    plain = PlainModel(written["model"], written["group_size"], decode_folder(folder.path), bits)
    _compare(reference, plain)


def test_large_matrices_are_multiplied_run_by_run_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Widened as a whole, a head of 150,000 tokens would take gigabytes."""
    monkeypatch.setattr(matrix, "_CACHED_CODES", 200)
    folder = write_model_folder(feature_model("phimoe"), tmp_path / "folder")
    written = json.loads((folder.path / "config.json").read_text(encoding="utf-8"))
    plain = PlainModel(written["model"], written["group_size"], decode_folder(folder.path), 16)
    _compare(ReferenceModel(load_quantized(folder, read_tokenizer_bytes)), plain)


@pytest.mark.parametrize("name", ["phimoe", "sparse-mixer", "gpt-oss"])
def test_the_documents_say_what_some_families_have(tmp_path: Path, name: str) -> None:
    """LayerNorm, biases, sinks, the sparse mixer and the clamped SwiGLU, from numerics.md and FORMAT.md alone."""
    folder = write_model_folder(feature_model(name), tmp_path / "folder")
    written = json.loads((folder.path / "config.json").read_text(encoding="utf-8"))
    plain = PlainModel(written["model"], written["group_size"], decode_folder(folder.path), 16)
    _compare(ReferenceModel(load_quantized(folder, read_tokenizer_bytes)), plain)


def _compare(reference: ReferenceModel, plain: PlainModel) -> None:
    for token in (5, 17, 200, 45, 9):
        step = reference.step(token)
        logits, routing = plain.step(token)
        assert step.logits is not None
        assert np.asarray(logits, np.float32).tobytes() == step.logits.tobytes()
        assert [(list(s.experts), list(s.weights)) for s in step.routing] == routing
