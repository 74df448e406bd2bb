"""The safetensors files of a checkpoint: which there are, what their headers say, and that all of it agrees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from colibri_build.checkpoint.config_keys import read_json_object
from colibri_build.checkpoint.stored import RawTensor
from colibri_build.errors import CheckpointError
from colibri_build.files import unique_keys

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
_DOWNLOAD_AGAIN = "download the file again"
_unique_names = partial(
    unique_keys, label="tensor {}"
)  # where a name occurs twice, the library would take the last one
_LFS_START = b"version "  # of a Git LFS pointer; as a header length it would be 2e18


def find_weight_files(folder: Path) -> tuple[tuple[Path, ...], Mapping[str, str] | None]:
    """(files in order of name, index: tensor name -> file name or None). Raises CheckpointError."""
    single, index = folder / SINGLE_FILE, folder / INDEX_FILE
    if single.exists() and index.exists():
        raise CheckpointError(
            f"{folder}: holds both {SINGLE_FILE} and {INDEX_FILE}", hint="keep the one that belongs to config.json"
        )
    if single.exists():
        return (single,), None
    if not index.exists():
        raise _no_weights(folder)
    weight_map = _read_index(index)
    files = tuple(folder / name for name in sorted(set(weight_map.values())))
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise CheckpointError(
            f"{folder}: {len(missing)} of {len(files)} shards are missing: {', '.join(missing[:4])}",
            hint="download the missing files",
        )
    return files, weight_map


def _read_index(path: Path) -> Mapping[str, str]:
    weight_map = read_json_object(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f'{path}: "weight_map" is no object of tensor names', hint=_DOWNLOAD_AGAIN)
    for name, file in weight_map.items():
        if not isinstance(file, str) or Path(file).name != file or not file.endswith(".safetensors"):
            raise CheckpointError(
                f"{path}: tensor {name} is in {file!r}, which is no safetensors file of this folder",
                hint=_DOWNLOAD_AGAIN,
            )
    return weight_map


def _no_weights(folder: Path) -> CheckpointError:
    names = sorted(entry.name for entry in folder.iterdir())
    for suffix, what in ((".safetensors", f"no {INDEX_FILE}"), (".bin", "PyTorch files"), (".gguf", "GGUF files")):
        found = [name for name in names if name.endswith(suffix)]
        if found and suffix == ".safetensors":
            return CheckpointError(f"{folder}: {found[0]} is there, but {what}", hint=f"download {INDEX_FILE}")
        if found:
            hint = "save the model with transformers (safe_serialization=True)"
            return CheckpointError(
                f"{folder}: holds {what} ({found[0]}), no {SINGLE_FILE}",
                hint="name the .gguf file itself" if suffix == ".gguf" else hint,
            )
    return CheckpointError(
        f"{folder}: neither {SINGLE_FILE} nor {INDEX_FILE}", hint="name a folder that transformers saved"
    )


def read_stored_tensors(folder: Path) -> dict[str, RawTensor]:
    """The tensors of a checkpoint by name. No tensor may be in two files; the index must say where each is."""
    files, index = find_weight_files(folder)
    found: dict[str, RawTensor] = {}
    for file in files:
        for tensor in read_header(file):
            if tensor.name in found:
                raise CheckpointError(
                    f"tensor {tensor.name} is in {found[tensor.name].file.name} and again in {file.name}",
                    hint="remove the stale file",
                )
            found[tensor.name] = tensor
    if index is not None:
        _check_index(folder / INDEX_FILE, index, found)
    return found


def _check_index(path: Path, index: Mapping[str, str], found: Mapping[str, RawTensor]) -> None:
    for name in sorted(set(index) | set(found)):
        said = index.get(name, "no file")
        actual = found[name].file.name if name in found else "no file"
        if said != actual:
            raise CheckpointError(
                f"{path}: puts tensor {name} in {said}, but it is in {actual}",
                hint="index and shards are of different versions; download them together",
            )


def read_header(path: Path) -> tuple[RawTensor, ...]:
    """The tensors of one file, in file order, after the library has checked the whole header."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if start == _LFS_START:
                raise CheckpointError(f"{path}: a Git LFS pointer, not the file itself", hint="run `git lfs pull`")
            if size < 8 or length > size - 8:
                raise _truncated(path, 8 + length if size >= 8 else 8, size)
            header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_unique_names)
            if not isinstance(header, dict):
                raise ValueError("no JSON object")
        tensors = _entries(path, header, 8 + length)
        _check_size(path, header, 8 + length, size)
        with safe_open(path, framework="numpy"):
            pass
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error
    except SafetensorError as error:
        raise CheckpointError(f"{path}: damaged ({error})", hint=_DOWNLOAD_AGAIN) from error
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{path}: no safetensors header ({error})", hint=_DOWNLOAD_AGAIN) from error
    return tensors


def _entries(path: Path, header: Mapping[str, Any], data_start: int) -> tuple[RawTensor, ...]:
    entries = [(name, entry) for name, entry in header.items() if name != "__metadata__"]
    return tuple(
        RawTensor(path, name, str(entry["dtype"]), tuple(map(int, entry["shape"])), data_start + begin)
        for name, entry in sorted(entries, key=lambda item: int(item[1]["data_offsets"][0]))
        for begin in [int(entry["data_offsets"][0])]
    )


def _check_size(path: Path, header: Mapping[str, Any], data_start: int, size: int) -> None:
    ends = [int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__"]
    if not ends:
        raise CheckpointError(f"{path}: holds no tensor", hint=_DOWNLOAD_AGAIN)
    if data_start + max(ends) > size:
        raise _truncated(path, data_start + max(ends), size)


def _truncated(path: Path, expected: int, found: int) -> CheckpointError:
    return CheckpointError(f"{path}: truncated: {found} bytes, its header promises {expected}", hint=_DOWNLOAD_AGAIN)
