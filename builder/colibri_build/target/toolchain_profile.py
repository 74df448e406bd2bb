"""Toolchain profiles, and the toolchain that one of them became on this machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from colibri_build.errors import TargetError
from colibri_build.resources import data_dir
from colibri_build.target.profile import Profile, closest, read_toml, validate

Family = Literal["gcc", "clang", "zig"]
Command = tuple[str, ...]


class ArchTools(Profile):
    """The commands for one architecture. `{prefix}` and `{python}` are filled in."""

    cc: tuple[Command, ...] = Field(min_length=1)  # the first one installed is taken
    cflags: tuple[str, ...] = ()
    objdump: tuple[Command, ...] = Field(min_length=1)
    install: str  # the command that installs it


class Architectures(Profile):
    """Commands by architecture."""

    aarch64: ArchTools
    x86_64: ArchTools


class ToolchainProfile(Profile):
    """One file of toolchains/."""

    name: str  # the file's name without .toml
    description: str
    family: Family
    libc: Literal["glibc", "musl"]
    cflags: tuple[str, ...] = ()
    arch: Architectures

    def tools(self, arch: str) -> ArchTools:
        """Return the commands for `aarch64` or `x86_64`."""
        return self.arch.aarch64 if arch == "aarch64" else self.arch.x86_64


@dataclass(frozen=True)
class Toolchain:
    """A compiler that is there, with every flag it gets.

    Compile `cc + cflags + ["-c", source]`, link `cc + objects + ldflags` (libraries come last), both in
    `commands.environment()`. The compile stage adds only paths.
    """

    name: str
    family: Family
    libc: str
    arch: str
    cc: Command
    objdump: Command
    cflags: Command
    ldflags: Command
    version: str
    machine: str  # as the compiler names it: aarch64-linux-gnu
    install: str  # the command that installs it
    why: str  # for a person: who named it, or which ones were passed over; empty if it is simply the first
    unfixed_errata: tuple[str, ...]  # errata of the CPU that no flag works around: check the code for them

    @property
    def portable_cc(self) -> Command:
        """`cc` as one would type it on another machine: without the path of our Python."""
        return ("python3", *self.cc[1:]) if self.cc[0] == sys.executable else self.cc

    @property
    def reports_stack(self) -> bool:
        """Whether a .su file with the stack use of each function lies beside each object."""
        return "-fstack-usage" in self.cflags


def list_toolchains(search: Path | None = None) -> list[ToolchainProfile]:
    """Every toolchain profile, by name."""
    return [load_toolchain(path.stem, search) for path in sorted((search or data_dir("toolchains")).glob("*.toml"))]


def load_toolchain(name: str, search: Path | None = None) -> ToolchainProfile:
    """Load a profile by name. Raises TargetError if it is unknown or has a mistake."""
    folder = search or data_dir("toolchains")
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in known:
        guess = closest(name, known)
        meant = f"'{guess}', or " if guess else ""
        raise TargetError(f"unknown toolchain '{name}'", hint=f"{meant}one of: auto, {', '.join(known)}, prefix:PREFIX")
    path = folder / f"{name}.toml"
    shown = f"toolchains/{name}.toml"
    return validate(ToolchainProfile, {**read_toml(path, shown), "name": name}, [(shown, path)])
