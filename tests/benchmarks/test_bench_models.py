"""What both sides get: other weights on one side would make the comparison one of different models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from suite import mixtral, peer, peer_file, tensors
from suite.mixtral import Shape

from colibri_build.checkpoint.reader import read_checkpoint

ROOT = Path(__file__).parents[2]
SHAPE = Shape(dim=64, hidden=96, experts=4, top_k=2, layers=2, heads=4, kv_heads=2, vocab=800, context=64)
TOKENIZER = (ROOT / "examples/cabin_voice/model/tokenizer.json").read_text()
TINY = 6e-8  # what F16 may drop of a bf16 number below its normal range


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def checkpoint() -> tensors.Checkpoint:
    return mixtral.random_checkpoint(SHAPE, 7, TOKENIZER)


@pytest.fixture(scope="module")
def published(checkpoint: tensors.Checkpoint, folder: Path) -> Path:
    target = folder / "published"
    target.mkdir()
    tensors.write_folder(checkpoint, target)
    return target


@pytest.fixture(scope="module")
def peers(checkpoint: tensors.Checkpoint, folder: Path) -> Path:
    target = folder / "f16.gguf"
    peer_file.write_gguf(checkpoint, target)
    return target


def test_both_sides_get_the_same_weights(published: Path, peers: Path) -> None:
    """The builder reads both files: names, the order of rotary rows, experts in one tensor, all must come out alike."""
    ours, theirs = read_checkpoint(published), read_checkpoint(peers)
    assert set(ours.tensors) == set(theirs.tensors)
    for name, values in ours.tensors.items():
        np.testing.assert_allclose(theirs.tensors[name], values, rtol=0, atol=TINY, err_msg=name)


def test_both_sides_compute_the_same_network(published: Path, peers: Path) -> None:
    ours, theirs = read_checkpoint(published).config, read_checkpoint(peers).config
    assert ours.rms_eps == pytest.approx(theirs.rms_eps)  # a GGUF holds it in f32
    assert ours == replace(theirs, rms_eps=ours.rms_eps)


def test_every_machine_makes_the_same_weights(checkpoint: tensors.Checkpoint) -> None:
    """Figures of two machines are of one model: a tensor depends on the seed and its name alone."""
    again = mixtral.random_checkpoint(SHAPE, 7, TOKENIZER)
    name = "model.layers.1.block_sparse_moe.experts.2.w1.weight"
    first = checkpoint.tensor(name).make()
    np.testing.assert_array_equal(first, again.tensor(name).make())
    other = checkpoint.tensor(name.replace("experts.2", "experts.3")).make()
    assert not np.array_equal(first, other)


def test_folders_come_back_as_they_were_written(checkpoint: tensors.Checkpoint, published: Path) -> None:
    read = tensors.read_folder(published)
    for tensor in read.tensors:
        np.testing.assert_array_equal(tensor.make(), checkpoint.tensor(tensor.name).make())


def test_rounding_to_bf16_is_to_nearest_even() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0xBF807FFF], np.uint32)
    assert tensors.to_bf16(bits.view(np.float32)).tolist() == [0x3F80, 0x3F82, 0x3F81, 0xBF80]


def test_bytes_of_a_token_count_two_of_four_experts(peers: Path) -> None:
    """The part of the read bandwidth is of the bytes that are read, not of the file."""
    stored = {tensor.name: int(tensor.n_bytes) for tensor in gguf.GGUFReader(peers).tensors}
    experts = sum(n for name, n in stored.items() if "_exps" in name)
    embedding = stored["token_embd.weight"]
    wanted = sum(stored.values()) - experts // 2 - embedding + embedding // SHAPE.vocab
    assert peer.active_bytes(peers) == wanted


def test_active_weights_are_those_that_a_token_multiplies() -> None:
    """230 M of model a, by hand: attention, two experts and the router of 8 layers, and the head."""
    shape = Shape(1024, 3584, 8, 2, 8, 16, 4, 32000, 4096)
    layer = 2 * 1024 * 1024 + 2 * 256 * 1024 + 2 * 3 * 3584 * 1024 + 8 * 1024
    assert shape.active_weights() == 8 * layer + 32000 * 1024
