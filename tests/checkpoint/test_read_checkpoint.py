"""A checkpoint folder gives exactly the values that were written, or one clear error."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.errors import CheckpointError
from colibri_build.tensor_specs import tensor_specs
from support.safetensors_file import entry, stored_values, write_safetensors
from support.tiny_checkpoint import tiny_config, tiny_tensors, write_json, write_tiny_checkpoint, write_weights

OURS = {
    "embedding": "model.embed_tokens.weight",
    "layers.1.attn_norm": "model.layers.1.input_layernorm.weight",
    "layers.0.q": "model.layers.0.self_attn.q_proj.weight",
    "layers.0.k": "model.layers.0.self_attn.k_proj.weight",
    "layers.0.v": "model.layers.0.self_attn.v_proj.weight",
    "layers.1.o": "model.layers.1.self_attn.o_proj.weight",
    "layers.0.ffn_norm": "model.layers.0.post_attention_layernorm.weight",
    "layers.1.router": "model.layers.1.block_sparse_moe.gate.weight",
    "layers.1.experts.3.gate": "model.layers.1.block_sparse_moe.experts.3.w1.weight",
    "layers.1.experts.3.up": "model.layers.1.block_sparse_moe.experts.3.w3.weight",
    "layers.1.experts.3.down": "model.layers.1.block_sparse_moe.experts.3.w2.weight",
    "final_norm": "model.norm.weight",
    "lm_head": "lm_head.weight",
}
W1 = "model.layers.1.block_sparse_moe.experts.2.w1.weight"
GATE = "model.layers.0.block_sparse_moe.gate.weight"


def _refused(folder: Path, message: str) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(folder)
    assert caught.value.what == message.format(folder=folder)
    assert caught.value.hint
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("dtype, stored", [("f32", "F32"), ("f16", "F16"), ("bf16", "BF16")])
def test_every_value_is_read_exactly(tmp_path, dtype, stored, n_shards):
    model = read_checkpoint(write_tiny_checkpoint(tmp_path / "tiny", dtype=dtype, n_shards=n_shards))
    written = tiny_tensors(tiny_config())
    assert list(model.tensors) == [spec.name for spec in tensor_specs(model.config)]
    for ours, published in OURS.items():
        values = model.tensors[ours]
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, stored_values(written[published], stored), err_msg=ours)
    assert model.source == "tiny"


def test_the_safetensors_library_finds_the_same_values(tmp_path):
    """The judge of our header arithmetic is the library that writes the files."""
    model = read_checkpoint(write_tiny_checkpoint(tmp_path, dtype="f16"))
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        assert len(list(file.keys())) == len(model.tensors)
        for ours, published in OURS.items():
            np.testing.assert_array_equal(model.tensors[ours], file.get_tensor(published).astype(np.float32))


def test_a_sharded_checkpoint_is_the_same_model(tmp_path):
    one = read_checkpoint(write_tiny_checkpoint(tmp_path / "one"))
    many = read_checkpoint(write_tiny_checkpoint(tmp_path / "many", n_shards=5))
    assert one.config == many.config
    assert all(np.array_equal(one.tensors[name], many.tensors[name]) for name in one.tensors)


@pytest.mark.parametrize(
    "overrides, shape",
    [
        ({"head_dim": 32}, (128, 64)),
        ({"num_key_value_heads": 1, "num_local_experts": 3, "hidden_size": 44, "head_dim": 6}, (24, 44)),
    ],
)
def test_shapes_follow_the_configuration(tmp_path, overrides, shape):
    model = read_checkpoint(write_tiny_checkpoint(tmp_path, **overrides))
    assert model.tensors["layers.1.q"].shape == shape
    for spec in tensor_specs(model.config):
        assert model.tensors[spec.name].shape == spec.shape


def test_tied_embeddings_need_no_head(tmp_path):
    model = read_checkpoint(write_tiny_checkpoint(tmp_path, tie_word_embeddings=True))
    assert model.config.tied_embeddings
    assert "lm_head" not in model.tensors


def test_tied_embeddings_with_an_equal_head_are_fine(tmp_path):
    copy = _change(lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"]}))
    model = read_checkpoint(write_tiny_checkpoint(tmp_path, tie_word_embeddings=True, edit=copy))
    assert "lm_head" not in model.tensors


def test_rope_buffers_of_old_checkpoints_are_ignored(tmp_path):
    buffers = {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": np.ones(8, np.float32) for i in range(2)}
    model = read_checkpoint(write_tiny_checkpoint(tmp_path, edit=_change(lambda t: t.update(buffers))))
    assert len(model.tensors) == len(tiny_tensors(tiny_config()))


def test_the_digest_covers_every_input_file(tmp_path):
    """A cached quantization must not outlive a change of any of them."""
    folder = write_tiny_checkpoint(tmp_path / "a", n_shards=2)
    digests = {
        read_checkpoint(folder).digest,
        read_checkpoint(write_tiny_checkpoint(tmp_path / "b", n_shards=2)).digest,
    }
    assert len(digests) == 1
    write_json(folder / "generation_config.json", {"eos_token_id": 0})
    digests.add(read_checkpoint(folder).digest)
    write_json(folder / "config.json", tiny_config(rms_norm_eps=1e-6))
    digests.add(read_checkpoint(folder).digest)
    write_tiny_checkpoint(folder, n_shards=2, seed=1)
    digests.add(read_checkpoint(folder).digest)
    assert len(digests) == 4


def test_values_are_loaded_when_they_are_asked_for(tmp_path):
    """Opening a checkpoint of 90 GB must not take 90 GB."""
    model = read_checkpoint(write_tiny_checkpoint(tmp_path))
    path = tmp_path / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-4:] = struct.pack("<f", 123.0)
    path.write_bytes(data)
    assert model.tensors["lm_head"][-1, -1] == 123.0


def _change(change: Callable[[Any], Any]) -> Callable[[Any], None]:
    def edit(tensors: Any) -> None:
        change(tensors)

    return edit


def _poke(name: str, *values: float) -> Callable[[Any], None]:
    def edit(tensors: Any) -> None:
        tensors[name][2, 5 : 5 + len(values)] = values

    return edit


def _fuse(tensors: Any) -> None:
    for name in [name for name in tensors if ".experts." in name]:
        del tensors[name]
    tensors["model.layers.0.mlp.experts.gate_up_proj"] = np.zeros((4, 192, 64), np.float32)


FILE = "{folder}/model.safetensors"
TENSOR_FAULTS: dict[str, tuple[Callable[[Any], Any], dict[str, Any], str]] = {
    "missing": (
        lambda t: t.pop(W1),
        {},
        f"1 of 41 tensors are missing; the first: {W1} [96, 64]",
    ),
    "missing head": (
        lambda t: t.pop("lm_head.weight"),
        {},
        "1 of 41 tensors are missing; the first: lm_head.weight [301, 64]",
    ),
    "bias": (
        lambda t: t.update({"model.layers.0.self_attn.q_proj.bias": np.zeros(64, np.float32)}),
        {},
        FILE + ": 1 tensors that config.json has no use for; the first: model.layers.0.self_attn.q_proj.bias [64]",
    ),
    "layers dropped": (
        lambda t: t.update({"model.layers.2.input_layernorm.weight": np.ones(64, np.float32)}),
        {},
        FILE + ": 1 tensors that config.json has no use for; the first: model.layers.2.input_layernorm.weight [64]",
    ),
    "half of the experts fused": (
        _fuse,
        {},
        "16 of 34 tensors are missing; the first: model.layers.0.block_sparse_moe.experts.0.w2.weight [64, 96]",
    ),
    "transposed": (
        lambda t: t.update({W1: t[W1].T.copy()}),
        {},
        FILE + f": tensor {W1} has shape [64, 96], config.json asks for [96, 64]",
    ),
    "vocabulary larger than the head": (
        lambda t: t.update({"lm_head.weight": t["lm_head.weight"][:-1].copy()}),
        {},
        FILE + ": tensor lm_head.weight has shape [300, 64], config.json asks for [301, 64]",
    ),
    "NaN": (
        _poke(W1, np.nan, 0, -np.inf),
        {},
        FILE + f": tensor {W1} holds 2 values that are NaN or infinite; the first at [2, 5]",
    ),
    "NaN in f16": (
        _poke(GATE, np.nan),
        {"dtype": "f16"},
        FILE + f": tensor {GATE} holds 1 values that are NaN or infinite; the first at [2, 5]",
    ),
    "infinity in bf16": (
        _poke(GATE, np.inf, np.inf),
        {"dtype": "bf16"},
        FILE + f": tensor {GATE} holds 2 values that are NaN or infinite; the first at [2, 5]",
    ),
    "tied but another head": (
        lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"] * 2}),
        {"tie_word_embeddings": True},
        FILE + ': tensor lm_head.weight differs from model.embed_tokens.weight, but "tie_word_embeddings" is true',
    ),
}


@pytest.mark.parametrize("change, options, message", TENSOR_FAULTS.values(), ids=TENSOR_FAULTS.keys())
def test_a_wrong_tensor_is_refused_by_name(tmp_path, change, options, message):
    write_tiny_checkpoint(tmp_path, edit=_change(change), **options)
    _refused(tmp_path, message)


def test_the_largest_finite_values_are_no_fault(tmp_path):
    for dtype, largest in (("f16", 65504.0), ("bf16", 3.3895314e38), ("f32", 3.4028235e38)):
        model = read_checkpoint(write_tiny_checkpoint(tmp_path / dtype, dtype=dtype, edit=_poke(GATE, largest)))
        assert model.tensors["layers.0.router"][2, 5] == np.float32(largest)


@pytest.mark.parametrize(
    "overrides, message",
    [
        ({"num_local_experts": 3}, "6 tensors that config.json has no use for"),
        ({"hidden_size": 32, "head_dim": 16}, "tensor model.embed_tokens.weight has shape [301, 64]"),
        ({"num_hidden_layers": 3}, "19 of 60 tensors are missing"),
        (
            {"num_hidden_layers": 2**31 - 1, "num_local_experts": 2**31 - 1},
            "config.json asks for 2147483647 layers of 2147483647 experts, the files hold 41 tensors",
        ),
    ],
)
def test_a_config_of_another_checkpoint_is_refused(tmp_path, overrides, message):
    write_tiny_checkpoint(tmp_path)
    write_json(tmp_path / "config.json", tiny_config(**overrides))
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(tmp_path)
    assert message in caught.value.what


def test_integer_weights_are_refused(tmp_path):
    write_tiny_checkpoint(tmp_path)
    entries = {name: entry(values) for name, values in tiny_tensors(tiny_config()).items()}
    entries[GATE] = ("I8", (4, 64), bytes(256))
    write_weights(tmp_path, entries)
    _refused(tmp_path, FILE + f": tensor {GATE} has dtype I8, supported are F32, F16, BF16")


def test_a_missing_folder_is_refused(tmp_path):
    _refused(tmp_path / "x", "{folder}: no such folder")


def test_a_folder_without_config_is_refused(tmp_path):
    _refused(tmp_path, "{folder}: no config.json")


@pytest.mark.parametrize(
    "rename, message",
    [
        ("pytorch_model.bin", "{folder}: holds PyTorch files (pytorch_model.bin), no model.safetensors"),
        ("model-q4.gguf", "{folder}: holds GGUF files (model-q4.gguf), no model.safetensors"),
        (
            "model-00001-of-00002.safetensors",
            "{folder}: model-00001-of-00002.safetensors is there, but no model.safetensors.index.json",
        ),
        ("weights.txt", "{folder}: neither model.safetensors nor model.safetensors.index.json"),
    ],
)
def test_weights_in_another_form_are_refused(tmp_path, rename, message):
    write_tiny_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / rename)
    hint = _refused(tmp_path, message).hint
    assert (hint == "name the .gguf file itself") == rename.endswith(".gguf")


def _header(length: int, text: bytes) -> bytes:
    return struct.pack("<Q", length) + text


HOLE = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}).encode()
WRONG = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
DAMAGED_FILES = {
    "empty": (b"", ": truncated: 0 bytes, its header promises 8"),
    "header cut": (_header(100, b"{"), ": truncated: 9 bytes, its header promises 108"),
    "no JSON": (_header(2, b"{x"), ": no safetensors header (Expecting property name enclosed in double quotes: "),
    "no object": (_header(2, b"[]"), ": no safetensors header ("),
    "no tensor": (_header(2, b"{}"), ": holds no tensor"),
    "no offsets": (_header(25, b'{"a":{"data_offsets":[]}}'), ": no safetensors header ("),
    "endless offsets": (_header(33, b'{"a":{"data_offsets":[Infinity]}}'), ": no safetensors header ("),
    "entry without shape": (_header(17, b'{"a":{"dtype":1}}'), ": no safetensors header ("),
    "hole": (_header(len(HOLE), HOLE) + bytes(8), ": damaged ("),
    "shape against size": (_header(len(WRONG), WRONG) + bytes(8), ": damaged ("),
}


@pytest.mark.parametrize("data, message", DAMAGED_FILES.values(), ids=DAMAGED_FILES.keys())
def test_a_damaged_file_is_refused(tmp_path, data, message):
    write_tiny_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(tmp_path)
    assert caught.value.what.startswith(f"{tmp_path / 'model.safetensors'}{message}")
    assert caught.value.hint == "download the file again"


@pytest.mark.parametrize("n_shards, file", [(1, "model.safetensors"), (2, "model-00002-of-00002.safetensors")])
def test_a_truncated_download_is_refused(tmp_path, n_shards, file):
    """A conversion that wrote 2.3 of 3.95 GB must not become a firmware."""
    write_tiny_checkpoint(tmp_path, n_shards=n_shards)
    data = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(data[: len(data) * 6 // 10])
    _refused(tmp_path, f"{tmp_path / file}: truncated: {len(data) * 6 // 10} bytes, its header promises {len(data)}")


def test_a_name_twice_in_one_file_is_refused(tmp_path):
    """The library would silently take the second."""
    write_tiny_checkpoint(tmp_path)
    tensors = tiny_tensors(tiny_config())
    pairs = [(name, entry(values)) for name, values in tensors.items()]
    write_safetensors(tmp_path / "model.safetensors", [*pairs, (GATE, entry(tensors[GATE]))])
    _refused(tmp_path, FILE + f": no safetensors header (tensor {GATE} occurs twice)")


def test_a_clone_without_large_files_is_refused(tmp_path):
    write_tiny_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:12\n")
    assert _refused(tmp_path, FILE + ": a Git LFS pointer, not the file itself").hint == "run `git lfs pull`"


def _edit_index(folder: Path, change: Callable[[dict[str, str]], Any]) -> None:
    path = folder / "model.safetensors.index.json"
    value = json.loads(path.read_text())
    change(value["weight_map"])
    write_json(path, value)


ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "{folder}/model.safetensors.index.json"
INDEX_FAULTS = {
    "tensor not listed": (lambda m: m.pop(GATE), f"{INDEX}: puts tensor {GATE} in no file, but it is in {TWO}"),
    "listed elsewhere": (
        lambda m: m.update({GATE: ONE}),
        f"{INDEX}: puts tensor {GATE} in {ONE}, but it is in {TWO}",
    ),
    "listed only": (lambda m: m.update({"a.b": ONE}), f"{INDEX}: puts tensor a.b in {ONE}, but it is in no file"),
    "no file of this folder": (
        lambda m: m.update({GATE: "../x.safetensors"}),
        f"{INDEX}: tensor {GATE} is in '../x.safetensors', which is no safetensors file of this folder",
    ),
    "no name": (
        lambda m: m.update({GATE: 3}),
        f"{INDEX}: tensor {GATE} is in 3, which is no safetensors file of this folder",
    ),
    "missing shard": (
        lambda m: m.update({GATE: "model-00003-of-00003.safetensors"}),
        "{folder}: 1 of 3 shards are missing: model-00003-of-00003.safetensors",
    ),
    "empty": (lambda m: m.clear(), f'{INDEX}: "weight_map" is no object of tensor names'),
}


@pytest.mark.parametrize("change, message", INDEX_FAULTS.values(), ids=INDEX_FAULTS.keys())
def test_an_index_that_disagrees_with_the_shards_is_refused(tmp_path, change, message):
    write_tiny_checkpoint(tmp_path, n_shards=2)
    _edit_index(tmp_path, change)
    _refused(tmp_path, message)


def test_a_missing_shard_is_refused(tmp_path):
    write_tiny_checkpoint(tmp_path, n_shards=3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    _refused(tmp_path, "{folder}: 1 of 3 shards are missing: model-00002-of-00003.safetensors")


def test_a_tensor_in_two_shards_is_refused(tmp_path):
    write_tiny_checkpoint(tmp_path, n_shards=2)
    (tmp_path / ONE).write_bytes((tmp_path / TWO).read_bytes())
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(tmp_path)
    assert caught.value.what == (f"tensor model.layers.0.input_layernorm.weight is in {ONE} and again in {TWO}")


def test_a_single_file_beside_an_index_is_refused(tmp_path):
    """Which of the two belongs to config.json cannot be known."""
    write_tiny_checkpoint(tmp_path)
    write_tiny_checkpoint(tmp_path, n_shards=2)
    _refused(tmp_path, "{folder}: holds both model.safetensors and model.safetensors.index.json")


def test_paths_with_spaces_and_umlauts_are_read(tmp_path):
    model = read_checkpoint(write_tiny_checkpoint(tmp_path / "mein Modell ä"))
    assert model.source == "mein Modell ä"


def test_a_checkpoint_without_tokenizer_is_refused(tmp_path):
    write_tiny_checkpoint(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        read_checkpoint(tmp_path)
