"""What the figures were measured on, without names of hosts or paths."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

from suite.peer import PACKAGE, VERSION
from suite.places import Json

PROGRAMS = {
    "gcc": ["gcc", "--version"],
    "cross gcc": ["aarch64-linux-gnu-gcc", "--version"],
    "QEMU": ["qemu-x86_64", "--version"],
    "CMake": ["cmake", "--version"],
}


def describe() -> Json:
    """CPU, cores, caches, memory, kernel, and versions."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    numbers = [
        re.search(rf"^{name}\s*:\s*(\d+)$", cpuinfo, re.MULTILINE) for name in ("cpu family", "model", "stepping")
    ]
    return {
        "cpu": model[1] if model else platform.machine(),
        "cpu_family_model_stepping": [int(found[1]) for found in numbers if found],
        "cores": os.cpu_count(),
        "virtual": "hypervisor" in cpuinfo,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "peer": f"llama.cpp of {PACKAGE} {VERSION}",
        **{name: _first_line(command) for name, command in PROGRAMS.items()},
    }


def _first_line(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "not there"
