"""Take a synthetic checkpoint with the shape of OLMoE-1B-7B through quantize, plan and build: time and memory.

    .venv/bin/python benchmarks/import_at_scale.py FOLDER [--layers 16] [--real 2]

Makes FOLDER/checkpoint (13.8 GB in three shards, most of it holes of a sparse file), runs the three commands as a user
would, and prints for each how long it took and how much memory its largest process held. `--real` layers hold random
numbers, the others zeros.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).parents[1]
TOKENIZER = REPOSITORY / "examples" / "cabin_voice" / "model" / "tokenizer.json"
DIM, HIDDEN, HEADS, EXPERTS, TOP_K, VOCAB = 2048, 1024, 16, 64, 8, 50304
SHARDS = 3
CONFIG: Mapping[str, Any] = {
    "architectures": ["OlmoeForCausalLM"],
    "model_type": "olmoe",
    "hidden_size": DIM,
    "intermediate_size": HIDDEN,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "num_experts": EXPERTS,
    "num_experts_per_tok": TOP_K,
    "norm_topk_prob": False,
    "vocab_size": VOCAB,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-05,
    "eos_token_id": 1,
    "bos_token_id": None,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def layer_shapes(config: Mapping[str, Any], layer: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Published names and shapes of one layer of a model with the sizes of `config`."""
    dim, hidden, experts = config["hidden_size"], config["intermediate_size"], config["num_experts"]
    prefix = f"model.layers.{layer}."
    for norm in ("input_layernorm", "post_attention_layernorm", "self_attn.q_norm", "self_attn.k_norm"):
        yield f"{prefix}{norm}.weight", (dim,)
    for projection in "qkvo":
        yield f"{prefix}self_attn.{projection}_proj.weight", (dim, dim)
    yield f"{prefix}mlp.gate.weight", (experts, dim)
    for expert in range(experts):
        for part, shape in (("gate", (hidden, dim)), ("up", (hidden, dim)), ("down", (dim, hidden))):
            yield f"{prefix}mlp.experts.{expert}.{part}_proj.weight", shape


def shapes(config: Mapping[str, Any], layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of such a model."""
    dim, vocab = config["hidden_size"], config["vocab_size"]
    yield "model.embed_tokens.weight", (vocab, dim)
    for layer in range(layers):
        yield from layer_shapes(config, layer)
    yield "model.norm.weight", (dim,)
    yield "lm_head.weight", (vocab, dim)


def values(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> bytes:
    """Random bf16 numbers: norms near 1, matrices with the spread of a trained model."""
    spread, mean = (0.1, 1.0) if name.endswith("norm.weight") else (0.02, 0.0)
    floats = rng.standard_normal(shape, np.float32) * np.float32(spread) + np.float32(mean)
    return (floats.view(np.uint32) >> 16).astype("<u2").tobytes()


def write_shard(path: Path, tensors: list[tuple[str, tuple[int, ...]]], real_layers: int) -> None:
    """One safetensors file; tensors of the other layers are left as holes."""
    header, at = {}, 0
    for name, shape in tensors:
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
        for name, shape in tensors:
            parts = name.split(".")
            if parts[1] != "layers" or int(parts[2]) < real_layers:
                file.seek(8 + len(text) + header[name]["data_offsets"][0])
                file.write(values(name, shape, rng))


def make_checkpoint(folder: Path, layers: int, real_layers: int) -> None:
    """A folder as transformers saves it."""
    folder.mkdir(parents=True)
    every = list(shapes(CONFIG, layers))
    per_shard = -(-len(every) // SHARDS)
    weight_map = {}
    for shard in range(SHARDS):
        name = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        tensors = every[shard * per_shard : (shard + 1) * per_shard]
        write_shard(folder / name, tensors, real_layers)
        weight_map.update({tensor: name for tensor, _ in tensors})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": layers}))
    shutil.copy(TOKENIZER, folder)


def measured(command: list[str]) -> tuple[float, int]:
    """Run a command; seconds, and bytes that the largest of its processes held."""
    begin = time.monotonic()
    child = os.fork()
    if child == 0:  # the usage of children is a maximum over all so far: ask a process that has this one alone
        code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        os.write(PIPE[1], f"{code} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}\n".encode())
        os._exit(0)
    os.waitpid(child, 0)
    code, kib = map(int, os.read(PIPE[0], 100).split())
    if code:
        sys.exit(f"{' '.join(command)}: exit code {code}")
    return time.monotonic() - begin, kib * 1024


PIPE = os.pipe()


def main() -> None:
    """Print a row for each command."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--real", type=int, default=2, help="layers that hold random numbers")
    args = parser.parse_args()
    checkpoint, model, out = (args.folder / name for name in ("checkpoint", "model", "build"))
    if not checkpoint.exists():
        make_checkpoint(checkpoint, args.layers, args.real)
    bin = Path(sys.executable).parent
    weights = sum(int(np.prod(shape)) for _, shape in shapes(CONFIG, args.layers))
    print(f"{weights:,} weights, {sum(f.stat().st_size for f in checkpoint.iterdir()):,} bytes\n")
    print("| command | seconds | largest process |\n| --- | ---: | ---: |")
    board = ["--board", "x86-64-v3", "--ctx", "512"]
    for name, command in {
        "colibri-quantize": [str(bin / "colibri-quantize"), str(checkpoint), str(model), "--method", "rtn"],
        "colibri-build plan": [str(bin / "colibri-build"), "plan", *board, str(model)],
        "colibri-build": [str(bin / "colibri-build"), *board, "-o", str(out), str(model)],
    }.items():
        seconds, peak = measured(command)
        print(f"| {name} | {seconds:.0f} | {peak / 2**20:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
