"""What the CPU of this machine can do, from /proc/cpuinfo."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from colibri_build.target.board import Board

# Names that differ between board profiles and /proc/cpuinfo.
_CPUINFO_NAMES = {"lzcnt": "abm", "lse": "atomics", "dotprod": "asimddp", "fp16-arith": "asimdhp"}


@dataclass(frozen=True)
class HostCpu:
    """Machine name (`uname -m`) and the flags of its first CPU."""

    machine: str
    flags: frozenset[str]


def read_host_cpu(cpuinfo: Path = Path("/proc/cpuinfo"), machine: str | None = None) -> HostCpu:
    """Read the flags line (x86: "flags", ARM: "Features"). A file that cannot be read gives no flags."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return HostCpu(machine or platform.machine(), frozenset(value.split()))
    return HostCpu(machine or platform.machine(), frozenset())


def missing_features(board: Board, host: HostCpu) -> list[str]:
    """Return what keeps this machine from running the board's firmware: its architecture, or features of the CPU."""
    if host.machine != board.arch:
        return [f"the {board.arch} architecture"]
    return [feature for feature in board.cpu.features if _CPUINFO_NAMES.get(feature, feature) not in host.flags]
