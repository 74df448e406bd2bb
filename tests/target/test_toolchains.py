"""Toolchains: each one makes static binaries for each board's machine, and a missing one says how to get it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from colibri_build.errors import CompileError, TargetError, ToolchainError
from colibri_build.target.board import load_board
from colibri_build.target.commands import environment, run_quietly
from colibri_build.target.static_link import check_toolchain, link_program
from colibri_build.target.toolchain import Toolchain, list_toolchains, resolve_toolchain

BOARDS = ("cortex-a53", "tda4vm", "x86-64-v3")
MACHINES = {"aarch64": "EM_AARCH64", "x86_64": "EM_X86_64"}
# Macros by which a compiler says that it may use an instruction group that some board lacks.
FORBIDDEN_MACROS = (
    "__ARM_FEATURE_AES", "__ARM_FEATURE_CRYPTO", "__ARM_FEATURE_SHA2", "__ARM_FEATURE_DOTPROD", "__ARM_FEATURE_ATOMICS",
    "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC", "__ARM_FEATURE_MATMUL_INT8", "__ARM_FEATURE_SVE",
    "__AVX512F__", "__AVXVNNI__", "__AES__",
)  # fmt: skip


def _request(name: str, arch: str) -> str:
    return f"prefix:{arch}-linux-gnu-" if name == "vendor-gnu" else name


def _script(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def _without_tools(folder: Path) -> dict[str, str]:
    """An environment whose PATH has only what `folder` holds."""
    return {"PATH": str(folder), "HOME": str(folder)}


def _macros(toolchain: Toolchain) -> set[str]:
    command = (*toolchain.cc, *toolchain.cflags, "-dM", "-E", "-x", "c", "/dev/null")
    answer = run_quietly(command)
    assert answer.ok, answer.stderr
    return {line.split()[1] for line in answer.stdout.splitlines() if line.startswith("#define")}


def test_the_toolchains_that_the_readme_names_are_there() -> None:
    assert [profile.name for profile in list_toolchains()] == ["clang", "debian-gcc", "vendor-gnu", "zig"]


@pytest.mark.parametrize("board_name", BOARDS)
@pytest.mark.parametrize("name", ["debian-gcc", "clang", "zig", "vendor-gnu"])
def test_it_links_a_static_program_that_runs_on_the_board(name: str, board_name: str, tmp_path: Path) -> None:
    board = load_board(board_name)
    toolchain = resolve_toolchain(board, _request(name, board.arch), check=False)
    program = link_program(toolchain, tmp_path)
    with program.open("rb") as file:
        elf = ELFFile(file)
        assert elf["e_machine"] == MACHINES[board.arch]
        kinds = {segment["p_type"]: segment["p_flags"] for segment in elf.iter_segments()}
        assert not {"PT_INTERP", "PT_DYNAMIC"} & set(kinds)
        assert kinds["PT_GNU_STACK"] & 1 == 0
        assert elf.get_section_by_name(".note.gnu.build-id") is not None
    qemu = [shutil.which(board.qemu.commands[0]) or "", *board.qemu.args]
    answer = subprocess.run([*qemu, str(program)], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "hello 1.0\n", "")
    assert (tmp_path / "check.su").exists() == toolchain.reports_stack


@pytest.mark.parametrize("board_name", BOARDS)
@pytest.mark.parametrize("name", ["debian-gcc", "clang", "zig"])
def test_the_compiler_may_not_use_what_the_board_lacks(name: str, board_name: str) -> None:
    """Code for a newer CPU would die on the board with an illegal instruction."""
    board = load_board(board_name)
    macros = _macros(resolve_toolchain(board, name, check=False))
    assert not macros & set(FORBIDDEN_MACROS)
    assert {"__ARM_FEATURE_CRC32", "__ARM_NEON"} <= macros or {"__AVX2__", "__F16C__", "__BMI2__"} <= macros


@pytest.mark.parametrize("name", ["debian-gcc", "clang"])
def test_both_cortex_a53_errata_are_worked_around(name: str, tmp_path: Path) -> None:
    """QEMU cannot show a silicon erratum, so only the linker's command line can prove it."""
    toolchain = resolve_toolchain(load_board("cortex-a53"), name, check=False)
    assert toolchain.unfixed_errata == ()
    assert "-mfix-cortex-a53-835769" in toolchain.cflags
    linking = run_quietly((*toolchain.cc, "-###", "check.o", *toolchain.ldflags), cwd=tmp_path).stderr
    assert "--fix-cortex-a53-843419" in linking


def test_an_erratum_without_a_workaround_is_said() -> None:
    assert resolve_toolchain(load_board("cortex-a53"), "zig", check=False).unfixed_errata == ("843419",)


def test_auto_takes_debian_gcc_and_says_so() -> None:
    toolchain = resolve_toolchain(load_board("cortex-a53"), environ={**os.environ, "CROSS_COMPILE": ""})
    assert (toolchain.name, toolchain.why) == ("debian-gcc", "")
    first_line = subprocess.run(["aarch64-linux-gnu-gcc", "--version"], capture_output=True, text=True, check=True)
    assert toolchain.version == first_line.stdout.splitlines()[0]


def test_auto_prefers_what_the_environment_names() -> None:
    toolchain = resolve_toolchain(
        load_board("cortex-a53"), environ={**os.environ, "CROSS_COMPILE": "aarch64-linux-gnu-"}
    )
    assert (toolchain.name, toolchain.cc) == ("vendor-gnu", ("aarch64-linux-gnu-gcc",))
    assert toolchain.why == "$CROSS_COMPILE=aarch64-linux-gnu-"


def test_auto_passes_over_an_environment_for_another_machine_and_says_so() -> None:
    toolchain = resolve_toolchain(
        load_board("x86-64-v3"), environ={**os.environ, "CROSS_COMPILE": "aarch64-linux-gnu-"}
    )
    assert toolchain.name == "debian-gcc"
    assert "passed over: toolchain vendor-gnu: aarch64-linux-gnu-gcc compiles for aarch64-linux-gnu" in toolchain.why


def test_auto_does_not_hide_a_broken_environment() -> None:
    with pytest.raises(ToolchainError, match="vendor-gnu: nowhere-gcc is not there"):
        resolve_toolchain(load_board("cortex-a53"), environ={**os.environ, "CROSS_COMPILE": "nowhere-"})


def test_an_sdks_compiler_keeps_its_sysroot_and_loses_its_tuning() -> None:
    """-mcpu of an SDK beside the board's -march would be an error, or code for another CPU."""
    cc = "aarch64-linux-gnu-gcc -mcpu=cortex-a72+crypto -O2 --sysroot=/ -fstack-protector-strong"
    env = {**os.environ, "CROSS_COMPILE": "aarch64-linux-gnu-", "CC": cc}
    toolchain = resolve_toolchain(load_board("cortex-a53"), "auto", env)
    assert toolchain.cc == ("aarch64-linux-gnu-gcc", "--sysroot=/")
    assert toolchain.why == "$CC, without its -mcpu=cortex-a72+crypto -O2 -fstack-protector-strong"


def test_flags_of_the_host_do_not_reach_the_build(tmp_path: Path) -> None:
    """A CFLAGS or CPATH of the shell would change the binary without a trace."""
    (tmp_path / "stdio.h").write_text('#error "a header of the host"\n', encoding="ascii")
    host = {"CPATH": str(tmp_path), "C_INCLUDE_PATH": str(tmp_path), "CFLAGS": "-O0", "SOURCE_DATE_EPOCH": "1"}
    env = {**os.environ, **host, "GCC_EXEC_PREFIX": "/nonexistent/"}
    assert not {*host, "LDFLAGS", "GCC_EXEC_PREFIX"} & set(environment(env))
    out = tmp_path / "out"
    out.mkdir()
    toolchain = resolve_toolchain(load_board("cortex-a53"), "debian-gcc", env, check=False)
    assert link_program(toolchain, out, env).exists()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            "debian-gcc",
            "toolchain debian-gcc: aarch64-linux-gnu-gcc is not there; "
            "try: sudo apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        ),
        (
            "clang",
            "toolchain clang: clang is not there; "
            "try: sudo apt-get install clang llvm gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        ),
        ("zig", "toolchain zig: python -m ziglang or zig is not there; try: pip install 'colibri-build[zig]'"),
        (
            "vendor-gnu",
            "toolchain vendor-gnu: neither $CROSS_COMPILE nor $CC is set; "
            "try: source the SDK's environment-setup script, or --toolchain prefix:aarch64-none-linux-gnu-",
        ),
    ],
)  # fmt: skip
def test_a_missing_toolchain_names_the_command_that_installs_it(
    request_: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError) as caught:
        resolve_toolchain(load_board("cortex-a53"), request_, _without_tools(tmp_path))
    assert str(caught.value) == message
    assert caught.value.exit_code == 3


def test_without_any_toolchain_every_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError) as caught:
        resolve_toolchain(load_board("cortex-a53"), "auto", _without_tools(tmp_path))
    assert caught.value.what == (
        "no toolchain for aarch64: toolchain debian-gcc: aarch64-linux-gnu-gcc is not there; "
        "toolchain zig: python -m ziglang or zig is not there; toolchain clang: clang is not there"
    )
    assert caught.value.hint == (
        "sudo apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross, or: pip install 'colibri-build[zig]'"
    )


def test_a_missing_objdump_is_an_error(tmp_path: Path) -> None:
    """A binary whose instructions nobody can look at must not pass the inspection."""
    with pytest.raises(ToolchainError, match=r"zig: no objdump .* aarch64.*binutils-aarch64-linux-gnu"):
        resolve_toolchain(load_board("cortex-a53"), "zig", _without_tools(tmp_path))


def test_a_compiler_without_an_objdump_is_not_to_be_installed_again(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        resolve_toolchain(load_board("cortex-a53"), "auto", _without_tools(tmp_path))
    assert str(caught.value.hint).endswith(", or: sudo apt-get install binutils-aarch64-linux-gnu")


def test_a_compiler_for_another_machine_is_refused(tmp_path: Path) -> None:
    _script(tmp_path, "odd-gcc", "echo riscv64-linux-gnu")
    with pytest.raises(ToolchainError, match="odd-gcc compiles for riscv64-linux-gnu, the board is aarch64 Linux"):
        resolve_toolchain(load_board("cortex-a53"), "prefix:odd-", _without_tools(tmp_path))


def test_a_bare_metal_compiler_is_refused(tmp_path: Path) -> None:
    _script(tmp_path, "aarch64-none-elf-gcc", "echo aarch64-none-elf")
    with pytest.raises(ToolchainError, match="compiles for aarch64-none-elf, the board is aarch64 Linux"):
        resolve_toolchain(load_board("cortex-a53"), "prefix:aarch64-none-elf-", _without_tools(tmp_path))


def test_a_compiler_that_does_not_run_is_refused(tmp_path: Path) -> None:
    _script(tmp_path, "odd-gcc", "echo libmpc.so.3: cannot open shared object file >&2; exit 127")
    with pytest.raises(ToolchainError, match=r"odd-gcc does not run: libmpc\.so\.3: cannot open"):
        resolve_toolchain(load_board("cortex-a53"), "prefix:odd-", _without_tools(tmp_path))


def test_another_compiler_under_the_name_of_gcc_is_refused() -> None:
    with pytest.raises(ToolchainError, match=r"clang is not gcc: .*clang version"):
        resolve_toolchain(load_board("x86-64-v3"), "vendor-gnu", {**os.environ, "CROSS_COMPILE": "", "CC": "clang"})


def test_a_compiler_that_lies_about_its_machine_is_found_out(tmp_path: Path) -> None:
    """The host's linker picked for foreign objects: only the ELF header tells."""
    real = shutil.which("gcc")
    case = f'case "$*" in *-dumpmachine*) echo aarch64-linux-gnu;; *--version*) {real} --version;;'
    keep = '*) for a in "$@"; do case "$a" in -m*) ;; *) set -- "$@" "$a";; esac; shift; done'
    _script(tmp_path, "lying-gcc", f'{case} {keep}; exec {real} "$@";; esac')
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with pytest.raises(ToolchainError, match="lying-gcc made a binary for machine 62, aarch64 is 183"):
        resolve_toolchain(load_board("cortex-a53"), "prefix:lying-", env)


def test_a_toolchain_without_static_c_library_is_refused(tmp_path: Path) -> None:
    """Many SDKs come without libc.a; the message has the linker's own words."""
    real = shutil.which("aarch64-linux-gnu-gcc")
    failing = 'case "$*" in *-static*) echo "ld: cannot find -lc: No such file" >&2; exit 1;; esac'
    _script(tmp_path, "bare-gcc", f'{failing}; exec {real} "$@"')
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with pytest.raises(ToolchainError, match="bare-gcc cannot link a static program: ld: cannot find -lc"):
        resolve_toolchain(load_board("cortex-a53"), "prefix:bare-", env)


def test_a_compiler_too_old_for_a_flag_is_not_blamed_on_the_installation(tmp_path: Path) -> None:
    real = shutil.which("aarch64-linux-gnu-gcc")
    old = 'case "$*" in *-mno-outline-atomics*) echo "gcc: error: unrecognized command line option" >&2; exit 1;; esac'
    _script(tmp_path, "old-gcc", f'{old}; exec {real} "$@"')
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with pytest.raises(ToolchainError, match="old-gcc cannot compile C: .*unrecognized.*; try: a newer compiler"):
        resolve_toolchain(load_board("cortex-a53"), "prefix:old-", env)


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = resolve_toolchain(load_board("tda4vm"), "debian-gcc", check=False)

    def fails(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("colibri_build.target.static_link.link_program", fails)
    with pytest.raises(CompileError, match="could not be tried in .*: No space left on device; try: make room there"):
        check_toolchain(replace(toolchain, why="never tried"))


def test_a_cc_with_broken_quotes_is_said() -> None:
    with pytest.raises(ToolchainError, match=r"\$CC is .*: No closing quotation"):
        resolve_toolchain(load_board("cortex-a53"), "vendor-gnu", {**os.environ, "CC": "gcc '--sysroot=/x"})


def test_the_check_is_done_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = resolve_toolchain(load_board("cortex-a53"), "debian-gcc")
    monkeypatch.setattr("colibri_build.target.static_link.link_program", lambda *_: pytest.fail("linked again"))
    check_toolchain(toolchain)


@pytest.mark.parametrize("name", ["debian-gc", "gcc-debian"])
def test_an_unknown_toolchain_lists_those_that_exist(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        resolve_toolchain(load_board("cortex-a53"), name)
    assert str(caught.value) == (
        f"unknown toolchain '{name}'; "
        "try: 'debian-gcc', or one of: auto, clang, debian-gcc, vendor-gnu, zig, prefix:PREFIX"
    )


def test_no_machine_path_is_in_the_compiler_that_a_makefile_names() -> None:
    zig = resolve_toolchain(load_board("cortex-a53"), "zig", check=False)
    assert zig.portable_cc == ("python3", "-m", "ziglang", "cc", "-target", "aarch64-linux-musl")
