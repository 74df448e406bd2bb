"""A model folder appears whole or not at all, and nothing of the user's is ever removed for it."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri_build.artifacts import Format, QuantizedModel, QuantizedTensor
from colibri_build.errors import PackError
from colibri_build.pack.reader import read_model_folder
from colibri_build.pack.writer import FolderContent, new_model_folder, write_model_folder
from support.model_folders import names_in
from support.tiny_quantized import AWKWARD_CONFIG, random_quantized

NEEDED_BYTES = 6 * 12288 + 51264 + 2 * 576 + len(random_quantized().tokenizer.json_bytes)


class Interrupting(Mapping[str, QuantizedTensor]):
    """Tensors that press Ctrl-C (a real signal) when the one with the given name is asked for."""

    def __init__(self, tensors: Mapping[str, QuantizedTensor], at: str) -> None:
        self._tensors, self._at = tensors, at

    def __getitem__(self, name: str) -> QuantizedTensor:
        if name == self._at:
            signal.raise_signal(signal.SIGINT)
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _interrupted(at: str) -> QuantizedModel:
    model = random_quantized(seed=2)
    return replace(model, tensors=Interrupting(model.tensors, at))


def _refused(model: QuantizedModel, out: Path, message: str) -> PackError:
    with pytest.raises(PackError) as caught:
        write_model_folder(model, out)
    assert caught.value.what == message
    return caught.value


@pytest.mark.parametrize("at", ["layers.0.router", "lm_head", "layers.1.experts.2.down"])
def test_ctrl_c_leaves_nothing(tmp_path, at):
    with pytest.raises(KeyboardInterrupt):
        write_model_folder(_interrupted(at), tmp_path / "m")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("at", ["layers.0.router", "layers.1.experts.2.down"])
def test_ctrl_c_keeps_the_older_folder(tmp_path, at):
    old = write_model_folder(random_quantized(seed=1), tmp_path / "m")
    with pytest.raises(KeyboardInterrupt):
        write_model_folder(_interrupted(at), tmp_path / "m")
    assert names_in(tmp_path) == ["m"]
    assert read_model_folder(tmp_path / "m").digest == old.digest


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_ctrl_c_during_the_exchange_leaves_one_whole_folder(tmp_path, monkeypatch, call, after):
    """The two renames are the only moment at which both folders exist under other names."""
    old = write_model_folder(random_quantized(seed=1), tmp_path / "m")
    real, calls = Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == call and not after:
            raise KeyboardInterrupt
        renamed = real(self, target)
        if len(calls) == call and after:
            raise KeyboardInterrupt
        return renamed

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        write_model_folder(random_quantized(seed=2), tmp_path / "m")
    assert names_in(tmp_path) == ["m"]
    assert (read_model_folder(tmp_path / "m").digest == old.digest) == (not (call == 2 and after))


def test_too_little_space_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6 - 5000, 5000))
    error = _refused(
        random_quantized(),
        tmp_path / "m",
        f"{tmp_path / 'm'}: the disk is full: the model folder needs {NEEDED_BYTES} bytes, 5000 are free",
    )
    assert error.hint == "free some space, or choose a folder on another disk"
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("call", [1, 4, 11])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_leaves_the_older_folder(tmp_path, monkeypatch, call, code):
    """The kernel may say so as late as at fsync."""
    old = write_model_folder(random_quantized(seed=1), tmp_path / "m")
    calls = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == call:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 0, 10**9))
    _refused(
        random_quantized(seed=2),
        tmp_path / "m",
        f"{tmp_path / 'm'}: the disk is full: the model folder needs {NEEDED_BYTES} bytes, 1000000000 are free",
    )
    assert names_in(tmp_path) == ["m"]
    assert read_model_folder(tmp_path / "m").digest == old.digest


def test_a_users_file_that_appears_meanwhile_stays(tmp_path):
    """Quantizing may take hours: who puts something into the folder by then must find it again."""
    model = random_quantized()
    content = FolderContent(model.config, model.group_size, model.formats, model.tokenizer)
    with (
        pytest.raises(PackError, match="exists and is no model folder"),
        new_model_folder(content, tmp_path / "m") as new,
    ):
        for name, tensor in model.tensors.items():
            new.put(name, tensor)
        (tmp_path / "m").mkdir()
        (tmp_path / "m" / "notes.txt").write_text("mine")
        new.finish({})
    assert names_in(tmp_path) == ["m"]
    assert (tmp_path / "m" / "notes.txt").read_text() == "mine"


def test_an_error_of_the_caller_is_not_blamed_on_the_folder(tmp_path):
    model = random_quantized()
    content = FolderContent(model.config, model.group_size, model.formats, model.tokenizer)
    with pytest.raises(FileNotFoundError, match="gone"), new_model_folder(content, tmp_path / "m"):
        raise FileNotFoundError("the checkpoint is gone")
    assert names_in(tmp_path) == []


def test_a_file_size_limit_is_a_clear_error(tmp_path):
    """A real short write by the kernel: the limit is below the size of dense.bin."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, hard))
    try:
        with pytest.raises(PackError) as caught:
            write_model_folder(random_quantized(), tmp_path / "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.what == f"{tmp_path / 'm'}: cannot be written (File too large)"
    assert names_in(tmp_path) == []


def test_an_older_folder_is_replaced_as_a_whole(tmp_path):
    """No expert of the older, larger model may stay behind."""
    write_model_folder(random_quantized(), tmp_path / "m")
    small = replace(AWKWARD_CONFIG, n_layers=1, n_experts=2)
    written = write_model_folder(random_quantized(small), tmp_path / "m")
    assert read_model_folder(tmp_path / "m") == written
    assert names_in(tmp_path) == ["m"]


def test_two_builds_may_write_one_folder_at_once(tmp_path, monkeypatch):
    """Both put the same model into the cache; the second must not fail because the first was quicker."""
    model = random_quantized(replace(AWKWARD_CONFIG, n_layers=1, n_experts=2))
    real = Path.rename

    def slow_rename(self: Path, target: Path) -> Path:
        renamed = real(self, target)
        time.sleep(0.02)  # long enough for the others to find no folder, or the wrong one
        return renamed

    monkeypatch.setattr(Path, "rename", slow_rename)
    with ThreadPoolExecutor(4) as pool:
        written = list(pool.map(lambda _: write_model_folder(model, tmp_path / "m"), range(8)))
    assert all(folder == written[0] for folder in written)
    assert names_in(tmp_path) == ["m"]
    assert read_model_folder(tmp_path / "m") == written[0]


def test_a_damaged_model_folder_can_be_replaced(tmp_path):
    written = write_model_folder(random_quantized(), tmp_path / "m")
    (tmp_path / "m" / "dense.bin").write_bytes(b"")
    write_model_folder(random_quantized(), tmp_path / "m")
    assert read_model_folder(tmp_path / "m") == written


def test_an_empty_folder_may_be_given(tmp_path):
    (tmp_path / "m").mkdir()
    write_model_folder(random_quantized(), tmp_path / "m")
    read_model_folder(tmp_path / "m")


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_model_folder(random_quantized(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    read_model_folder(tmp_path / "real")


def _notes(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")


def _checkpoint(folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "mixtral"}))


def _notes_in_model_folder(folder: Path) -> None:
    write_model_folder(random_quantized(), folder)
    (folder / "notes.txt").write_text("mine")


FOREIGN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "user's folder": (_notes, "exists and is no model folder (1 entries)"),
    "checkpoint": (_checkpoint, "exists and is no model folder (1 entries)"),
    "file": (lambda path: path.write_text("mine"), "exists and is no folder"),
    "user's notes": (_notes_in_model_folder, "a model folder with foreign files in it (notes.txt)"),
}


@pytest.mark.parametrize("make, message", FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_not_ours_is_not_overwritten(tmp_path, make, message):
    make(tmp_path / "m")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    error = _refused(random_quantized(seed=3), tmp_path / "m", f"{tmp_path / 'm'}: {message}")
    assert error.hint == "choose another folder, or remove it first"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_file_in_the_way_of_the_parent_is_a_clear_error(tmp_path):
    (tmp_path / "parent").write_text("mine")
    _refused(random_quantized(), tmp_path / "parent" / "m", f"{tmp_path}/parent/m: a part of this path is a file")


def test_provenance_that_is_no_json_is_refused(tmp_path):
    with pytest.raises(PackError, match=r"^provenance cannot be written as JSON"):
        write_model_folder(random_quantized(provenance={"kl": float("nan")}), tmp_path / "m")
    assert names_in(tmp_path) == []


def _with(name: str, **changes: Any) -> Callable[[dict[str, QuantizedTensor]], None]:
    def edit(tensors: dict[str, QuantizedTensor]) -> None:
        values = {key: change(getattr(tensors[name], key)) for key, change in changes.items()}
        tensors[name] = replace(tensors[name], **values)

    return edit


def _poke(value: Any) -> Callable[[Any], Any]:
    def poke(array: Any) -> Any:
        array = array.copy()
        array.flat[5] = value
        return array

    return poke


GATE, K = "layers.0.experts.0.gate", "layers.0.k"
BAD_TENSORS: dict[str, tuple[Callable[[dict[str, QuantizedTensor]], Any], str]] = {
    "missing": (lambda t: t.pop(K), f"tensor {K}: missing; 34 tensors, the model has 35"),
    "surplus": (
        lambda t: t.update({"layers.0.bias": t[K]}),
        "tensor layers.0.bias: not part of the model; 36 tensors, the model has 35",
    ),
    "exchanged": (
        lambda t: t.update({K: t[GATE]}),
        f"tensor {K}: is expert 70x44 in w4, the model needs attention 6x44 in w8",
    ),
    "another format": (
        _with(GATE, format=lambda _: Format.W8),
        f"tensor {GATE}: is expert 70x44 in w8, the model needs expert 70x44 in w4",
    ),
    "transposed": (
        _with(GATE, codes=lambda a: a.T),
        f"tensor {GATE}: codes are uint8 [44, 70], not uint8 [70, 44]",
    ),
    "wide codes": (
        _with(K, codes=lambda a: a.astype(np.int32)),
        f"tensor {K}: codes are int32 [6, 44], not int8 [6, 44]",
    ),
    "no scales": (_with(K, scales=lambda _: None), f"tensor {K}: has no scales"),
    "no zero points": (_with(GATE, zeros=lambda _: None), f"tensor {GATE}: has no zero points"),
    "too few scales": (
        _with(K, scales=lambda a: a[:, :1]),
        f"tensor {K}: scales are float16 [6, 1], not float16 [6, 2]",
    ),
    "infinite scale": (_with(K, scales=_poke(np.inf)), f"tensor {K}: 1 of 12 scales are NaN or infinite"),
    "NaN norm": (_with("final_norm", codes=_poke(np.nan)), "tensor final_norm: 1 of 44 values are NaN or infinite"),
    "code 16": (_with(GATE, codes=_poke(16)), f"tensor {GATE}: codes reach from 0 to 16, allowed are 0..15"),
    "zero point 16": (
        _with(GATE, zeros=_poke(16)),
        f"tensor {GATE}: zero points reach from 0 to 16, allowed are 0..15",
    ),
    "code -128": (_with(K, codes=_poke(-128)), f"tensor {K}: codes reach from -128 to 127, allowed are -127..127"),
}


@pytest.mark.parametrize("edit, message", BAD_TENSORS.values(), ids=BAD_TENSORS.keys())
def test_a_tensor_that_breaks_the_format_is_refused(tmp_path, edit, message):
    """NumPy would wrap a code of 16 into its neighbour's nibble without a word."""
    _refused(random_quantized(edit=edit), tmp_path / "m", message)
    assert names_in(tmp_path) == []
