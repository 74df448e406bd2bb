"""One command makes a firmware of a GGUF file, and the firmware answers as the reference says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType

from colibri_build.artifacts import Kind
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.quantize.rtn import dequantize_tensor
from support.command_line import runner
from support.gguf_file import write_tiny_gguf


def test_a_moe_in_q4_0_builds_for_a_board_and_answers_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its codes are taken over as they are, negative scales included: packed, through the reference and NEON kernels."""
    run = runner(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.gguf"  # a link, as caches of downloads have them: its own name is the build folder's
    path.symlink_to(write_tiny_gguf(tmp_path / "blobs" / "0a1b2c", kind=GGMLQuantizationType.Q4_0))
    more = ("--verify", "--golden-tokens", "8", "--prompts", _prompts(tmp_path), "--json")
    code, out, err = run("build", "--board", "cortex-a53", path, *more)
    assert code == 0, err
    answers = json.loads(out)["verify"]
    assert answers["ok"] is True
    stored = load_quantized(
        read_model_folder(tmp_path / "build" / "cortex-a53" / "tiny" / "weights"), read_tokenizer_bytes
    )
    model = read_checkpoint(path)
    signs = [np.sign(tensor.scales).min() for tensor in stored.tensors.values() if tensor.scales is not None]
    assert min(signs) == -1
    for name, tensor in stored.tensors.items():
        values = dequantize_tensor(tensor, stored.group_size).reshape(tensor.spec.shape)
        np.testing.assert_array_equal(values, model.tensors[name], err_msg=name)
    assert {tensor.spec.kind for tensor in stored.tensors.values()} >= {Kind.EXPERT, Kind.ROUTER}


def _prompts(folder: Path) -> Path:
    path = folder / "prompts.txt"
    path.write_text("turn the window on\n", encoding="utf-8")
    return path
