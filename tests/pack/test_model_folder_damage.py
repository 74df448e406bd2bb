"""A damaged or foreign model folder is one clear error, never a firmware that babbles."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colibri_build.errors import PackError
from colibri_build.layout import dense_layout, expert_layout
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.pack.writer import write_model_folder
from support.model_folders import rehash
from support.tiny_quantized import AWKWARD_CONFIG, DEFAULT_FORMATS, random_quantized

DENSE = dense_layout(AWKWARD_CONFIG, DEFAULT_FORMATS, 32)
EXPERT = expert_layout(AWKWARD_CONFIG, DEFAULT_FORMATS, 32)
GATE, DOWN = EXPERT.part("layers.0.experts.0.gate"), EXPERT.part("layers.0.experts.0.down")
K, V = DENSE.part("layers.0.k"), DENSE.part("layers.0.v")


@pytest.fixture(scope="module")
def sound_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model_folder(random_quantized(), tmp_path_factory.mktemp("sound") / "m").path


@pytest.fixture
def folder(sound_folder: Path, tmp_path: Path) -> Path:
    """A copy to be damaged; a copy does not wait for the disk as the writer does."""
    return shutil.copytree(sound_folder, tmp_path / "m")


def _edit_config(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / "config.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def _refused(folder: Path, message: str, **options: Any) -> None:
    with pytest.raises(PackError) as caught:
        read_model_folder(folder, **options)
    assert re.match(re.escape(str(folder)) + message, caught.value.what), caught.value.what
    assert "\n" not in caught.value.what
    assert caught.value.hint
    assert caught.value.exit_code == 2


def _set(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda config: config.update(values)


def _set_model(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda config: config["model"].update(values)


def _set_formats(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda config: config["formats"].update(values)


CONFIG_FAULTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "foreign format": (_set(format="gguf"), r': no model folder \("format" is not "colibri-model"\)$'),
    "newer version": (_set(version=2), r": version 2, this reader knows version 1"),
    "version as text": (_set(version="1"), r': version "1", this reader knows version 1'),
    "version true": (_set(version=True), r": version true, this reader knows version 1"),
    "missing key": (lambda c: c.pop("formats"), r": keys of config\.json: missing formats"),
    "unknown key": (_set(colour=1), r": keys of config\.json: unknown colour"),
    "missing model key": (lambda c: c["model"].pop("dim"), r': keys of "model": missing dim'),
    "unknown model key": (_set_model(alibi=True), r': keys of "model": unknown alibi'),
    "group size": (_set(group_size=48), r': "group_size" is 48, not one of 32, 64, 128'),
    "group size list": (_set(group_size=[32]), r': "group_size" is \[32\], not one of 32, 64, 128'),
    "size as text": (_set_model(dim="44"), r': "model\.dim" is "44", not an integer above 0'),
    "size zero": (_set_model(n_layers=0), r': "model\.n_layers" is 0, not an integer above 0'),
    "size as float": (_set_model(n_heads=3.0), r': "model\.n_heads" is 3\.0, not an integer above 0'),
    "top_k": (_set_model(top_k=4), r': "model\.top_k" is 4, not 1\.\.n_experts = 3'),
    "key-value heads": (_set_model(n_kv_heads=2), r': "model\.n_kv_heads" is 2, not a divisor of n_heads = 3'),
    "odd heads": (_set_model(head_dim=5), r': "model\.head_dim" is 5, not an even number'),
    "eos outside": (_set_model(eos_ids=[301]), r': "model\.eos_ids" is \[301\], not a list of ids 0\.\.300'),
    "eos empty": (_set_model(eos_ids=[]), r': "model\.eos_ids" is \[\], not a list of ids 0\.\.300'),
    "eos twice": (_set_model(eos_ids=[3, 3]), r': "model\.eos_ids" is \[3, 3\], not a list of ids 0\.\.300'),
    "bos outside": (_set_model(bos_id=-1), r': "model\.bos_id" is -1, not null or an id 0\.\.300'),
    "eps": (_set_model(rms_eps=0), r': "model\.rms_eps" is 0, not a finite number above 0'),
    "theta": (_set_model(rope_theta=float("nan")), r': "model\.rope_theta" is NaN, not a finite number, 1 or more'),
    "theta below 1": (_set_model(rope_theta=0.5), r': "model\.rope_theta" is 0\.5, not a finite number, 1 or more'),
    "theta beyond binary64": (_set_model(rope_theta=10**400), r': "model\.rope_theta" is 1000+, not a finite number'),
    "window": (_set_model(sliding_window=-1), r': "model\.sliding_window" is -1, not 0 or more'),
    "flag": (_set_model(norm_topk=1), r': "model\.norm_topk" is 1, not true or false'),
    "format id": (_set_formats(expert="w3"), r': "formats\.expert" is "w3", not w4 or w8'),
    "format of norms": (_set_formats(norm="f16"), r': "formats\.norm" is "f16", not f32'),
    "missing kind": (lambda c: c["formats"].pop("router"), r': keys of "formats": missing router'),
    "tied formats": (
        lambda c: (c["model"].update(tied_embeddings=True), c["formats"].update(lm_head="f16")),
        r': "formats\.lm_head" differs from "formats\.embedding", but the two are tied',
    ),
    "expert count": (
        lambda c: c["files"].pop("expert_1_2.bin"),
        r': "files" names 5 experts, the model has 2 layers of 3 = 6',
    ),
    "absurd counts": (
        _set_model(n_layers=2**31 - 1, n_experts=2**31 - 1),
        r': "files" names 6 experts, the model has 2147483647 layers of 2147483647 = ',
    ),
    "no hash": (lambda c: c["files"]["dense.bin"].pop("sha256"), r': keys of "files\.dense\.bin": missing sha256'),
    "bad hash": (
        lambda c: c["files"]["dense.bin"].update(sha256="xyz"),
        r': "files\.dense\.bin" holds no size and SHA-256',
    ),
    "files is a list": (_set(files=[]), r': "files" is no object'),
    "model is a list": (_set(model=[]), r': "model" is no object'),
}


@pytest.mark.parametrize("change, message", CONFIG_FAULTS.values(), ids=CONFIG_FAULTS.keys())
def test_a_wrong_config_is_refused(folder, change, message):
    _edit_config(folder, change)
    _refused(folder, r"/config\.json" + message, verify=False)


def test_shapes_that_disagree_with_the_files_are_refused(folder):
    """A kernel would read past the end of the array."""
    _edit_config(folder, _set_model(hidden_dim=9000))
    _refused(
        folder, r"/expert_0_0\.bin: config\.json says 12288 bytes, its shapes and formats need 946176$", verify=False
    )


def test_a_larger_vocabulary_than_the_head_is_refused(folder):
    _edit_config(folder, _set_model(vocab_size=400))
    _refused(folder, r"/dense\.bin: config\.json says 51264 bytes, its shapes and formats need 64320$", verify=False)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 100000, b'{"format": 1, "format": 1}'])
def test_a_config_that_is_no_json_is_refused(folder, data):
    (folder / "config.json").write_bytes(data)
    _refused(folder, r"/config\.json: no valid JSON \(")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    _refused(tmp_path / "nothing", ": no such folder$")


def test_a_folder_without_config_is_refused(folder):
    (folder / "config.json").unlink()
    _refused(folder, r"/config\.json: missing$")


def test_a_missing_expert_is_refused(folder):
    (folder / "expert_1_0.bin").unlink()
    _refused(folder, r": 1 of 9 files are missing; the first: expert_1_0\.bin$", verify=False)


def test_a_foreign_file_is_refused(folder):
    (folder / "expert_7_0.bin").write_bytes(b"")
    _refused(folder, r": 1 files that the model does not have; the first: expert_7_0\.bin$", verify=False)


def test_a_config_that_names_another_file_is_refused(folder):
    """A path that leads out of the folder would be read."""
    _edit_config(folder, lambda c: c["files"].update({"../x": c["files"]["dense.bin"]}))
    _refused(folder, r'/config\.json: "files": 1 files that the model does not have; the first: \.\./x$', verify=False)


def test_a_truncated_file_is_refused_even_without_verification(folder):
    path = folder / "expert_0_1.bin"
    path.write_bytes(path.read_bytes()[:-1])
    _refused(folder, r"/expert_0_1\.bin: 12287 bytes, config\.json says 12288$", verify=False)


def test_a_folder_in_place_of_a_file_is_refused(folder):
    (folder / "routing.bin").unlink()
    (folder / "routing.bin").mkdir()
    _refused(folder, r"/routing\.bin: no regular file$")


@pytest.mark.parametrize("name", ["routing.bin", "dense.bin", "expert_1_1.bin", "tokenizer.json"])
def test_one_changed_bit_is_refused(folder, name):
    path = folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    _refused(folder, rf"/{re.escape(name)}: SHA-256 is [0-9a-f]{{64}}, config\.json says [0-9a-f]{{64}}$")
    read_model_folder(folder, verify=False)


CONTENT_FAULTS = {
    "zero point above 15": ("expert_0_0.bin", GATE.scale_offset + 16, b"\x10", r"gate: zero points reach from 0 to 16"),
    "w8 code -128": ("dense.bin", K.offset, b"\x80", r"k: codes reach from -128 to "),
    "infinite scale": ("dense.bin", K.scale_offset, b"\x00\x7c", r"k: 1 of \d+ scales are NaN or infinite"),
    "NaN scale": ("expert_0_0.bin", DOWN.scale_offset, b"\x01\xfe", r"down: 1 of \d+ scales are NaN or infinite"),
    "NaN router": ("routing.bin", 8, b"\x00\x00\xc0\x7f", r"router: 1 of 132 values are NaN or infinite"),
    "infinite norm": ("dense.bin", DENSE.part("final_norm").offset, b"\x00\x00\x80\x7f", r"final_norm: 1 of 44 values"),
    # v has 6 rows: row 6 of its panel is padding. Codes [block][row][input], scales 8 fp16 a group.
    "code of a row past the end": ("dense.bin", V.offset + 6 * 32, b"\x01", r"v: rows or inputs past its end"),
    "scale of a row past the end": ("dense.bin", V.scale_offset + 12, b"\x01", r"v: rows or inputs past its end"),
    # gate has 44 inputs: byte t of its second block holds inputs 32 + t and 48 + t.
    "input past the end": ("expert_0_0.bin", GATE.offset + 128 + 12, b"\x01", r"gate: rows or inputs past its end"),
    "high nibble past the end": ("expert_0_0.bin", GATE.offset + 128, b"\x10", r"gate: rows or inputs past its end"),
}


@pytest.mark.parametrize("file, offset, data, message", CONTENT_FAULTS.values(), ids=CONTENT_FAULTS.keys())
def test_bad_contents_are_refused_even_with_a_right_hash(folder, file, offset, data, message):
    """A generator of folders that is not ours may be wrong in earnest."""
    _overwrite(folder / file, offset, data)
    rehash(folder)
    _refused(folder, rf"/{re.escape(file)}: tensor (layers\.\d\.)?(experts\.\d\.)?{message}")


@pytest.mark.parametrize(
    "file, offset", [("expert_0_0.bin", 12287), ("dense.bin", K.offset - 1), ("dense.bin", V.offset - 1)]
)
def test_padding_that_is_not_zero_is_refused(folder, file, offset):
    _overwrite(folder / file, offset, b"\x01")
    rehash(folder)
    _refused(folder, rf"/{re.escape(file)}: padding bytes \d+\.\.\d+ are not zero$")


def test_a_tokenizer_with_a_right_hash_is_still_checked(folder):
    """The tokenizer's reader gets the bytes of the folder, and its error comes through."""
    (folder / "tokenizer.json").write_bytes(b"{}")
    rehash(folder)

    def refuse(data: bytes, vocab_size: int) -> Any:
        assert (data, vocab_size) == (b"{}", 301)
        raise PackError("no tokenizer")

    with pytest.raises(PackError, match="no tokenizer"):
        load_quantized(read_model_folder(folder), refuse)


def _overwrite(path: Path, offset: int, data: bytes) -> None:
    contents = bytearray(path.read_bytes())
    assert contents[offset : offset + len(data)] != data
    contents[offset : offset + len(data)] = data
    path.write_bytes(contents)
