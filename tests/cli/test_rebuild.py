"""A build that would change nothing does nothing; one that would change anything is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from colibri_build import up_to_date
from colibri_build.pack.writer import write_model_folder
from colibri_build.requests import BuildRequest, QuantizeChoices
from colibri_build.up_to_date import STAMP_FILE, Watch, unchanged
from support.builds import quick_board
from support.command_line import Run
from support.tiny_quantized import random_quantized

_started: list[tuple[Any, ...]] | None = None  # processes that were started, while somebody counts


def _on_audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _started is not None and event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"):
        _started.append((event, *arguments))


sys.addaudithook(_on_audit)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the interpreter itself reports of processes from now on."""
    monkeypatch.setattr(sys.modules[__name__], "_started", [])
    assert _started is not None
    return _started


@pytest.fixture(autouse=True)
def program(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that stands for the program's own: somebody may be working on those while the tests run."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "stage.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(up_to_date, "package_dir", lambda: folder)
    monkeypatch.setattr(up_to_date, "_DATA", ())
    return folder / "stage.py"


def test_the_program_itself_is_looked_at(monkeypatch: pytest.MonkeyPatch, request_: BuildRequest) -> None:
    monkeypatch.undo()
    paths = {str(path) for path in up_to_date._inputs(replace(request_, board="cortex-a53"))}
    for name in ("pipeline.py", "a53.toml", "Makefile.j2", "debian-gcc.toml", "colibri.h"):
        assert any(path.endswith(name) for path in paths), name


def test_a_rebuild_loads_nothing_that_only_a_build_needs() -> None:
    arguments = [sys.executable, "-X", "importtime", "-c", "import colibri_build.cli, colibri_build.cli_build"]
    imports = subprocess.run(arguments, capture_output=True, text=True, check=True).stderr
    assert "colibri_build.up_to_date" in imports
    assert not [name for name in ("numpy", "pydantic", "jinja2", "tokenizers") if name in imports]


def test_a_rebuild_starts_no_process_and_computes_nothing(
    run: Run, tmp_path: Path, tiny: Path, started: list[tuple[Any, ...]]
) -> None:
    board, out = quick_board(tmp_path), tmp_path / "out"
    words = ("-b", board, "-o", out, "--group-size", "32", "--ctx", "48", "--golden-tokens", "2", tiny)
    code, first, err = run(*words, "--json")
    assert code == 0, err
    assert any("-gcc" in str(process) for process in started), "the count sees nothing"
    before = {path: path.stat() for path in out.rglob("*")}
    started.clear()
    code, second, err = run(*words, "--json")
    assert (code, err) == (0, "")
    assert json.loads(second) == json.loads(first)
    code, table, err = run(*words)
    assert code == 0
    assert err.startswith("== nothing changed since the last build (")
    assert "debian-gcc" in err
    assert "no path of this machine" in table
    assert started == []
    assert {path: path.stat()[:7] for path in out.rglob("*")} == {path: stat[:7] for path, stat in before.items()}
    code, _, err = run(*words, "--pristine")
    assert (code, "nothing changed" in err) == (0, False)


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildRequest:
    monkeypatch.chdir(tmp_path)
    model = write_model_folder(random_quantized(), tmp_path / "model").path
    (tmp_path / "base.toml").write_text('extends = "cortex-a53"\n', encoding="utf-8")
    (tmp_path / "my.toml").write_text('extends = "base.toml"\n', encoding="utf-8")
    (tmp_path / "text.txt").write_text("calibration", encoding="utf-8")
    return BuildRequest(model, "my.toml", quantize=QuantizeChoices(calibration=tmp_path / "text.txt"))


@pytest.fixture
def finished(request_: BuildRequest, tmp_path: Path) -> Path:
    """A build folder with two files, noted as finished."""
    out = tmp_path / "out"
    out.mkdir()
    watch = Watch(request_, ("gcc",))
    for name in ("colibri_inference", "report.json"):
        (out / name).write_bytes(b"made")
    watch.finish(out, [out / "colibri_inference", out / "report.json"], {"said": 1})
    found = unchanged(request_, out)
    assert found is not None
    assert found["said"] == 1
    return out


def _same_size_and_time(path: Path) -> None:
    """What rsync, cp -p and touch -r do: other bytes, the same size and time of modification."""
    status = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "weights in place": lambda top: _same_size_and_time(top / "model" / "dense.bin"),
    "weights replaced": lambda top: (top / "model" / "dense.bin").replace(top / "model" / "routing.bin"),
    "a file more": lambda top: (top / "model" / "chat.json").write_text("{}"),
    "a file less": lambda top: (top / "model" / "tokenizer.json").unlink(),
    "the board": lambda top: (top / "my.toml").write_text('extends = "cortex-a53"\n'),
    "what the board extends": lambda top: (top / "base.toml").write_text('extends = "cortex-a72"\n'),
    "the calibration text": lambda top: _same_size_and_time(top / "text.txt"),
    "the binary": lambda top: _same_size_and_time(top / "out" / "colibri_inference"),
    "no report": lambda top: (top / "out" / "report.json").unlink(),
    "a damaged stamp": lambda top: (top / "out" / STAMP_FILE).write_text("{}"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_file_is_noticed(
    request_: BuildRequest, finished: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    change(tmp_path)
    assert unchanged(request_, finished) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"context": 8},
        {"activation_bits": 8},
        {"debug": ("timing",)},
        {"prompts": ("Hello",)},
        {"toolchain": "zig"},
        {"quantize": QuantizeChoices(bits=8)},
    ],
    ids=str,
)
def test_another_request_is_noticed(request_: BuildRequest, finished: Path, changes: dict[str, Any]) -> None:
    assert unchanged(replace(request_, **changes), finished) is None


def test_another_version_of_the_program_is_noticed(request_: BuildRequest, finished: Path, program: Path) -> None:
    _same_size_and_time(program)
    assert unchanged(request_, finished) is None


def test_another_compiler_in_the_path_is_noticed(
    request_: BuildRequest, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path's text stays: somebody installs a compiler in front of the one that was taken."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    watch = Watch(request_, ("gcc",))
    watch.finish(finished, [finished / "report.json"], {})
    assert unchanged(request_, finished) is not None
    (folder / "gcc").write_text("#!/bin/sh\n")
    (folder / "gcc").chmod(0o755)
    assert unchanged(request_, finished) is None


def test_a_link_that_leads_to_another_compiler_is_noticed(
    request_: BuildRequest, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What update-alternatives does: no file changes, and the compiler has the path that it had."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for version in ("gcc-12", "gcc-13"):
        (folder / version).write_text("#!/bin/sh\n")
        (folder / version).chmod(0o755)
    (folder / "gcc").symlink_to("gcc-12")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    Watch(request_, ("gcc",)).finish(finished, [finished / "report.json"], {})
    assert unchanged(request_, finished) is not None
    (folder / "gcc").unlink()
    (folder / "gcc").symlink_to("gcc-13")
    assert unchanged(request_, finished) is None


def test_another_library_of_python_is_noticed(
    request_: BuildRequest, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them is the zig compiler, another one dequantizes GGUF."""
    folder = tmp_path / "site-packages"
    (folder / "ziglang-1.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))
    Watch(request_, ("gcc",)).finish(finished, [finished / "report.json"], {})
    assert unchanged(request_, finished) is not None
    (folder / "ziglang-1.dist-info").rename(folder / "ziglang-2.dist-info")
    assert unchanged(request_, finished) is None


@pytest.mark.parametrize("name", ["CC", "CROSS_COMPILE", "PATH", "TMPDIR"])
def test_another_environment_is_noticed(
    request_: BuildRequest, finished: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, f"/elsewhere:{os.environ.get(name, '')}")
    assert unchanged(request_, finished) is None


def test_an_input_that_changes_while_it_is_used_is_no_finished_build(request_: BuildRequest, tmp_path: Path) -> None:
    """The binary may hold either state of the file."""
    out = tmp_path / "out"
    out.mkdir()
    watch = Watch(request_, ("gcc",))
    (tmp_path / "model" / "config.json").write_text("{}", encoding="utf-8")
    watch.finish(out, [], {})
    assert not (out / STAMP_FILE).exists()


def test_a_compiler_that_changes_while_it_works_is_no_finished_build(
    request_: BuildRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, compiler = tmp_path / "out", tmp_path / "gcc"
    out.mkdir()
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    watch = Watch(request_, ("gcc",))
    compiler.write_text("#!/bin/sh\nexit 1\n")
    watch.finish(out, [], {})
    assert not (out / STAMP_FILE).exists()
