"""A GGUF file gives the values that its own library dequantizes, under the names of the checkpoint that it came from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

from colibri_build.artifacts import GroupCodes
from colibri_build.checkpoint.gguf_finite import bad_values
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.checkpoint.source import model_name
from colibri_build.errors import CheckpointError
from support.gguf_file import tiny_gguf_tensors, tiny_metadata, write_gguf, write_tiny_gguf
from support.tiny_checkpoint import tiny_config, write_tiny_checkpoint

Kind = GGMLQuantizationType
WRITTEN = [Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.MXFP4]
# The library reads these, but does not make them. Blocks of bytes below 0x40 hold finite scales at any place.
READ_ONLY = [
    *(Kind.Q2_K, Kind.Q3_K, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K, Kind.IQ4_NL, Kind.IQ4_XS),
    *(Kind.IQ2_XXS, Kind.IQ2_XS, Kind.IQ2_S, Kind.IQ3_XXS, Kind.IQ3_S, Kind.IQ1_S),
]


def _values(codes: GroupCodes) -> np.ndarray:
    """What the codes stand for, in binary64."""
    zeros = np.zeros_like(codes.scales, np.float64) if codes.zeros is None else codes.zeros.astype(np.float64)
    spread = [np.repeat(part.astype(np.float64), codes.group_size, axis=1) for part in (zeros, codes.scales)]
    return (codes.codes.astype(np.float64) - spread[0]) * spread[1]


def test_a_file_is_the_model_that_its_folder_is(tmp_path):
    folder = read_checkpoint(write_tiny_checkpoint(tmp_path / "folder"))
    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf"))
    assert model.config == folder.config
    assert model.source == "tiny"
    assert list(model.tensors) == list(folder.tensors)
    for name in folder.tensors:
        np.testing.assert_array_equal(model.tensors[name], folder.tensors[name], err_msg=name)
    for field in ("tokens", "merges", "added", "splits", "prefix_ids", "suffix_ids", "pretokenizer"):
        assert getattr(model.tokenizer, field) == getattr(folder.tokenizer, field), field


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_every_type_has_the_values_that_its_library_says(tmp_path, kind):
    """The q matrix, whose rows are in another order, and an expert, which is a part of a tensor."""
    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", kind=kind))
    folder = read_checkpoint(write_tiny_checkpoint(tmp_path / "folder"))
    stored, _ = tiny_gguf_tensors(tiny_config())["blk.1.ffn_down_exps.weight"]
    expected = dequantize(quantize(stored, kind), kind).reshape(stored.shape)
    np.testing.assert_array_equal(model.tensors["layers.1.experts.3.down"], expected[3])
    for name in ("layers.0.q", "layers.0.k", "layers.1.v", "lm_head", "embedding"):
        whole = dequantize(quantize(folder.tensors[name], kind), kind).reshape(folder.tensors[name].shape)
        np.testing.assert_array_equal(model.tensors[name], whole, err_msg=name)


@pytest.mark.parametrize("kind", READ_ONLY, ids=lambda kind: kind.name)
def test_types_that_only_others_write_are_dequantized_by_the_library(tmp_path, kind):
    block, size = GGML_QUANT_SIZES[kind]
    stored = np.random.default_rng(kind).integers(0, 0x40, (4, 96, 256 // block * size), np.uint8)

    def edit(tensors):
        tensors["blk.0.ffn_up_exps.weight"] = (stored, kind)
        tensors["blk.0.ffn_gate_exps.weight"] = (stored, kind)
        tensors["blk.1.ffn_up_exps.weight"] = (stored, kind)
        tensors["blk.1.ffn_gate_exps.weight"] = (stored, kind)

    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", edit=edit, hidden_size=256, head_dim=64))
    np.testing.assert_array_equal(model.tensors["layers.1.experts.2.up"], dequantize(stored[2], kind))
    assert "layers.1.experts.2.up" not in model.packed


@pytest.mark.parametrize("kind, bits", [(Kind.Q8_0, 8), (Kind.Q4_0, 4)], ids=["Q8_0", "Q4_0"])
def test_codes_are_the_values_exactly(tmp_path, kind, bits):
    """A code, scale or zero point that is off by one is a different model, and nothing else would tell."""
    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", kind=kind))
    assert {"embedding", "lm_head", "layers.0.q", "layers.1.experts.3.down"} <= set(model.packed)
    assert not {"final_norm", "layers.0.router"} & set(model.packed)
    for name, packed in model.packed.items():
        assert (packed.bits, packed.group_size) == (bits, 32)
        codes = packed.load()
        assert codes is not None
        assert codes.codes.dtype == (np.int8 if bits == 8 else np.uint8)
        assert codes.codes.shape == model.tensors[name].shape
        np.testing.assert_array_equal(_values(codes), model.tensors[name], err_msg=name)
    if bits == 4:
        codes = model.packed["lm_head"].load()
        assert codes is not None
        assert codes.zeros is not None
        assert set(codes.zeros.ravel()) == {8}
        assert (codes.scales < 0).any()
        assert (codes.scales > 0).any()


def test_q4_1_is_taken_over_only_where_its_minimum_is_a_zero_point(tmp_path):
    """The head has minima that are multiples of the scale; of an expert one block has one that is half a step off."""
    generator = np.random.default_rng(5)
    steps = generator.integers(0, 16, (301, 2))
    scales = generator.choice([0.5, 0.25, -0.125, 0.0], (301, 2)).astype(np.float16)
    blocks = np.zeros((301, 2, 20), np.uint8)
    blocks[..., 4:] = generator.integers(0, 256, (301, 2, 16))
    blocks[..., :2] = scales.view(np.uint8).reshape(301, 2, 2)
    blocks[..., 2:4] = (-steps * scales).astype(np.float16).view(np.uint8).reshape(301, 2, 2)

    def edit(tensors):
        tensors["output.weight"] = (blocks.reshape(301, 40), Kind.Q4_1)
        off = blocks.reshape(301, 40).copy()
        off[7, 2:4] = np.frombuffer(np.float16(0.3).tobytes(), np.uint8)
        tensors["token_embd.weight"] = (off, Kind.Q4_1)

    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", edit=edit))
    codes = model.packed["lm_head"].load()
    assert codes is not None
    np.testing.assert_array_equal(_values(codes), model.tensors["lm_head"])
    assert model.packed["embedding"].load() is None
    np.testing.assert_array_equal(model.tensors["lm_head"], dequantize(blocks.reshape(301, 40), Kind.Q4_1))


def test_a_code_of_minus_128_has_no_place_in_w8(tmp_path):
    def edit(tensors):
        stored = quantize(tensors["output.weight"][0], Kind.Q8_0)
        stored[3, 2] = 0x80
        tensors["output.weight"] = (stored, Kind.Q8_0)

    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", edit=edit))
    sound = read_checkpoint(write_tiny_gguf(tmp_path / "sound.gguf", kind=Kind.Q8_0))
    assert (model.packed["lm_head"].load(), sound.packed["lm_head"].load() is None) == (None, False)
    scale = sound.packed["lm_head"].load().scales[3, 0]  # type: ignore[union-attr]
    assert model.tensors["lm_head"][3, 0] == -128 * np.float32(scale)


def test_a_folder_with_one_file_is_that_file(tmp_path):
    path = write_tiny_gguf(tmp_path / "models" / "tiny.gguf")
    assert read_checkpoint(path.parent).digest == read_checkpoint(path).digest


def _shards(folder: Path, count: int = 3) -> list[Path]:
    """The tiny model in `count` files, named as they are published; the first has the metadata."""
    config = tiny_config()
    tensors = list(tiny_gguf_tensors(config).items())
    paths = []
    for number in range(count):
        split = {"split.no": number, "split.count": count, "split.tensors.count": len(tensors)}
        metadata = tiny_metadata(config) if number == 0 else {"general.architecture": "llama"}
        path = folder / f"tiny-{number + 1:05}-of-{count:05}.gguf"
        paths.append(write_gguf(path, {**metadata, **split}, dict(tensors[number::count])))
    return paths


def test_shards_are_one_model(tmp_path):
    """Whichever of them is named, or the folder that holds them."""
    paths = _shards(tmp_path / "shards")
    whole = read_checkpoint(write_tiny_gguf(tmp_path / "whole.gguf"))
    for path in (paths[0], paths[2], tmp_path / "shards"):
        model = read_checkpoint(path)
        assert model.config == whole.config
        assert list(model.tensors) == list(whole.tensors)
    for name in whole.tensors:
        np.testing.assert_array_equal(model.tensors[name], whole.tensors[name])


def test_shards_that_do_not_belong_together_are_refused(tmp_path):
    paths = _shards(tmp_path)
    paths[1].unlink()
    with pytest.raises(CheckpointError, match="1 of 3 shards are missing: tiny-00002-of-00003.gguf"):
        read_checkpoint(paths[0])
    paths[1].write_bytes(paths[2].read_bytes())
    with pytest.raises(CheckpointError, match="says that it is shard 2 of 3"):
        read_checkpoint(paths[0])
    write_gguf(paths[1], {"general.architecture": "llama", "split.no": 1, "split.count": 3}, {})
    with pytest.raises(CheckpointError, match=r"promises 23 tensors, its 3 files hold 15"):
        read_checkpoint(paths[0])


@pytest.mark.parametrize("name", ["x-00001-of-00000", "x-00004-of-00003", "x-00000-of-00003"])
def test_a_shard_number_that_cannot_be_is_refused(tmp_path, name):
    _shards(tmp_path)
    path = write_tiny_gguf(tmp_path / f"{name}.gguf")
    with pytest.raises(CheckpointError, match=r"its name says shard \d of \d") as caught:
        read_checkpoint(path)
    assert caught.value.hint


def test_all_shards_and_links_give_a_model_the_name_of_the_file(tmp_path):
    """Caches of downloads link to files that are called by their hashes; another name would be another kept model."""
    paths = _shards(tmp_path)
    models = [read_checkpoint(path) for path in paths]
    assert {(model.source, model.digest) for model in models} == {("tiny", models[0].digest)}
    link = tmp_path / "nice-Q4.gguf"
    link.symlink_to(write_tiny_gguf(tmp_path / "blobs" / "0a1b2c"))
    assert read_checkpoint(link).source == model_name(link) == "nice-Q4"
    assert read_checkpoint(tmp_path / "blobs" / "0a1b2c").source == "0a1b2c"


def test_a_file_name_in_another_encoding_is_read(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    digest = read_checkpoint(path).digest
    model = read_checkpoint(path.rename(tmp_path / os.fsdecode(b"mod\xe8le.gguf")))
    assert model.source == "mod\ufffdle" and model.digest != digest


def test_a_file_of_a_checkpoint_folder_is_named_in_its_place(tmp_path):
    """The folder is what belongs on the command line, and the hint says so."""
    write_tiny_checkpoint(tmp_path)
    for name in ("model.safetensors", "config.json"):
        with pytest.raises(CheckpointError, match="no GGUF file") as caught:
            read_checkpoint(tmp_path / name)
        assert caught.value.hint == "name the folder that holds config.json, or a .gguf file"


def test_of_several_models_in_a_folder_none_is_guessed(tmp_path):
    write_tiny_gguf(tmp_path / "a.gguf")
    write_tiny_gguf(tmp_path / "b.gguf")
    with pytest.raises(CheckpointError, match=r"holds 2 GGUF models \(a\.gguf, b\.gguf\)"):
        read_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="no such file"):
        read_checkpoint(tmp_path / "c.gguf")


def test_tied_embeddings_are_a_file_without_a_head(tmp_path):
    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", tie_word_embeddings=True))
    assert model.config.tied_embeddings
    assert "lm_head" not in model.tensors


def test_experts_in_tensors_of_their_own_are_the_same_model(tmp_path):
    """As the files of 2023 have them."""

    def edit(tensors):
        for name in [name for name in tensors if "_exps" in name]:
            values, kind = tensors.pop(name)
            for expert in range(len(values)):
                tensors[name.replace("_exps", f".{expert}")] = (values[expert], kind)

    old = read_checkpoint(write_tiny_gguf(tmp_path / "old.gguf", edit=edit))
    new = read_checkpoint(write_tiny_gguf(tmp_path / "new.gguf"))
    for name in new.tensors:
        np.testing.assert_array_equal(old.tensors[name], new.tensors[name], err_msg=name)


def test_llama_3_scaling_divides_the_frequencies_by_the_factors_of_the_file(tmp_path):
    factors = np.array([1, 1, 1.5, 2, 4, 8, 8, 8], np.float32)
    model = read_checkpoint(
        write_tiny_gguf(
            tmp_path / "tiny.gguf", edit=lambda tensors: tensors.update({"rope_freqs.weight": (factors, Kind.F32)})
        )
    )
    base = 1.0 / 10000.0 ** (np.arange(0, 16, 2) / 16)
    np.testing.assert_array_equal(np.float32(model.config.rope_frequencies), np.float32(base / factors))
    assert model.config.rope_factor == 1.0
    assert model.config.max_context == 64


def test_an_expert_is_read_without_the_others(tmp_path, monkeypatch):
    """A layer's experts may take gigabytes; dequantizing all of them for each one would take days."""
    from colibri_build.checkpoint import gguf_tensor

    model = read_checkpoint(write_tiny_gguf(tmp_path / "tiny.gguf", kind=Kind.Q8_0))
    seen: list[int] = []

    def counting(data, kind):
        seen.append(data.size)
        return dequantize(data, kind)

    monkeypatch.setattr(gguf_tensor, "dequantize", counting)
    monkeypatch.setattr(gguf_tensor, "_PIECE", 1000)
    assert model.tensors["layers.0.experts.1.gate"].shape == (96, 64)
    assert sum(seen) == 96 * 2 * 34
    assert max(seen) <= 1000 // 32 * 34


SCALED = [*WRITTEN[3:-1], *READ_ONLY]  # types with fp16 scales


@pytest.mark.parametrize("kind", SCALED, ids=lambda kind: kind.name)
def test_what_is_not_finite_is_found_as_the_library_multiplies_it_out(kind):
    """Infinity at any place of a block: where it is a scale, every value of the block is bad, else none."""
    size = GGML_QUANT_SIZES[kind][1]
    sound = np.random.default_rng(kind).integers(0, 0x40, (2, 2 * size), np.uint8)
    found = 0
    for at in range(0, size - 1, 2):
        stored = sound.copy()
        stored[1, size + at : size + at + 2] = np.frombuffer(np.float16(np.inf).tobytes(), np.uint8)
        with np.errstate(all="ignore"):
            expected = ~np.isfinite(dequantize(stored, kind))
        np.testing.assert_array_equal(bad_values(stored, kind).reshape(2, -1), expected)
        found += int(expected.any())
    assert found in (1, 2)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.BF16], ids=lambda kind: kind.name)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_plain_values_that_are_not_finite_are_found(kind, value):
    values = np.ones((3, 8), np.float32)
    values[1, 5] = value
    stored = np.asarray(quantize(values, kind)).view(np.uint8).reshape(3, -1)
    assert np.flatnonzero(bad_values(stored, kind)).tolist() == [13]


def test_values_that_are_not_finite_are_refused(tmp_path):
    def edit(tensors):
        stored = quantize(tensors["blk.1.ffn_up_exps.weight"][0], Kind.Q8_0)
        stored[2, 5, 34:36] = np.frombuffer(np.float16(np.inf).tobytes(), np.uint8)
        tensors["blk.1.ffn_up_exps.weight"] = (stored, Kind.Q8_0)

    path = write_tiny_gguf(tmp_path / "tiny.gguf", edit=edit)
    with pytest.raises(CheckpointError, match=r"experts\.2\.w3.* holds 32 values .* the first at \[5, 32\]"):
        read_checkpoint(path)


def test_the_source_file_is_not_changed(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    path.chmod(0o444)
    before = Path(path).read_bytes()
    read_checkpoint(path).tensors["embedding"][:] = 0
    assert Path(path).read_bytes() == before
