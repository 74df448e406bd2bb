"""Every configuration that we accept is exact: the reference against transformers' own class of its family, in fp32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from colibri_build.checkpoint.reader import read_checkpoint
from families import CONFIGURATIONS, PROMPT, compare, write_checkpoint
from support.decoder_builds import answers_by_board, copy_decoder

KL_LIMIT = 1e-5


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_decoder(tmp_path_factory.mktemp("decoder"))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_is_exact(tmp_path: Path, name: str, decoder: Path) -> None:
    """Against transformers, and from there on to every board: the firmware's bits are the reference's."""
    found = compare(name, tmp_path)
    assert found.mean_kl <= KL_LIMIT
    assert found.routing_equal == found.positions
    assert found.differing <= set(found.near_ties), f"near ties by position: {found.near_ties}"
    if not found.near_ties:
        assert found.answers_equal
    expected = (found.answer.ids, found.answer.logits_hash)
    for board, answer in answers_by_board(found.model, decoder, tmp_path / "boards", PROMPT, len(expected[0])).items():
        assert answer == expected, board


def test_mxfp4_experts_are_what_transformers_reads(tmp_path: Path) -> None:
    """transformers dequantizes a published gpt-oss while it loads it: every value, of every expert, is the same."""
    checkpoint = write_checkpoint("gpt-oss-mxfp4", tmp_path / "checkpoint")
    found = read_checkpoint(checkpoint)
    loaded = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).state_dict()
    for layer in range(found.config.n_layers):
        prefix = f"model.layers.{layer}.mlp.experts"
        gate_up, down = (loaded[f"{prefix}.{name}_proj"].numpy() for name in ("gate_up", "down"))
        for expert in range(found.config.n_experts):
            ours = f"layers.{layer}.experts.{expert}"
            np.testing.assert_array_equal(found.tensors[f"{ours}.gate"], gate_up[expert, :, 0::2].T)
            np.testing.assert_array_equal(found.tensors[f"{ours}.up"], gate_up[expert, :, 1::2].T)
            np.testing.assert_array_equal(found.tensors[f"{ours}.down"], down[expert].T)
            codes = found.packed[f"{ours}.up"].load()
            assert codes is not None
            multiplied = codes.codes * np.repeat(codes.scales.astype(np.float32), 32, axis=1)
            np.testing.assert_array_equal(multiplied, found.tensors[f"{ours}.up"])


@pytest.mark.parametrize(
    "name", [name for name, (kind, _) in CONFIGURATIONS.items() if "moe" in kind or kind == "mixtral"]
)
def test_the_fused_form_of_a_checkpoint_is_the_same_model(tmp_path: Path, name: str) -> None:
    published = read_checkpoint(write_checkpoint(name, tmp_path / "published"))
    fused = read_checkpoint(write_checkpoint(name, tmp_path / "fused", fused=True))
    assert fused.config == published.config
    for tensor in published.tensors:
        np.testing.assert_array_equal(fused.tensors[tensor], published.tensors[tensor])
