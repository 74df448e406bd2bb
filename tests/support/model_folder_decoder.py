"""A model folder decoded value by value, straight from FORMAT.md: plain loops that share no code with the project.

Of what only some models have, it knows the vectors (biases, sinks) beside plain attention and experts.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Part:
    """One decoded tensor: lists of rows. scales and zeros are [rows][groups]."""

    format: str
    codes: list[list[float]]
    scales: list[list[float]] = field(default_factory=list)
    zeros: list[list[int]] = field(default_factory=list)
    offset: int = 0


class Cursor:
    """Walks one file; every byte that no tensor claims must be zero."""

    def __init__(self, data: bytes, alignment: int) -> None:
        self.data, self.alignment, self.at = data, alignment, 0

    def skip_to(self, alignment: int) -> None:
        while self.at % alignment:
            assert self.data[self.at] == 0, f"byte {self.at} is not zero"
            self.at += 1

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self, code: str) -> float:
        size = struct.calcsize(code)
        self.at += size
        return struct.unpack_from("<" + code, self.data, self.at - size)[0]

    def finish(self) -> None:
        self.skip_to(self.alignment)
        assert self.at == len(self.data), f"{len(self.data) - self.at} bytes after the last part"


def decode_folder(folder: Path) -> dict[str, Part]:
    """Name -> tensor, for every tensor of the folder."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model, formats, group = config["model"], config["formats"], config["group_size"]
    found: dict[str, Part] = {}
    routing = Cursor((folder / "routing.bin").read_bytes(), 64)
    for layer in range(model["n_layers"]):
        found[f"layers.{layer}.router"] = _part(routing, formats["router"], model["n_experts"], model["dim"], group)
        if model.get("router_bias"):
            found[f"layers.{layer}.router_bias"] = _part(routing, formats["bias"], 1, model["n_experts"], group)
    routing.finish()
    found.update(_dense((folder / "dense.bin").read_bytes(), model, formats, group))
    for layer in range(model["n_layers"]):
        for expert in range(model["n_experts"]):
            file = Cursor((folder / f"expert_{layer}_{expert}.bin").read_bytes(), 4096)
            for name, rows, cols in (
                ("gate", model["hidden_dim"], model["dim"]),
                ("up", model["hidden_dim"], model["dim"]),
                ("down", model["dim"], model["hidden_dim"]),
            ):
                found[f"layers.{layer}.experts.{expert}.{name}"] = _part(file, formats["expert"], rows, cols, group)
            for name in ("gate", "up", "down") if model.get("expert_bias") else ():
                size = model["dim"] if name == "down" else model["hidden_dim"]
                found[f"layers.{layer}.experts.{expert}.{name}_bias"] = _part(file, formats["bias"], 1, size, group)
            file.finish()
    return found


def _dense(data: bytes, model: dict[str, Any], formats: dict[str, str], group: int) -> dict[str, Part]:
    dim, q_dim, kv_dim = model["dim"], model["n_heads"] * model["head_dim"], model["n_kv_heads"] * model["head_dim"]
    order = [("embedding", "embedding", model["vocab_size"], dim)]
    norm_bias = [("bias", dim)] if model.get("layer_norm") else []
    vectors = [("q", q_dim), ("k", kv_dim), ("v", kv_dim)] if model.get("qkv_bias") else []
    vectors += [("o", dim)] if model.get("o_bias") else []
    for layer in range(model["n_layers"]):
        order += [
            (f"layers.{layer}.attn_norm", "norm", 1, dim),
            *((f"layers.{layer}.attn_norm_bias", kind, 1, size) for kind, size in norm_bias),
            (f"layers.{layer}.q", "attention", q_dim, dim),
            (f"layers.{layer}.k", "attention", kv_dim, dim),
            (f"layers.{layer}.v", "attention", kv_dim, dim),
            (f"layers.{layer}.o", "attention", dim, q_dim),
            *((f"layers.{layer}.{name}_bias", "bias", 1, size) for name, size in vectors),
            *([(f"layers.{layer}.sinks", "bias", 1, model["n_heads"])] if model.get("attention_sinks") else []),
            (f"layers.{layer}.ffn_norm", "norm", 1, dim),
            *((f"layers.{layer}.ffn_norm_bias", kind, 1, size) for kind, size in norm_bias),
        ]
    order += [("final_norm", "norm", 1, dim), *(("final_norm_bias", kind, 1, size) for kind, size in norm_bias)]
    if not model["tied_embeddings"]:
        order += [("lm_head", "lm_head", model["vocab_size"], dim)]
    if model.get("head_bias"):
        order += [("lm_head_bias", "bias", 1, model["vocab_size"])]
    file = Cursor(data, 64)
    found = {name: _part(file, formats[kind], rows, cols, group) for name, kind, rows, cols in order}
    file.finish()
    return found


def _part(file: Cursor, format: str, rows: int, cols: int, group: int) -> Part:
    file.skip_to(file.alignment)
    start = file.at
    if format in ("f32", "f16"):
        code = "f" if format == "f32" else "e"
        return Part(format, [[file.number(code) for _ in range(cols)] for _ in range(rows)], offset=start)
    panels, blocks, groups = (rows + 7) // 8, (cols + 31) // 32, (cols + group - 1) // group
    codes = [[0.0] * (blocks * 32) for _ in range(panels * 8)]
    for panel in range(panels):
        for block in range(blocks):
            (_w4_block if format == "w4" else _w8_block)(file, codes, panel * 8, block * 32)
    file.skip_to(64)
    scales = [[0.0] * groups for _ in range(panels * 8)]
    zeros = [[0] * groups for _ in range(panels * 8)]
    for panel in range(panels):
        for g in range(groups):
            for row in range(8):
                scales[panel * 8 + row][g] = file.number("e")
            for row in range(8 if format == "w4" else 0):
                zeros[panel * 8 + row][g] = file.byte()
    assert not any(map(any, codes[rows:] + scales[rows:] + zeros[rows:])), "rows past the last are not zero"
    assert not any(any(row[cols:]) for row in codes), "inputs past the last are not zero"
    return Part(format, [row[:cols] for row in codes[:rows]], scales[:rows], zeros[:rows], start)


def _w4_block(file: Cursor, codes: list[list[float]], row: int, column: int) -> None:
    for i in range(4):
        for j in range(2):
            for t in range(16):
                byte = file.byte()
                codes[row + i + 4 * j][column + t] = byte % 16
                codes[row + i + 4 * j][column + t + 16] = byte // 16


def _w8_block(file: Cursor, codes: list[list[float]], row: int, column: int) -> None:
    for r in range(8):
        for t in range(32):
            codes[row + r][column + t] = file.number("b")
