"""Test programs around runtime_c/link, sanitized."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.fake_firmware import COMPILERS, ROOT, STRICT


@pytest.fixture(scope="session")
def link_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile one of the programs beside this file with all of runtime_c/link."""
    folder = tmp_path_factory.mktemp("link")

    def build(name: str) -> Path:
        out = folder / name
        if not out.exists():
            sources = [ROOT / "tests" / "link" / f"{name}.c", *sorted((ROOT / "runtime_c" / "link").glob("*.c"))]
            flags = [*COMPILERS["sanitized"], *STRICT, f"-I{ROOT / 'runtime_c'}", f"-I{ROOT / 'runtime_c' / 'include'}"]
            subprocess.run([*flags, *map(str, sources), "-o", str(out)], check=True)
        return out

    return build
