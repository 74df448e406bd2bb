"""Data folders are found in a checkout and in an installed wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from colibri_build import resources
from colibri_build.errors import ColibriError
from colibri_build.resources import data_dir


@pytest.mark.parametrize("name", ["templates", "runtime_c", "boards", "toolchains"])
def test_a_checkout_has_every_data_folder(name: str) -> None:
    assert any(data_dir(name).iterdir())


def test_a_wheel_carries_its_own_data(tmp_path: Path) -> None:
    """An installed package must not look for a checkout above it."""
    package = tmp_path / "site" / "colibri_build"
    shutil.copytree(Path(resources.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(data_dir("boards"), package / "_data" / "boards")
    code = "from colibri_build.target.board import load_board; import colibri_build.resources as r; "
    code += "print(load_board('tda4vm').cores, r.data_dir('boards'))"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {code}"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stdout == f"2 {package / '_data' / 'boards'}\n"


def test_a_missing_folder_says_where_it_was_looked_for() -> None:
    with pytest.raises(
        ColibriError, match="data folder 'nothing' is missing .*_data/nothing.*try: install colibri-build"
    ):
        data_dir("nothing")
