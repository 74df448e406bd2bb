"""The bytes on disk are the ones that FORMAT.md describes: firmware reads them without looking back at Python."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from colibri_build.artifacts import Format, Kind, ModelConfig, QuantizedModel
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.layout import file_layouts
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.pack.writer import write_model_folder
from support.model_folder_decoder import decode_folder
from support.model_folders import names_in
from support.tiny_quantized import AWKWARD_CONFIG, DEFAULT_FORMATS, random_quantized

ALL_W4 = {**DEFAULT_FORMATS, Kind.ATTENTION: Format.W4}
HALF_ENDS = {**DEFAULT_FORMATS, Kind.EMBEDDING: Format.F16, Kind.LM_HEAD: Format.F16, Kind.EXPERT: Format.W8}
TIED = replace(AWKWARD_CONFIG, tied_embeddings=True, n_layers=1)
LONG_ROWS = replace(AWKWARD_CONFIG, n_layers=1, n_experts=2, dim=172, hidden_dim=144, vocab_size=301)
EXACT = replace(AWKWARD_CONFIG, n_layers=1, n_experts=1, top_k=1, dim=64, hidden_dim=128, vocab_size=304)
CASES = {
    "awkward sizes": (AWKWARD_CONFIG, 32, DEFAULT_FORMATS),
    "attention w4": (AWKWARD_CONFIG, 64, ALL_W4),
    "half-precision ends, w8 experts": (AWKWARD_CONFIG, 32, HALF_ENDS),
    "tied embeddings": (TIED, 32, DEFAULT_FORMATS),
    "rows longer than a group of 128": (LONG_ROWS, 128, ALL_W4),
    "no padding anywhere": (EXACT, 64, ALL_W4),
}
cases = pytest.mark.parametrize("config, group_size, formats", CASES.values(), ids=CASES.keys())


def _make(config: ModelConfig, group_size: int, formats: dict[Kind, Format], seed: int = 0) -> QuantizedModel:
    return random_quantized(config, group_size=group_size, formats=formats, seed=seed)


@cases
def test_a_decoder_written_from_the_format_page_finds_every_value(tmp_path, config, group_size, formats):
    model = _make(config, group_size, formats)
    write_model_folder(model, tmp_path / "m")
    decoded = decode_folder(tmp_path / "m")
    assert decoded.keys() == model.tensors.keys()
    for name, part in decoded.items():
        tensor = model.tensors[name]
        assert part.format == tensor.format
        np.testing.assert_array_equal(np.array(part.codes), tensor.codes, err_msg=name)
        if tensor.scales is not None:
            np.testing.assert_array_equal(np.array(part.scales, np.float16), tensor.scales, err_msg=name)
        if tensor.zeros is not None:
            np.testing.assert_array_equal(np.array(part.zeros), tensor.zeros, err_msg=name)


@cases
def test_the_layout_that_the_renderer_uses_names_the_same_offsets(tmp_path, config, group_size, formats):
    write_model_folder(_make(config, group_size, formats), tmp_path / "m")
    decoded = decode_folder(tmp_path / "m")
    for layout in file_layouts(config, formats, group_size):
        assert layout.bytes == (tmp_path / "m" / layout.name).stat().st_size
        for part in layout.parts:
            assert part.offset == decoded.pop(part.spec.name).offset
            assert part.offset % (4096 if layout.name.startswith("expert") else 64) == 0
            assert layout.part(part.spec.name) is part
    assert not decoded


@cases
def test_what_was_written_is_read_back(tmp_path, config, group_size, formats):
    model = _make(config, group_size, formats)
    written = write_model_folder(model, tmp_path / "m")
    folder = read_model_folder(tmp_path / "m")
    assert folder == written
    loaded = load_quantized(folder, read_tokenizer_bytes)
    assert (loaded.config, loaded.group_size, loaded.formats) == (config, group_size, formats)
    assert loaded.tokenizer == model.tokenizer
    assert loaded.provenance == model.provenance
    assert set(loaded.tensors) == set(model.tensors)
    for name, tensor in model.tensors.items():
        found = loaded.tensors[name]
        assert (found.spec, found.format) == (tensor.spec, tensor.format)
        for a, b in ((found.codes, tensor.codes), (found.scales, tensor.scales), (found.zeros, tensor.zeros)):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), name


def test_two_folders_of_one_model_have_the_same_bytes(tmp_path):
    """Otherwise a firmware could not be reproduced from its sources."""
    first = write_model_folder(random_quantized(), tmp_path / "a")
    second = write_model_folder(random_quantized(), tmp_path / "b b/ü")
    assert first.digest == second.digest
    for name in [*first.files, "config.json"]:
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes(), name


def test_config_json_is_as_the_format_page_says(tmp_path):
    folder = write_model_folder(random_quantized(provenance={"source": "Modell-ä"}), tmp_path / "m")
    data = (tmp_path / "m" / "config.json").read_bytes()
    value = json.loads(data)
    assert data == (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()
    assert sorted(value) == ["files", "format", "formats", "group_size", "model", "provenance", "version"]
    assert (value["format"], value["version"], value["group_size"]) == ("colibri-model", 1, 32)
    assert value["provenance"] == {"source": "Modell-ä"}
    assert folder.digest == hashlib.sha256(data).hexdigest()
    on_disk = set(names_in(tmp_path / "m")) - {"config.json"}
    assert on_disk == set(value["files"])
    for name, record in value["files"].items():
        contents = (tmp_path / "m" / name).read_bytes()
        assert record == {"bytes": len(contents), "sha256": hashlib.sha256(contents).hexdigest()}


def test_another_model_has_another_digest(tmp_path):
    assert write_model_folder(random_quantized(seed=1), tmp_path / "a").digest != (
        write_model_folder(random_quantized(seed=2), tmp_path / "b").digest
    )


def test_tensors_are_decoded_only_when_asked_for(tmp_path):
    """A 24 GB model must open at once, without 24 GB of memory."""
    folder = write_model_folder(random_quantized(), tmp_path / "m")
    loaded = load_quantized(folder, read_tokenizer_bytes)
    (folder.path / "expert_1_2.bin").unlink()
    assert loaded.tensors["layers.0.experts.0.up"].codes.shape == (70, 44)
    with pytest.raises(Exception, match=r"expert_1_2\.bin: cannot be read"):
        loaded.tensors["layers.1.experts.2.down"]
