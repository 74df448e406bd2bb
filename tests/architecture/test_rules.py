"""The rules of the tree: a violation would let the stages grow into each other until no one can change one alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "builder" / "colibri_build"
STAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists() and path.name != "target")
BASE = {
    "artifacts",
    "tensor_specs",
    "model_constants",
    "errors",
    "target",
    "resources",
    "layout",
    "files",
    "frames",
    "trace_events",
}
NUMBER_FORMATS = "reference.numbers"
# Third-party libraries and the only places that may know them.
ROOMS = {
    "jinja2": {"render", "report"},
    "elftools": {"elf", "target"},
    "serial": {"run"},
    "cobs": {"frames"},
    "pexpect": {"run"},
    "yaml": {"run"},
    "click": {"cli"},
    "rich_click": {"cli"},
    "rich": {"cli"},
    "gguf": {"checkpoint"},
    "tokenizers": {"checkpoint"},
    "safetensors": {"checkpoint"},
    "pydantic": {"target"},
    "threadpoolctl": {"quantize"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Absolute names of all modules that a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module != "colibri_build.reference":  # a package without content: its parts are named below
                names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def room_of(path: Path) -> str:
    """First part below the package, without .py; files of the command line share the room `cli`."""
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "cli" if name.startswith("cli") else name


def ids(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) in STAGES], ids=ids)
def test_a_stage_imports_only_the_base_and_itself(path: Path) -> None:
    allowed = BASE | {room_of(path)}
    for name in imports_of(path):
        if not name.startswith("colibri_build."):
            continue
        inner = name.removeprefix("colibri_build.")
        if inner.startswith(NUMBER_FORMATS) or inner.split(".")[0] in allowed or inner == "__version__":
            continue
        pytest.fail(f"{ids(path)} imports {name}: only pipeline and cli know other stages")


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_third_party_libraries_stay_in_their_room(path: Path) -> None:
    for name in imports_of(path):
        rooms = ROOMS.get(name.split(".")[0])
        assert rooms is None or room_of(path) in rooms, (
            f"{ids(path)} imports {name}, which belongs to {sorted(rooms or ())}"
        )


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_only_the_command_line_prints_or_exits(path: Path) -> None:
    if room_of(path) == "cli":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "exit", "quit"), f"{ids(path)}:{node.lineno} calls {node.func.id}"


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500
