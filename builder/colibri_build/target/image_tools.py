"""The programs that make disk images, and the Debian packages that hold them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from colibri_build.target.commands import environment

# genimage, and what it runs.
TOOLS = {"genimage": "genimage", "mksquashfs": "squashfs-tools", "mkfs.vfat": "dosfstools", "mcopy": "mtools"}
_SYSTEM_FOLDERS = "/usr/sbin:/sbin"  # of mkfs.vfat; not on every user's path


def search_path(environ: Mapping[str, str] | None = None) -> str:
    """Return the PATH on which they are looked for."""
    return f"{environment(environ).get('PATH', os.defpath)}:{_SYSTEM_FOLDERS}"


def missing_packages(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the packages of the programs that are not there."""
    path = search_path(environ)
    return [package for tool, package in TOOLS.items() if shutil.which(tool, path=path) is None]
