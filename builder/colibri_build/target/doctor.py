"""Says what this machine has of what a build needs, and the command that installs what it lacks."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from colibri_build.errors import RunError, ToolchainError
from colibri_build.resources import cache_folder, data_dir
from colibri_build.target.board import Board, board_names, load_board
from colibri_build.target.commands import find_program, run_quietly
from colibri_build.target.image_tools import TOOLS, missing_packages
from colibri_build.target.kernel import fetched_folder, read_kernel
from colibri_build.target.toolchain import AUTO_ORDER, Toolchain, resolve_toolchain

LEAST_PYTHON = (3, 11)
LEAST_FREE_MIB = 1024  # a C library for zig, a quantized model and a build folder
LIBRARIES = (
    "click",
    "jinja2",
    "numpy",
    "pydantic",
    "pyelftools",
    "rich",
    "rich-click",
    "safetensors",
    "threadpoolctl",
    "tokenizers",
)
_QEMU_PACKAGE = "qemu-user-static"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for. `fix` is the command that installs it, also where it is optional."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def diagnose(environ: Mapping[str, str] | None = None) -> list[Finding]:
    """Look for everything that builds and runs need. Compiles nothing, so it takes about a second.

    A compiler is missing (not ok) only if no other one serves the architecture.
    """
    env = os.environ if environ is None else environ
    boards = _one_board_an_arch()
    findings = [_python(), _libraries()]
    for board in boards.values():
        findings += _toolchains(board, env)
    findings += [_emulator(board, env) for board in boards.values()]
    return [*findings, _image_tools(env), _system_emulation(env), _apt(env), _disk(env)]


def _one_board_an_arch() -> dict[str, Board]:
    boards = (load_board(name) for name in board_names(data_dir("boards")))
    first: dict[str, Board] = {}
    for board in boards:
        first.setdefault(board.arch, board)
    return first


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    wanted = ".".join(str(part) for part in LEAST_PYTHON)
    ok = sys.version_info[:2] >= LEAST_PYTHON
    return Finding("python", ok, f"{version}, at least {wanted} is needed", "sudo apt-get install python3")


def _libraries() -> Finding:
    lacking = [name for name in LIBRARIES if _library_version(name) is None]
    detail = "not installed: " + ", ".join(lacking) if lacking else f"{len(LIBRARIES)} libraries are installed"
    return Finding("python libraries", not lacking, detail, "pip install colibri-build")


def _library_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _toolchains(board: Board, env: Mapping[str, str]) -> list[Finding]:
    """One finding a toolchain for the board's architecture."""
    names = [*AUTO_ORDER, *(["vendor-gnu"] if env.get("CROSS_COMPILE") else [])]
    found = {name: _toolchain(board, name, env) for name in names}
    served = any(isinstance(found[name], Toolchain) for name in found)
    return [_toolchain_finding(f"{name} for {board.arch}", name, found[name], served) for name in names]


def _toolchain(board: Board, name: str, env: Mapping[str, str]) -> Toolchain | ToolchainError:
    try:
        return resolve_toolchain(board, name, env, check=False)
    except ToolchainError as error:
        return error


def _toolchain_finding(part: str, name: str, found: Toolchain | ToolchainError, served: bool) -> Finding:
    """`served`: whether any toolchain is there for the architecture."""
    if isinstance(found, Toolchain):
        return Finding(part, True, f"{found.version}; {found.objdump[0]}", found.install)
    optional = "; optional, another compiler is there" if served else ""
    return Finding(part, served, found.what.removeprefix(f"toolchain {name}: ") + optional, str(found.hint))


def _emulator(board: Board, env: Mapping[str, str]) -> Finding:
    name = f"emulator for {board.arch}"
    for command in board.qemu.commands:
        if find_program(command, env):
            return Finding(name, True, run_quietly((command, "--version"), env).first_line)
    detail = f"{' or '.join(board.qemu.commands)} is not there"
    return Finding(name, False, detail, f"sudo apt-get install {_QEMU_PACKAGE}")


def _image_tools(env: Mapping[str, str]) -> Finding:
    """Optional: a build needs none of them."""
    missing = missing_packages(env)
    install = f"sudo apt-get install {' '.join(missing or TOOLS.values())}"
    detail = f"{', '.join(TOOLS)} are there"
    if missing:
        detail = f"optional, for colibri-build image: {install}"
    return Finding("image tools", True, detail, install)


def _system_emulation(env: Mapping[str, str]) -> Finding:
    """Optional: only the emulation of a whole board needs it (docs/system-emulation.md)."""
    name, install = "system emulation", "sudo apt-get install qemu-system-arm u-boot-qemu && scripts/fetch_kernel.sh"
    if not find_program("qemu-system-aarch64", env):
        return Finding(name, True, f"optional, qemu-system-aarch64 is not there: {install}", install)
    try:
        kernel = read_kernel(fetched_folder(env))
    except RunError as error:
        return Finding(name, True, f"optional, {error}", install)
    return Finding(name, True, f"qemu-system-aarch64, Linux {kernel.release}", install)


def _apt(env: Mapping[str, str]) -> Finding:
    if find_program("apt-get", env):
        return Finding("apt", True, "apt-get installs what is missing")
    return Finding("apt", True, "not there: install the packages named here with this system's own package manager")


def _disk(env: Mapping[str, str]) -> Finding:
    folder = cache_folder(env)
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free_mib = shutil.disk_usage(there).free // (1024 * 1024)
    detail = f"{free_mib} MiB free for {folder}, {LEAST_FREE_MIB} are needed"
    return Finding("disk", free_mib >= LEAST_FREE_MIB, detail, "export COLIBRI_CACHE=a folder on a larger disk")
