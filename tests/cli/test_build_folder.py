"""The folder of a build: found again, moved, damaged, shared with files of the user's, used by two builds at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from colibri_build import pipeline
from colibri_build.build_folder import open_build, remove_build, taken
from colibri_build.errors import ColibriError
from colibri_build.pipeline import BuildResult
from colibri_build.requests import BuildRequest
from support.builds import build_tiny, portable_board
from support.command_line import Run, error_line


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuildResult]:
    """A build with one thread, for a board of the user's own that was named by a relative path."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLIBRI_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        board = Path(portable_board(folder)).name
        yield build_tiny(folder, board, max_threads=1)


@pytest.fixture
def copy(built: BuildResult, tmp_path: Path) -> Path:
    return shutil.copytree(built.out, tmp_path / "moved here")


def test_a_moved_build_is_found_from_any_folder(
    copy: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("verify", copy.name, "--json")
    assert code == 0, err
    assert json.loads(out)["ok"]
    assert run("run", copy.name, "--", "--selftest")[0] == 0


def test_a_firmware_with_one_thread_is_verified_with_one(built: BuildResult) -> None:
    _, report = pipeline.verify(open_build(built.out))
    assert report.ok
    assert {row.threads for row in report.results} == {1}


def test_more_threads_than_were_built_in_are_refused(copy: Path, run: Run) -> None:
    code, _, err = run("verify", copy, "--threads", "2")
    assert code == 2
    assert "2 threads: the firmware was built for 1 at most; try: --threads 1" in error_line(err)


def edit(path: Path, *keys: str, value: object) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    table = record
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    path.write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize("verb", ["run", "verify", "inspect"])
@pytest.mark.parametrize(
    ("damage", "wanted"),
    [
        (lambda out: edit(out / "build.json", "options", "context", value="many"), "build.json is damaged"),
        (lambda out: edit(out / "build.json", "options", "context", value=-1), "build.json is damaged"),
        (lambda out: edit(out / "build.json", "options", value=[]), "build.json is damaged"),
        (lambda out: (out / "build.json").write_text("[]"), "build.json is damaged"),
        (lambda out: (out / "build.json").unlink(), "holds no finished build"),
        (lambda out: (out / "golden.json").write_text("{}"), "golden.json is missing or damaged"),
        (lambda out: edit(out / "golden.json", "generations", value=[]), "golden.json is missing or damaged"),
        (lambda out: edit(out / "golden.json", "generations", value=[{"ids": 1}]), "golden.json is missing or damaged"),
        (lambda out: (out / "colibri_inference").unlink(), "colibri_inference is missing"),
    ],
)
def test_a_damaged_build_is_one_line(copy: Path, run: Run, verb: str, damage: object, wanted: str) -> None:
    assert callable(damage)
    damage(copy)
    code, out, err = run(verb, copy)
    assert code == 2
    assert wanted in error_line(err)
    assert "; try: " in error_line(err)
    assert out == ""


def test_a_build_says_which_toolchain_it_took_instead_of_the_environments(
    built: BuildResult, copy: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSS_COMPILE", "aarch64-linux-gnu-")
    checkpoint, board = built.out.parent / "tiny", built.out.parent / "portable-x86-64-v3.toml"
    code, out, err = run("-b", board, "-o", copy, "--group-size", "32", "--json", checkpoint)
    assert code == 0, err
    assert "passed over: toolchain vendor-gnu: aarch64-linux-gnu-gcc" in json.loads(out)["toolchain"]["why"]
    assert err == ""
    _, _, err = run("-b", board, "-o", copy, "--group-size", "32", checkpoint)
    assert "passed over: toolchain vendor-gnu: aarch64-linux-gnu-gcc" in err


def test_the_built_in_prompts_fit_a_small_context(
    built: BuildResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path))
    board = str(built.out.parent / "portable-x86-64-v3.toml")
    changes = {"out": tmp_path / "out", "prompts": pipeline.DEFAULT_PROMPTS, "context": 8}
    result = build_tiny(built.out.parent, board, **changes)
    assert [answer.prompt for answer in result.golden] == ["Hello", "1 2 3"]


@pytest.mark.parametrize("home", ["read-only", "none"])
def test_without_a_home_folder_a_model_folder_is_built_as_well(
    built: BuildResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """As in a container with a user of its own: only checkpoints need the cache."""
    if home == "read-only":
        monkeypatch.setenv("COLIBRI_CACHE", "/proc/cache")
    else:
        monkeypatch.delenv("COLIBRI_CACHE", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", no_home)
    board = str(built.out.parent / "portable-x86-64-v3.toml")
    request = BuildRequest(built.out / "weights", board, tmp_path / "out", context=48, golden_tokens=2, prompts=("a",))
    assert pipeline.build(request).report.ok


def no_home() -> Path:
    """What Python says of a user who is not in the system's list."""
    raise RuntimeError("Could not determine home directory.")


def test_a_changed_binary_is_noted_even_where_the_answers_are_equal(copy: Path, run: Run) -> None:
    """A byte of a weight that no golden prompt reads: the answers cannot show it, the inspection does."""
    code, out, err = run("verify", copy, "--json")
    assert (code, json.loads(out)["as_inspected"], err) == (0, True, "")
    elf = copy / "colibri_inference"
    data = bytearray(elf.read_bytes())
    at = data.index((copy / "weights" / "dense.bin").read_bytes())
    data[at + 293 * 64] ^= 1  # embedding of the first id behind the vocabulary of the tokenizer
    elf.write_bytes(data)
    code, out, err = run("verify", copy, "--json")
    assert (code, json.loads(out)["as_inspected"]) == (0, False)
    assert "changed since its inspection" in err
    code, out, err = run("inspect", copy)
    assert code == 1
    assert "FAILED" in out


def test_the_toolchain_that_auto_chose_is_taken_again(copy: Path) -> None:
    assert open_build(copy).toolchain == "debian-gcc"


def test_an_inspection_without_the_model_says_so(copy: Path, run: Run) -> None:
    shutil.rmtree(copy / "weights")
    code, _, err = run("inspect", copy)
    assert code == 2
    assert "weights is missing" in error_line(err)


def test_a_build_that_fails_leaves_no_older_one_to_be_taken_for_it(built: BuildResult, tmp_path: Path) -> None:
    out = shutil.copytree(built.out, tmp_path / "out")
    open_build(out)
    with pytest.raises(ColibriError, match="golden prompt"):
        build_tiny(tmp_path, "x86-64-v3", out=out, prompts=("far too long " * 50,))
    with pytest.raises(ColibriError, match="no finished build"):
        open_build(out)


def test_pristine_removes_what_was_built_and_nothing_else(copy: Path) -> None:
    (copy / "notes.txt").write_text("mine", encoding="utf-8")
    (copy / "generated" / "mine.c").write_text("mine", encoding="utf-8")
    remove_build(copy)
    left = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file())
    assert left == ["generated/mine.c", "notes.txt"]


def test_pristine_touches_no_folder_that_was_never_built_in(tmp_path: Path) -> None:
    (tmp_path / "build.json").write_text("mine", encoding="utf-8")
    remove_build(tmp_path)
    assert (tmp_path / "build.json").exists()


def test_two_builds_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    said = "another build is running in .*out; try: wait"
    with taken(tmp_path / "out"), pytest.raises(ColibriError, match=said), taken(tmp_path / "out"):
        pass
    with taken(tmp_path / "out"):
        pass


@pytest.mark.parametrize("name", ["build.json", "golden.json", "report.json", "colibri_inference"])
def test_results_of_somebody_else_are_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(ColibriError, match=f"{name} is in the way"), taken(tmp_path):
        pass
