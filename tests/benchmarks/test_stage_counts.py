"""Where a token's instructions go: a stage that loses some, or takes those of another, would send work to the wrong place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from suite.instructions import marks

from support.builds import build_tiny, quick_board

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "stage_instructions.py"
CONTEXT, TOKENS = 20, 3


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stages")
    return build_tiny(folder, quick_board(folder)).out


def count(build: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, PROGRAM, build, "--context", str(CONTEXT), *options]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def points(build: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The prompt, and decoding."""
    out = tmp_path_factory.mktemp("counts") / "stages.json"
    done = count(build, "--tokens", str(TOKENS), "--json", str(out))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(out.read_text())
    return found


def test_the_stages_add_up_to_what_the_other_plugin_counts(build: Path, points: list[dict[str, Any]]) -> None:
    """instruction_plugin.c knows nothing of functions: every instruction of prompt and tokens is in one stage."""
    ids = ",".join(str(1 + i % 97) for i in range(CONTEXT))
    command = [build / "colibri_inference", "--tokens", ids, "--max-tokens", str(TOKENS + 1), "--ids", "--threads", "1"]
    written = marks(command, "x86-64-v3")
    for point, instructions, n_tokens in zip(
        points, (written[0], written[TOKENS] - written[0]), (CONTEXT, TOKENS), strict=True
    ):
        assert point["instructions_per_token"] == pytest.approx(instructions / n_tokens, rel=1e-4), point["point"]
        stages = sum(stage["instructions"] for stage in point["stages"].values())
        assert stages == pytest.approx(point["instructions_per_token"], abs=len(point["stages"]))


def test_products_are_told_apart_by_who_called_them(points: list[dict[str, Any]]) -> None:
    """The same kernel works for attention, experts and head; in batches its own helper functions do."""
    prompt, decoded = (point["stages"] for point in points)
    for stage in ("attention matrices", "expert matrices", "head matrix", "attention over the cache", "router"):
        assert decoded[stage]["percent"] > 0.5, stage
    assert decoded["other"]["percent"] < 2
    assert (
        prompt["head matrix"]["instructions"] < decoded["head matrix"]["instructions"] / 4
    )  # for the last token alone
    assert (
        prompt["expert matrices"]["instructions"] > 5 * prompt.get("expert sums", {"instructions": 0})["instructions"]
    )


def test_an_answer_that_ends_early_is_told(build: Path) -> None:
    """Its count divided by the tokens asked for would look like a faster firmware."""
    done = count(build, "--tokens", "500")
    assert done.returncode == 1
    assert "tokens; try fewer --tokens" in done.stderr
