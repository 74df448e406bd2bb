"""How much memory a quantization needs, whatever the size of the checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.model_source import quantize_checkpoint
from colibri_build.pack.reader import read_model_folder
from colibri_build.requests import QuantizeChoices
from support.tiny_checkpoint import tensor_shapes, tiny_config, tiny_tokenizer, write_tiny_checkpoint

MIB = 1 << 20

# Quantizes within so much anonymous memory above what the interpreter and its libraries hold once they are loaded.
WITHIN = """
import os, resource, sys, threading
from pathlib import Path
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.model_source import quantize_checkpoint
from colibri_build.requests import QuantizeChoices

os.cpu_count = lambda: 2
threading.stack_size(1 << 20)  # the limit counts what a stack may become
held = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
limit = held + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
quantize_checkpoint(Path(sys.argv[1]), Path(sys.argv[2]), QuantizeChoices())
"""


def sparse_checkpoint(folder: Path, dtype: str, **sizes: int) -> tuple[Path, int, int]:
    """A checkpoint whose weights are holes of a file; also its bytes, and those of its largest tensor as float32."""
    config = tiny_config(dtype={"F32": "float32", "BF16": "bfloat16"}[dtype], **sizes)
    header, at, largest = {}, 0, 0
    for name, shape in tensor_shapes(config).items():
        count = int(np.prod(shape))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at := at + count * int(dtype[-2:]) // 8]}
        largest = max(largest, 4 * count)
    text = json.dumps(header).encode()
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder, at, largest


def peak_of(checkpoint: Path, out: Path, choices: QuantizeChoices) -> int:
    """Most bytes that Python and NumPy held at once while they quantized."""
    read_checkpoint(checkpoint)  # what is kept of the tokenizer's classes of characters is there for all
    tracemalloc.start()
    try:
        quantize_checkpoint(checkpoint, out, choices)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
def test_rtn_needs_at_most_three_times_the_largest_tensor(tmp_path: Path, dtype: str) -> None:
    """Of a vocabulary of 100,000 tokens it is the embedding; pieces and interpreter are small beside it."""
    sizes = {"vocab_size": 98304, "hidden_size": 128, "num_hidden_layers": 1, "tie_word_embeddings": True}
    checkpoint, _, largest = sparse_checkpoint(tmp_path / "checkpoint", dtype, **sizes)
    assert largest == 48 * MIB
    peak = peak_of(checkpoint, tmp_path / "model", QuantizeChoices())
    assert peak <= 3 * largest, f"{peak / largest:.2f} times the largest tensor"


def test_awq_holds_no_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/quantization.md says: a search's dozen of arrays for each thread, and statistics of each expert."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    experts, dim, hidden = 9, 256, 640
    sizes = {"hidden_size": dim, "intermediate_size": hidden, "num_local_experts": experts, "num_hidden_layers": 1}
    checkpoint = write_tiny_checkpoint(tmp_path / "checkpoint", **sizes)
    (tmp_path / "text.txt").write_text("turn the window on\n\n" * 4, encoding="utf-8")
    peak = peak_of(checkpoint, tmp_path / "model", QuantizeChoices("awq", calibration=tmp_path / "text.txt"))
    matrix = 4 * dim * hidden
    searches, statistics = 14 * matrix, experts * hidden * 128 * 8
    assert experts * 3 * matrix > searches + statistics, "the layer itself would fit"
    assert peak <= searches + statistics, f"{(peak - statistics) / matrix:.1f} matrices beside the statistics"


def test_a_checkpoint_larger_than_the_memory_is_quantized(tmp_path: Path) -> None:
    """4 times what the process may hold above its start, 8 times as float32; a sixth of that is the tokenizer's."""
    sizes = {"hidden_size": 1024, "intermediate_size": 1024, "num_local_experts": 16, "num_hidden_layers": 2}
    checkpoint, total, _ = sparse_checkpoint(tmp_path / "checkpoint", "BF16", vocab_size=301, **sizes)
    allowed = 50 * MIB
    assert total >= 4 * allowed
    arguments = [str(checkpoint), str(tmp_path / "model"), str(allowed)]
    done = subprocess.run([sys.executable, "-c", WITHIN, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    read_model_folder(tmp_path / "model", verify=False)
