"""Quantized formats against compressed-tensors' own code: what it packs, and what it makes of an AWQ checkpoint."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compressed_tensors.compressors import PackedQuantizationCompressor
from compressed_tensors.entrypoints.convert.converters.autoawq import AutoAWQConverter
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import load_file, save_file

from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.errors import CheckpointError
from families import CONFIGURATIONS, write_checkpoint
from support.packed_checkpoint import Format, pack, quantization_section, random_matrix, write_packed_checkpoint
from support.safetensors_file import Entry, entry, write_safetensors
from support.tiny_checkpoint import tiny_config, tiny_tensors, tiny_tokenizer, write_json

Q = "model.layers.0.self_attn.q_proj"
SCHEMES: dict[str, dict[str, Any]] = {
    "4 bits": {"num_bits": 4, "symmetric": True, "strategy": "group", "group_size": 32},
    "4 bits with zero points": {"num_bits": 4, "symmetric": False, "strategy": "group", "group_size": 32},
    "4 bits, one scale a row": {"num_bits": 4, "symmetric": True, "strategy": "channel"},
    "8 bits": {"num_bits": 8, "symmetric": True, "strategy": "group", "group_size": 32},
    "8 bits with zero points, one scale a row": {"num_bits": 8, "symmetric": False, "strategy": "channel"},
}


def _is_packed(name: str) -> bool:
    return not any(part in name for part in ("embed_tokens", "norm", ".gate.", "lm_head"))


def _state(weight: torch.Tensor, args: QuantizationArgs) -> dict[str, torch.Tensor]:
    """A weight with the scales and zero points of its groups' ranges, in bfloat16 as recipes save them."""
    groups = weight.reshape(weight.shape[0], -1, args.group_size or weight.shape[1])
    low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    half, steps = 1 << (args.num_bits - 1), (1 << args.num_bits) - 1
    scale = torch.maximum(-low, high) / (half - 0.5) if args.symmetric else (high - low) / steps
    scale = scale.to(torch.bfloat16).float()
    zero = torch.zeros_like(scale) if args.symmetric else torch.round(-low / scale) - half
    return {"weight": weight, "weight_scale": scale, "weight_zero_point": zero.clamp(-half, half - 1).to(torch.int8)}


@pytest.mark.parametrize("name", SCHEMES)
def test_what_compressed_tensors_packs_is_read_as_it_unpacks_it(tmp_path: Path, name: str) -> None:
    args = QuantizationArgs(**SCHEMES[name])
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    section = {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed"}
    section["config_groups"] = {"group_0": scheme.model_dump(mode="json")}
    config = tiny_config(quantization_config=section)
    file: dict[str, torch.Tensor] = {}
    wanted: dict[str, np.ndarray] = {}
    for published, values in tiny_tensors(config).items():
        weight, module = torch.from_numpy(values), published.removesuffix(".weight")
        if not _is_packed(published):
            file[published] = weight
            continue
        packed = PackedQuantizationCompressor.compress(_state(weight, args), scheme)
        wanted[published] = PackedQuantizationCompressor.decompress(dict(packed), scheme)["weight"].float().numpy()
        file |= {f"{module}.{part}": tensor.contiguous() for part, tensor in packed.items()}
    write_json(tmp_path / "config.json", config)
    save_file(file, tmp_path / "model.safetensors")
    tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    model = read_checkpoint(tmp_path)
    assert len(model.packed) == len(wanted) == 32
    for part in "qkvo":
        published = f"model.layers.1.self_attn.{part}_proj.weight"
        np.testing.assert_array_equal(model.tensors[f"layers.1.{part}"], wanted[published])
    for part, theirs in {"gate": "w1", "up": "w3", "down": "w2"}.items():
        published = f"model.layers.0.block_sparse_moe.experts.3.{theirs}.weight"
        np.testing.assert_array_equal(model.tensors[f"layers.0.experts.3.{part}"], wanted[published])
        assert model.packed[f"layers.0.experts.3.{part}"].load() is not None or args.num_bits == 8


def test_an_awq_checkpoint_is_read_as_compressed_tensors_converts_it(tmp_path: Path) -> None:
    """Its converter for AutoAWQ's folders knows the order of the nibbles from the kernels, not from us."""
    write_packed_checkpoint(tmp_path, Format("awq"))
    args = QuantizationArgs(num_bits=4, symmetric=False, strategy="group", group_size=32)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    converted = AutoAWQConverter(bits=4, group_size=32).process(load_file(tmp_path / "model.safetensors"))
    parts = {
        name.removeprefix(f"{Q}."): tensor.float() if name.endswith("scale") else tensor
        for name, tensor in converted.items()
        if name.startswith(f"{Q}.")
    }
    wanted = PackedQuantizationCompressor.decompress(parts, scheme)["weight"].numpy()
    np.testing.assert_array_equal(read_checkpoint(tmp_path).tensors["layers.0.q"], wanted)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_packed_checkpoint_of_any_family_is_its_plain_one(tmp_path: Path, name: str) -> None:
    """Names, rows that a family picks of a matrix, experts: as of the checkpoint that holds the same values as floats."""
    plain, packed = write_checkpoint(name, tmp_path / "plain"), tmp_path / "packed"
    how, generator = Format("compressed-tensors", group_size=-1), np.random.default_rng(0)
    floats = load_file(plain / "model.safetensors")
    entries: dict[str, Entry] = {}
    n_packed = 0
    for published, tensor in floats.items():
        module = published.removesuffix(".weight")
        if tensor.ndim == 2 and re.search(r"\.(\w+_proj\w*|w[123])\.weight$", published):
            matrix = random_matrix(generator, tuple(tensor.shape), how)
            entries |= pack(module, matrix, how)
            floats[published] = torch.from_numpy(matrix.values())
            n_packed += 1
        else:
            entries[published] = entry(tensor.float().numpy())
    save_file(floats, plain / "model.safetensors")
    shutil.copytree(plain, packed)
    write_safetensors(packed / "model.safetensors", entries)
    config = json.loads((plain / "config.json").read_text(encoding="utf-8"))
    write_json(packed / "config.json", config | {"quantization_config": quantization_section(how)})
    if "quantization_config" in config:  # a checkpoint has one quantization
        with pytest.raises(CheckpointError):
            read_checkpoint(packed)
        return
    wanted, found = read_checkpoint(plain), read_checkpoint(packed)
    assert n_packed > 0 and len(found.packed) > 0
    for ours in wanted.tensors:
        np.testing.assert_array_equal(found.tensors[ours], wanted.tensors[ours], err_msg=ours)
    for ours, tensor in found.packed.items():
        codes = tensor.load()
        assert codes is not None, (ours, tensor.misfit())
        zeros = np.repeat(codes.zeros, codes.group_size, axis=1)[:, : codes.codes.shape[1]].astype(np.float32)
        scales = np.repeat(codes.scales, codes.group_size, axis=1)[:, : codes.codes.shape[1]].astype(np.float32)
        np.testing.assert_array_equal((codes.codes - zeros) * scales, wanted.tensors[ours], err_msg=ours)
