"""Every configuration that we accept is exact: the reference against transformers' own class of its family, in fp32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colibri_build.checkpoint.reader import read_checkpoint
from families import CONFIGURATIONS, compare, write_checkpoint

KL_LIMIT = 1e-5


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_is_exact(tmp_path: Path, name: str) -> None:
    found = compare(name, tmp_path)
    assert found.mean_kl <= KL_LIMIT
    assert found.routing_equal == found.positions
    assert found.differing <= set(found.near_ties), f"near ties by position: {found.near_ties}"
    if not found.near_ties:
        assert found.answers_equal


@pytest.mark.parametrize(
    "name", [name for name, (kind, _) in CONFIGURATIONS.items() if "moe" in kind or kind == "mixtral"]
)
def test_the_fused_form_of_a_checkpoint_is_the_same_model(tmp_path: Path, name: str) -> None:
    published = read_checkpoint(write_checkpoint(name, tmp_path / "published"))
    fused = read_checkpoint(write_checkpoint(name, tmp_path / "fused", fused=True))
    assert fused.config == published.config
    for tensor in published.tensors:
        np.testing.assert_array_equal(fused.tensors[tensor], published.tensors[tensor])
