"""`doctor`: what it says about a machine that has everything, and about one that has nothing."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from colibri_build.target import doctor
from colibri_build.target.doctor import Finding, diagnose


def _by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_machine_with_everything_has_no_complaint() -> None:
    findings = _by_name(diagnose({**os.environ, "CROSS_COMPILE": ""}))
    assert [finding for finding in findings.values() if not finding.ok] == []
    assert "gcc" in findings["debian-gcc for aarch64"].detail
    assert "zig 0." in findings["zig for x86_64"].detail
    assert "qemu-aarch64 version" in findings["emulator for aarch64"].detail


def test_a_bare_machine_gets_the_commands_that_install_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    findings = _by_name(diagnose({"PATH": str(tmp_path), "HOME": str(tmp_path)}))
    assert findings["debian-gcc for aarch64"] == Finding(
        "debian-gcc for aarch64",
        False,
        "aarch64-linux-gnu-gcc is not there",
        "sudo apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    )
    assert findings["emulator for aarch64"] == Finding(
        "emulator for aarch64",
        False,
        "qemu-aarch64-static or qemu-aarch64 is not there",
        "sudo apt-get install qemu-user-static",
    )
    assert findings["zig for x86_64"].fix == "pip install 'colibri-build[zig]'"
    assert "own package manager" in findings["apt"].detail
    wanted = "optional, for colibri-build image: sudo apt-get install genimage squashfs-tools"
    assert findings["image tools"].detail.startswith(wanted)


def test_one_compiler_an_architecture_is_enough(tmp_path: Path) -> None:
    """Whoever installs the recommended compiler must not be told that clang is missing."""
    for name in ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    findings = _by_name(diagnose({"PATH": str(tmp_path), "HOME": str(tmp_path)}))
    clang = findings["clang for aarch64"]
    assert (clang.ok, clang.detail) == (True, "clang is not there; optional, another compiler is there")
    assert not findings["clang for x86_64"].ok


def test_a_compiler_without_an_objdump_needs_the_objdump(tmp_path: Path) -> None:
    findings = _by_name(diagnose({"PATH": str(tmp_path), "HOME": str(tmp_path)}))
    assert findings["zig for aarch64"].fix == "sudo apt-get install binutils-aarch64-linux-gnu"


def test_missing_libraries_and_a_full_disk_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "LIBRARIES", ("numpy", "no-such-library"))
    monkeypatch.setattr(doctor, "LEAST_FREE_MIB", 10**9)
    findings = _by_name(diagnose({"PATH": str(tmp_path), "COLIBRI_CACHE": str(tmp_path / "not" / "yet")}))
    assert (findings["python libraries"].ok, findings["python libraries"].detail) == (
        False,
        "not installed: no-such-library",
    )
    assert not findings["disk"].ok
    assert f"MiB free for {tmp_path / 'not' / 'yet'}, {10**9} are needed" in findings["disk"].detail
