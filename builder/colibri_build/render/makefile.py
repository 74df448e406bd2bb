"""Makefile: rebuilds the firmware without Python, with the flags of the build."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from colibri_build.artifacts import ModelFolder
from colibri_build.render.banner import banner
from colibri_build.render.environment import render
from colibri_build.target.toolchain import Toolchain

TEMPLATE = "Makefile.j2"
OBJECTS_FOLDER = "make-objects"  # not the builder's own: `make CC=...` must not mix compilers


@dataclass(frozen=True)
class MakefileContext:
    """Names of the template's values."""

    banner: str
    toolchain: str
    cc: str
    cflags: str
    ldflags: str
    folder: str
    objects: tuple[str, ...]
    headers: tuple[str, ...]


def makefile_source(
    folder: ModelFolder,
    toolchain: Toolchain,
    files: tuple[str, ...],
    sources: tuple[str, ...],
    compile_flags: tuple[str, ...],
    link_flags: tuple[str, ...],
) -> str:
    """Text of the Makefile for the tree's `files`, of which `sources` are compiled and linked in that order."""
    context = MakefileContext(
        banner=banner(TEMPLATE, folder),
        toolchain=f"{toolchain.name}: {toolchain.version}",
        cc=_for_make(toolchain.portable_cc),
        cflags=_for_make((*toolchain.cflags, *compile_flags)),
        ldflags=_for_make((*toolchain.ldflags, *link_flags)),
        folder=OBJECTS_FOLDER,
        objects=tuple(f"{OBJECTS_FOLDER}/{Path(source).with_suffix('.o')}" for source in sources),
        headers=tuple(name for name in files if name.endswith(".h")),
    )
    return render(TEMPLATE, context)


def _for_make(words: tuple[str, ...]) -> str:
    """Shell words in a make variable."""
    return shlex.join(words).replace("$", "$$").replace("#", "\\#")
