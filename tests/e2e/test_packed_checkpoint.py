"""One command makes a firmware of a quantized checkpoint, and the firmware answers as the reference says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from colibri_build.artifacts import Format, Kind
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.quantize.rtn import dequantize_tensor
from support import packed_checkpoint
from support.command_line import error_line, runner
from support.packed_checkpoint import write_packed_checkpoint


def test_an_awq_folder_builds_for_a_board_and_answers_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No option names a group size or a format: the codes on the board are those of the folder."""
    run = runner(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))
    values = write_packed_checkpoint(tmp_path / "tiny-awq", packed_checkpoint.Format("awq"))
    (tmp_path / "prompts.txt").write_text("turn the window on\n", encoding="utf-8")
    more = ("--verify", "--golden-tokens", "8", "--prompts", "prompts.txt", "--json")
    code, out, err = run("-b", "cortex-a53", "tiny-awq", *more)
    assert code == 0, err
    assert json.loads(out)["verify"]["ok"] is True
    folder = read_model_folder(tmp_path / "build" / "cortex-a53" / "tiny-awq" / "weights")
    stored = load_quantized(folder, read_tokenizer_bytes)
    assert stored.group_size == 32 and stored.formats[Kind.EXPERT] is stored.formats[Kind.ATTENTION] is Format.W4
    for expert in range(4):
        for ours, published in {"gate": "w1", "up": "w3", "down": "w2"}.items():
            tensor = dequantize_tensor(stored.tensors[f"layers.1.experts.{expert}.{ours}"], stored.group_size)
            wanted = values[f"model.layers.1.block_sparse_moe.experts.{expert}.{published}.weight"]
            np.testing.assert_array_equal(tensor, wanted)
    assert stored.provenance["taken_over"] == [
        "8 of 8 packed attention tensors were taken over as they are",
        "24 of 24 packed expert tensors were taken over as they are",
    ]


def test_the_group_size_of_the_users_is_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a kept model nor the default may hide what --group-size asks for; awq is refused before it starts.

    A kept model says like a new one what was taken over.
    """
    run = runner(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))
    write_packed_checkpoint(tmp_path / "tiny", packed_checkpoint.Format("gptq", group_size=64))
    told: list[bool] = []
    for more in ((), ("--group-size", "32"), ()):
        code, _, err = run("plan", "-b", "cortex-a53", "tiny", *more)
        assert code == 0, err
        told.append("note: 24 of 24 packed expert tensors were taken over as they are" in err)
    sizes = [read_model_folder(kept).group_size for kept in (tmp_path / "cache" / "models").iterdir()]
    assert sorted(sizes) == [32, 64]
    assert told == [True, True, True]  # the third is the first one's, kept
    (tmp_path / "text").write_text("turn the window on\n", encoding="utf-8")
    code, _, err = run("plan", "-b", "cortex-a53", "tiny", "--calibration", "text")
    assert code == 2
    assert "is quantized already (32 tensors): method awq would change its codes; try: --method rtn" in error_line(err)
