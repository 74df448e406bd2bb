"""board_config.h: which kernels, how many threads, and what `--info` says about the build."""

from __future__ import annotations

from dataclasses import dataclass

from colibri_build.artifacts import BuildOptions, ModelFolder
from colibri_build.render.banner import banner
from colibri_build.render.c_text import c_string
from colibri_build.render.environment import render
from colibri_build.target.board import Board
from colibri_build.target.toolchain import Toolchain

TEMPLATE = "board_config.h.j2"


@dataclass(frozen=True)
class BoardConfigContext:
    """Names of the template's values."""

    banner: str
    name: str
    kernels: str
    default_threads: int
    toolchain: str
    c_flags: str
    link_flags: str


def board_config_source(
    folder: ModelFolder, board: Board, toolchain: Toolchain, options: BuildOptions, link_flags: tuple[str, ...]
) -> str:
    """Text of board_config.h. `link_flags` are those beside the toolchain's."""
    context = BoardConfigContext(
        banner=banner(TEMPLATE, folder),
        name=c_string(board.name),
        kernels=board.kernels.upper(),
        default_threads=min(board.default_threads, options.max_threads),
        toolchain=c_string(f"{toolchain.name} ({toolchain.version})"),
        c_flags=c_string(_shown(toolchain.cflags)),
        link_flags=c_string(_shown((*toolchain.ldflags, *link_flags))),
    )
    return render(TEMPLATE, context)


def _shown(flags: tuple[str, ...]) -> str:
    """Flags for a person. An absolute path says something about the build machine only: `...` stands for it."""
    return " ".join(_without_path(flag) for flag in flags)


def _without_path(flag: str) -> str:
    head, slash, _ = flag.partition("/")
    is_absolute = slash and (head == "" or head.endswith("=") or head in ("-I", "-L", "-B"))
    return f"{head}..." if is_absolute else flag
