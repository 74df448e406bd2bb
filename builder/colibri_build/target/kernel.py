"""The Linux kernel for system emulation, where scripts/fetch_kernel.sh has put it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from colibri_build.errors import RunError
from colibri_build.resources import cache_folder

_HINT = "scripts/fetch_kernel.sh (it needs apt and the network, no root)"


@dataclass(frozen=True)
class KernelFiles:
    """One kernel: its release (`uname -r`), image, and the modules it needs in the order of loading."""

    release: str
    image: Path
    modules: tuple[Path, ...]


def find_kernel(arch: str) -> KernelFiles:
    """Return the fetched kernel for an architecture. Raises RunError if it is not there or not whole."""
    if arch != "aarch64":
        raise RunError(f"no kernel for {arch}: one is fetched for aarch64 boards only", hint="--device qemu-user")
    return read_kernel(fetched_folder())


def fetched_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which scripts/fetch_kernel.sh keeps its kernel. It need not exist."""
    return cache_folder(environ) / "kernel-arm64" / "current"


def read_kernel(folder: Path) -> KernelFiles:
    """Return the kernel in a folder (vmlinuz, *.ko, `modules`). Raises RunError if it is not there or not whole."""
    image, modules = folder / "vmlinuz", read_modules(folder)
    if not image.is_file():
        raise RunError(f"the kernel in {folder} lacks vmlinuz", hint=f"remove that folder, then {_HINT}")
    return KernelFiles(folder.resolve().name, image, modules)


def read_modules(folder: Path) -> tuple[Path, ...]:
    """Return the modules that the file `modules` in a folder lists, in the order of loading. Raises RunError."""
    try:
        names = (folder / "modules").read_text(encoding="utf-8").split()
    except OSError:
        raise RunError(f"no kernel modules in {folder} (no file `modules` that lists them)", hint=_HINT) from None
    paths = tuple(folder / name for name in names)
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise RunError(f"the kernel in {folder} lacks {', '.join(missing)}", hint=f"remove that folder, then {_HINT}")
    return paths
