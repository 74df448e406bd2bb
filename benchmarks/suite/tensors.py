"""A checkpoint before it is written: published names, and values made when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suite.places import Json

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class Tensor:
    """`make` gives f32 [*shape], the same each time."""

    name: str
    shape: tuple[int, ...]
    make: Callable[[], F32]


@dataclass(frozen=True)
class Checkpoint:
    """What both sides get: transformers' config.json, tensors with transformers' names, tokenizer.json as text."""

    config: Json
    tensors: Sequence[Tensor]
    tokenizer: str

    def tensor(self, name: str) -> Tensor:
        """By its published name. Raises KeyError."""
        return {tensor.name: tensor for tensor in self.tensors}[name]


def to_bf16(values: F32) -> NDArray[np.uint16]:
    """Rounded to nearest, ties to even; finite values only."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def as_bf16(values: F32) -> F32:
    """The f32 values that bf16 keeps of these."""
    rounded: F32 = (to_bf16(values).astype(np.uint32) << 16).view(np.float32)
    return rounded


def write_folder(checkpoint: Checkpoint, folder: Path) -> None:
    """As transformers saves it: bf16, one safetensors file; tensor by tensor."""
    header: Json = {}
    at = 0
    for tensor in checkpoint.tensors:
        size = 2 * int(np.prod(tensor.shape))
        header[tensor.name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in checkpoint.tensors:
            file.write(to_bf16(tensor.make()).astype("<u2").tobytes())
    (folder / "config.json").write_text(json.dumps(checkpoint.config, indent=1))
    (folder / "tokenizer.json").write_text(checkpoint.tokenizer)


def read_folder(folder: Path) -> Checkpoint:
    """A published folder with one safetensors file of bf16 tensors. Raises ValueError for another type."""
    path = folder / "model.safetensors"
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    config = json.loads((folder / "config.json").read_text())
    config.setdefault("rope_theta", config.get("rope_parameters", {}).get("rope_theta"))
    tensors = [_stored(path, 8 + size, name, entry) for name, entry in header.items()]
    return Checkpoint(config, tensors, (folder / "tokenizer.json").read_text())


def _stored(path: Path, start: int, name: str, entry: Json) -> Tensor:
    if entry["dtype"] != "BF16":
        raise ValueError(f"{path}: {name} is {entry['dtype']}, not BF16")
    shape = tuple(entry["shape"])

    def make() -> F32:
        at = start + entry["data_offsets"][0]
        bits = np.fromfile(path, "<u2", int(np.prod(shape)), offset=at).reshape(shape)
        values: F32 = (bits.astype(np.uint32) << 16).view(np.float32)
        return values

    return Tensor(name, shape, make)
