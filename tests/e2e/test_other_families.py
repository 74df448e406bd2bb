"""A whole firmware, tokenizer, command line and inspection included, of models that are not a Mixtral."""

from __future__ import annotations

from pathlib import Path

import pytest

from colibri_build import pipeline
from colibri_build.build_folder import open_build
from colibri_build.pack.writer import write_model_folder
from support.builds import build_tiny, quick_board, run
from support.features import feature_model


@pytest.mark.parametrize("name", ["no-experts", "latent-queries", "gpt-oss"])
def test_the_firmware_of_another_family_is_inspected_and_answers(tmp_path: Path, name: str) -> None:
    """Code outside the decoder counts experts and sizes buffers, too: a model without them must build and answer."""
    folder = write_model_folder(feature_model(name), tmp_path / "model")
    result = build_tiny(tmp_path, quick_board(tmp_path), model=folder.path, quantize=pipeline.QuantizeChoices())
    assert result.report.ok, [check for check in result.report.checks if not check.ok]
    _, verdict = pipeline.verify(open_build(result.out))
    pipeline.require_verified(verdict)
    assert run(result, "--selftest").status["status"] == "ok"
    assert run(result, "--info").exit_code == 0
