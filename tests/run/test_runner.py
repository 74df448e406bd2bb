"""Which command starts a firmware: with another CPU than the board's, a wrong instruction would pass unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from colibri_build.errors import RunError
from colibri_build.run.host_cpu import HostCpu, read_host_cpu
from colibri_build.run.runner import runner_for
from colibri_build.target.board import load_board

HASWELL = HostCpu("x86_64", frozenset("avx2 fma f16c bmi1 bmi2 abm movbe".split()))
SANDY_BRIDGE = HostCpu("x86_64", frozenset(["avx"]))
RASPBERRY_PI = HostCpu("aarch64", frozenset(["fp", "asimd", "crc32"]))


def test_qemu_gets_the_boards_exact_cpu_and_address_space() -> None:
    runner = runner_for(load_board("cortex-a53"))
    assert Path(runner.prefix[0]).name in ("qemu-aarch64-static", "qemu-aarch64")
    assert runner.prefix[1:] == ("-cpu", "cortex-a53", "-R", "512M")
    assert runner.command("x", "--info") == (*runner.prefix, "x", "--info")
    assert "cortex-a53" in str(runner)
    assert runner_for(load_board("tda4vm")).prefix[1:3] == ("-cpu", "cortex-a72")


def test_auto_is_native_only_on_a_host_with_every_feature() -> None:
    board = load_board("x86-64-v3")
    assert runner_for(board, "auto", HASWELL).prefix == ()
    emulated = runner_for(board, "auto", SANDY_BRIDGE)
    assert emulated.kind == "qemu-user"
    assert "+avx2" in emulated.prefix[2]
    assert "avx512" not in " ".join(emulated.prefix)


def test_a_profile_decides_whether_auto_may_be_native() -> None:
    assert runner_for(load_board("cortex-a53"), "auto", RASPBERRY_PI).kind == "qemu-user"
    assert runner_for(load_board("cortex-a53"), "native", RASPBERRY_PI).prefix == ()


@pytest.mark.parametrize(
    "board,host,lacks",
    [
        ("x86-64-v3", SANDY_BRIDGE, "lacks avx2, fma, f16c, bmi1, bmi2, lzcnt, movbe"),
        ("cortex-a53", HASWELL, "(x86_64) cannot run cortex-a53 natively: it lacks the aarch64 architecture"),
    ],
)
def test_native_on_the_wrong_machine_says_what_is_missing(board: str, host: HostCpu, lacks: str) -> None:
    with pytest.raises(RunError) as caught:
        runner_for(load_board(board), "native", host)
    assert lacks in caught.value.what
    assert caught.value.hint == "--device qemu-user"


def test_missing_qemu_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="no emulator for aarch64 .*qemu-aarch64-static, qemu-aarch64") as caught:
        runner_for(load_board("cortex-a53"))
    assert caught.value.hint == "apt-get install qemu-user-static"
    assert caught.value.exit_code == 4


def test_unknown_kind() -> None:
    with pytest.raises(RunError, match="unknown device type 'qemu-system'"):
        runner_for(load_board("cortex-a53"), "qemu-system")


@pytest.mark.parametrize("key", ["flags\t\t", "Features\t"])
def test_cpuinfo_of_both_architectures(tmp_path: Path, key: str) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\nvmx flags\t: ept\n{key}: fp asimd\n\nprocessor\t: 1\n{key}: fp\n")
    assert read_host_cpu(path, "m") == HostCpu("m", frozenset(["fp", "asimd"]))
    assert read_host_cpu(tmp_path / "none", "m").flags == frozenset()
