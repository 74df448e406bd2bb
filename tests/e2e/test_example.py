"""The example model as firmware: the committed answers of transformers, and the bits of the reference, on every board."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colibri_build import pipeline
from colibri_build.pipeline import BuildRequest, Built
from support.builds import portable_board, run
from support.golden import EXAMPLE, read_goldens

ALL_PROMPTS = tuple(golden.prompt for golden in read_goldens())


@pytest.mark.parametrize(("board", "n_prompts"), [("cortex-a53", 20), ("tda4vm", 5), ("x86-64-v3", 5), ("portable", 5)])
def test_the_firmware_says_what_transformers_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: str, n_prompts: int
) -> None:
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))
    name = portable_board(tmp_path) if board == "portable" else board
    request = BuildRequest(
        EXAMPLE / "model", name, out=tmp_path / "out", prompts=ALL_PROMPTS[:n_prompts], golden_tokens=64, max_threads=2
    )
    result = pipeline.build(request)
    assert result.report.ok
    built = Built(result.out, result.firmware.elf, result.board, "auto", result.plan.options, result.golden)
    _, report = pipeline.verify(built)
    assert report.ok, [row for row in report.results if not row.ok]
    goldens = read_goldens()[:n_prompts]
    assert [list(row.got_ids) for row in report.results if row.threads == 1] == [golden.ids for golden in goldens]
    selftest = run(result, "--selftest")
    assert (selftest.exit_code, selftest.status["status"]) == (0, "ok")
    answer = run(result, "--prompt", ALL_PROMPTS[0]).stdout.decode()
    assert json.loads(answer)
