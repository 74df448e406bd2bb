"""The Linux kernel for system emulation, where scripts/fetch_kernel.sh has put it."""

from __future__ import annotations

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


def find_kernel(arch: str, folder: Path | None = None) -> KernelFiles:
    """Return the kernel for an architecture; `folder` is one of the user's own (vmlinuz, `modules`, *.ko).

    Raises RunError if it is not there or not whole.
    """
    if arch != "aarch64":
        raise RunError(f"no kernel for {arch}: systems are emulated for aarch64 boards only", hint="--device qemu-user")
    place = folder or cache_folder() / "kernel-arm64" / "current"
    image, listed = place / "vmlinuz", place / "modules"
    try:
        names = listed.read_text(encoding="utf-8").split()
    except OSError:
        raise RunError(f"no kernel for {arch} in {place}", hint=_HINT) from None
    modules = tuple(place / name for name in names)
    missing = [path.name for path in (image, *modules) if not path.is_file()]
    if missing:
        raise RunError(f"the kernel in {place} lacks {', '.join(missing)}", hint=f"remove that folder, then {_HINT}")
    return KernelFiles(place.resolve().name, image, modules)
