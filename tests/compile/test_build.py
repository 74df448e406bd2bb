"""Compiling: the same bytes wherever the folder is, no work twice, and faults that say what to do."""

from __future__ import annotations

import fcntl
import hashlib
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.artifacts import SourceTree
from colibri_build.compile.build import compile_tree
from colibri_build.compile.failure import failure
from colibri_build.errors import CompileError
from colibri_build.target.board import Board, load_board
from colibri_build.target.toolchain import Toolchain
from support.stub_tree import MAIN_C, stub_tree, target, tiny_folder

Where = tuple[Board, Toolchain]


@pytest.fixture
def where() -> Where:
    return target()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Where) -> SourceTree:
    return stub_tree(tmp_path, monkeypatch, where)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def commands_of(tree: SourceTree, where: Where) -> list[str]:
    """Compile and return what was really run."""
    ran: list[str] = []
    compile_tree(tree, *where, on_command=lambda argv: ran.append(" ".join(argv)))
    return ran


def with_compiler(where: Where, script: Path, body: str) -> Where:
    """The same toolchain with a shell script in place of the compiler."""
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
    return where[0], replace(where[1], cc=(str(script),))


@pytest.mark.parametrize(
    ("board", "toolchain"),
    [("cortex-a53", "debian-gcc"), ("x86-64-v3", "clang"), ("cortex-a53", "zig")],
    ids=["gcc", "clang", "zig"],
)
def test_builds_in_two_folders_and_by_make_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: str, toolchain: str
) -> None:
    """A user compares two builds by hash; a folder's name, even an odd one, must not be in the binary."""
    where = target(board, toolchain)
    folder = tiny_folder(tmp_path)
    elves = []
    for name in ("a", "Ordner mit Leerzeichen & Übergröße/b"):
        tree = stub_tree(tmp_path, monkeypatch, where, tmp_path / name, folder=folder)
        elves.append(compile_tree(tree, *where).elf)
    assert digest(elves[0]) == digest(elves[1])
    moved = shutil.move(elves[1].parent, tmp_path / "moved elsewhere")
    built = Path(moved) / "colibri_inference"
    built.unlink()
    cc = shlex.join(where[1].cc)
    subprocess.run(["make", "-s", "-j2", f"CC={cc}"], cwd=moved, check=True, capture_output=True)
    assert digest(built) == digest(elves[0])
    assert str(tmp_path).encode() not in built.read_bytes()


def test_make_needs_no_variables_and_ignores_the_environment(
    tree: SourceTree, where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    elf = compile_tree(tree, *where).elf
    expected = digest(elf)
    elf.unlink()
    monkeypatch.setenv("CPATH", "/nonexistent")
    monkeypatch.setenv("CC", "false")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    subprocess.run(["make", "-s"], cwd=tree.path, check=True, capture_output=True)
    assert digest(elf) == expected
    again = subprocess.run(["make"], cwd=tree.path, check=True, capture_output=True, text=True)
    assert "up to date" in again.stdout
    subprocess.run(["make", "-s", "clean"], cwd=tree.path, check=True)
    assert not elf.exists()


def test_nothing_changed_means_nothing_run(tree: SourceTree, where: Where) -> None:
    assert len(commands_of(tree, where)) == len(tree.sources) + 1
    start = time.monotonic()
    assert commands_of(tree, where) == []
    assert time.monotonic() - start < 1


def test_a_touched_but_equal_source_is_not_compiled_again(tree: SourceTree, where: Where) -> None:
    compile_tree(tree, *where)
    source = tree.path / "runtime_c/app/main.c"
    source.write_bytes(source.read_bytes())
    assert commands_of(tree, where) == []


def test_only_what_changed_is_compiled(tree: SourceTree, where: Where) -> None:
    compile_tree(tree, *where)
    (tree.path / "runtime_c/app/main.c").write_text(MAIN_C + "\n", encoding="utf-8")
    ran = commands_of(tree, where)
    assert [command.rpartition(" ")[2] for command in ran if " -c " in command] == ["objects/runtime_c/app/main.o"]


def test_a_changed_header_compiles_everything_and_changed_weights_the_assembly(tree: SourceTree, where: Where) -> None:
    compile_tree(tree, *where)
    weights = tree.path / "weights/dense.bin"
    data = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(data[:-1] + b"\1")
    assert [c.rpartition(" ")[2] for c in commands_of(tree, where) if " -c " in c] == ["objects/generated/weights.o"]
    header = tree.path / "generated/model_config.h"
    header.write_text(header.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert len(commands_of(tree, where)) == len(tree.sources) + 1


def test_changed_flags_compile_again(tree: SourceTree, where: Where) -> None:
    compile_tree(tree, *where)
    board, toolchain = where
    changed = board, replace(toolchain, cflags=(*toolchain.cflags, "-DX=1"))
    assert len(commands_of(tree, changed)) == len(tree.sources) + 1


@pytest.mark.parametrize("name", ["colibri_inference", "objects/generated/model_tables.o"])
def test_a_damaged_output_is_made_again(tree: SourceTree, where: Where, name: str) -> None:
    expected = digest(compile_tree(tree, *where).elf)
    (tree.path / name).write_bytes(b"damaged")
    assert digest(compile_tree(tree, *where).elf) == expected


def test_an_object_whose_source_is_gone_is_removed(tree: SourceTree, where: Where) -> None:
    """The inspection looks at every object: an old one would be judged."""
    compile_tree(tree, *where)
    stranger = tree.path / "objects/old.o"
    stranger.write_bytes(b"x")
    (tree.path / "runtime_c/app/main.c").write_text(MAIN_C + "\n", encoding="utf-8")
    compile_tree(tree, *where)
    assert not stranger.exists()


def test_commands_and_progress_are_reported(tree: SourceTree, where: Where) -> None:
    steps: list[tuple[str, int, int]] = []
    firmware = compile_tree(tree, *where, on_progress=lambda *step: steps.append(step))
    total = len(tree.sources) + 1
    assert [step[1:] for step in steps] == [(i + 1, total) for i in range(total)]
    assert steps[-1][0] == "link"
    assert len(firmware.commands) == total
    assert not any(str(tree.path) in command for command in firmware.commands)
    assert list((tree.path / "objects").rglob("main.su"))


def test_the_environment_of_the_host_does_not_reach_the_compiler(
    tree: SourceTree, where: Where, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = digest(compile_tree(tree, *where).elf)
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "stdio.h").write_text("#error trap\n", encoding="utf-8")
    for name in ("CPATH", "C_INCLUDE_PATH", "CFLAGS", "GCC_EXEC_PREFIX"):
        monkeypatch.setenv(name, str(trap))
    shutil.rmtree(tree.path / "objects")
    assert digest(compile_tree(tree, *where).elf) == expected


def test_an_error_names_the_line_and_the_command_and_leaves_no_binary(tree: SourceTree, where: Where) -> None:
    (tree.path / "runtime_c/app/main.c").write_text("int main(void) { return nothing; }\n", encoding="utf-8")
    with pytest.raises(CompileError) as caught:
        compile_tree(tree, *where)
    assert caught.value.what.startswith("compile runtime_c/app/main.c: runtime_c/app/main.c:1:")
    assert "'nothing' undeclared" in caught.value.what
    assert caught.value.exit_code == 3
    assert caught.value.hint is not None
    assert "-c runtime_c/app/main.c -o objects/runtime_c/app/main.o" in caught.value.hint
    assert not (tree.path / "colibri_inference").exists()


def test_a_failed_link_keeps_the_old_binary_and_no_half_one(tree: SourceTree, where: Where) -> None:
    elf = compile_tree(tree, *where).elf
    expected = digest(elf)
    broken = MAIN_C + "int missing(void);\nint caller(void);\nint caller(void) { return missing(); }\n"
    (tree.path / "runtime_c/app/main.c").write_text(
        broken.replace("return 0;", "return caller();").replace("int main", "int caller(void);\nint main"),
        encoding="utf-8",
    )
    with pytest.raises(CompileError, match="link: .*undefined reference to `missing'"):
        compile_tree(tree, *where)
    assert digest(elf) == expected
    assert not list(tree.path.rglob("*unfinished*"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "echo 'x.c:1: fatal error: error writing to a.s: No space left on device' >&2; exit 1",
            "the disk is full",
        ),
        ("kill -9 $$", "for lack of memory"),
        ("echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1", "for lack of memory"),
        ("kill -SEGV $$", "was ended by SIGSEGV"),
        ("exit 7", "exit code 7 without a message"),
    ],
    ids=["disk full", "killed", "cc1 killed", "crash", "silent"],
)
def test_a_compiler_that_dies_is_explained(
    tree: SourceTree, where: Where, tmp_path: Path, body: str, said: str
) -> None:
    with pytest.raises(CompileError, match=said) as caught:
        compile_tree(tree, *with_compiler(where, tmp_path / "cc", body))
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_really_full_disk_is_reported(tree: SourceTree, where: Where, tmp_path: Path) -> None:
    """/dev/full refuses every byte, as a full disk does."""
    full = with_compiler(where, tmp_path / "cc", "exec gcc -E -dD -x c /dev/null -o /dev/full")
    with pytest.raises(CompileError, match="the disk is full"):
        compile_tree(tree, *full)


def test_a_missing_compiler_names_the_package(tree: SourceTree, where: Where) -> None:
    board, toolchain = where
    with pytest.raises(CompileError, match="cannot start no-such-gcc") as caught:
        compile_tree(tree, board, replace(toolchain, cc=("no-such-gcc",)))
    assert "apt-get install" in (caught.value.hint or "")


def test_the_first_failure_ends_the_other_processes(tree: SourceTree, where: Where, tmp_path: Path) -> None:
    """One job fails at once, the other would take a minute."""
    body = 'case "$*" in *main.c*) exit 1;; *) echo $$ >> pids; exec sleep 60;; esac'
    start = time.monotonic()
    with pytest.raises(CompileError):
        compile_tree(tree, *with_compiler(where, tmp_path / "cc", body), jobs=len(tree.sources))
    assert time.monotonic() - start < 20
    for pid in (tree.path / "pids").read_text(encoding="utf-8").split():
        assert not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text(
            encoding="utf-8"
        )


def test_ctrl_c_leaves_nothing_half_written_and_the_next_build_works(tree: SourceTree, where: Where) -> None:
    def interrupt(argv: Sequence[str]) -> None:
        if "-o" in argv and "unfinished" in argv[argv.index("-o") + 1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_tree(tree, *where, on_command=interrupt)
    assert not (tree.path / "colibri_inference").exists()
    assert len(commands_of(tree, where)) == 1  # the link; the objects are kept


def test_two_builds_in_one_folder_do_not_meet(tree: SourceTree, where: Where) -> None:
    compile_tree(tree, *where)
    with (tree.path / "objects/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CompileError, match="another build is running"):
            compile_tree(tree, *where)


def test_a_toolchain_for_another_machine_is_refused(tree: SourceTree, where: Where) -> None:
    with pytest.raises(CompileError, match="compiles for x86_64, cortex-a53 is aarch64"):
        compile_tree(tree, load_board("cortex-a53"), where[1])


def test_the_first_error_line_is_found_among_warnings() -> None:
    output = "In file included from a.c:1:\na.h:2: warning: odd\na.c:3:5: error: bad\na.c:4: error: worse\n"
    assert failure("compile a.c", ["cc"], 1, output).what == "compile a.c: a.c:3:5: error: bad"
    assert failure("link", ["cc"], -signal.SIGBUS, "").what == "link: cc was ended by SIGBUS"


def test_a_cache_beyond_the_reach_of_code_has_a_way_out() -> None:
    """What ld says about 2.4 GiB of KV cache on x86-64."""
    output = "(.text+0x109): relocation truncated to fit: R_X86_64_PC32 against symbol `__abort_msg'\n"
    error = failure("link", ["cc"], 1, output)
    assert "more than the code reaches" in error.what
    assert error.hint == "a smaller --ctx"
