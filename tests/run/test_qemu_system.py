"""Starting a machine that cannot start: each way in which that fails has one line with advice, and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from colibri_build.errors import RunError
from colibri_build.run.qemu_system import BootLoader, DirectBoot, Hardware, QemuSystem, qemu_command
from colibri_build.target.board import load_board
from colibri_build.target.kernel import find_kernel, read_kernel

BOARD = load_board("cortex-a53")


@pytest.fixture
def boot(tmp_path: Path) -> DirectBoot:
    for name in ("vmlinuz", "initrd", "disk"):
        (tmp_path / name).write_bytes(bytes(4096))
    return DirectBoot(tmp_path / "vmlinuz", tmp_path / "initrd")


def test_a_missing_kernel_names_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path))
    with pytest.raises(RunError, match=r"no kernel modules in .*; try: scripts/fetch_kernel.sh"):
        find_kernel("aarch64")
    (tmp_path / "modules").write_text("sdhci.ko\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"lacks sdhci.ko; try: remove that folder"):
        read_kernel(tmp_path)
    (tmp_path / "sdhci.ko").touch()
    with pytest.raises(RunError, match=r"lacks vmlinuz; try: remove that folder"):
        read_kernel(tmp_path)


def test_a_kernel_folder_of_the_users_own(tmp_path: Path) -> None:
    for name, text in {"vmlinuz": "", "modules": "b.ko\na.ko\n", "a.ko": "", "b.ko": ""}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [path.name for path in read_kernel(tmp_path).modules] == ["b.ko", "a.ko"]


def test_a_pc_has_no_emulated_machine(boot: DirectBoot) -> None:
    with pytest.raises(RunError, match=r"x86-64-v3 has no emulated machine; try: a table \[qemu_system\]"):
        qemu_command(load_board("x86-64-v3"), boot.kernel, boot, Hardware(), 3)
    with pytest.raises(RunError, match="no kernel for x86_64"):
        find_kernel("x86_64")


@pytest.mark.parametrize("name", ["vmlinuz", "initrd", "disk"])
def test_a_missing_file_is_named(boot: DirectBoot, tmp_path: Path, name: str) -> None:
    (tmp_path / name).unlink()
    with pytest.raises(RunError, match=rf"{name} is missing"):
        QemuSystem(BOARD, tmp_path / "disk", boot)


def test_a_missing_boot_loader_names_its_package(boot: DirectBoot, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is missing; try: apt-get install u-boot-qemu"):
        QemuSystem(BOARD, tmp_path / "disk", BootLoader(tmp_path / "u-boot.bin"))


def test_a_missing_emulator_names_its_package(boot: DirectBoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RunError, match="qemu-system-aarch64 is not installed; try: apt-get install qemu-system-arm"):
        qemu_command(BOARD, boot.kernel, boot, Hardware(), 3)


def test_what_qemu_complains_about_is_in_the_error(boot: DirectBoot, tmp_path: Path) -> None:
    board = BOARD.model_copy(update={"qemu_system": BOARD.qemu_system.model_copy(update={"cpu": "cortex-z9"})})  # type: ignore[union-attr]
    with (
        QemuSystem(board, tmp_path / "disk", boot) as system,
        pytest.raises(RunError, match=r"QEMU ended with 1: .*cortex-z9.* before 'READY"),
    ):
        system.wait_ready(30)


def test_arguments_with_blanks_stay_whole(boot: DirectBoot) -> None:
    asked = DirectBoot(boot.kernel, boot.initrd, "b", ("--prompt=turn it on", "--ids"), ("debug",))
    line = qemu_command(BOARD, boot.kernel, asked, Hardware(), 3)[-1]
    assert line.endswith(' debug colibri.slot=b -- "--prompt=turn it on" --ids')
    with pytest.raises(RunError, match="cannot stand on a kernel's command line; try: type it on the console"):
        qemu_command(BOARD, boot.kernel, DirectBoot(boot.kernel, boot.initrd, arguments=('say "hi"',)), Hardware(), 3)


def test_a_comma_in_a_path_is_no_option_of_qemu(boot: DirectBoot, tmp_path: Path) -> None:
    command = qemu_command(BOARD, tmp_path / "a,b", boot, Hardware(), 3)
    assert any(word.endswith("/a,,b") for word in command)


def test_counted_time_leaves_nothing_to_chance(boot: DirectBoot) -> None:
    command = " ".join(qemu_command(BOARD, boot.kernel, boot, Hardware(counts_time=True), 3))
    for words in ("-smp 1", "-icount shift=0,sleep=off", "dtb-randomness=off", "clock=vm", "nokaslr"):
        assert words in command


def test_nothing_is_left_of_a_machine(boot: DirectBoot, tmp_path: Path) -> None:
    image = tmp_path / "disk"
    image.write_bytes(bytes(3 << 20))  # no power of two: a copy is made
    system = QemuSystem(BOARD, image, boot)
    process, folder = system._process, system._errors.parent
    assert (folder / "disk.img").stat().st_size == 4 << 20
    system.close()
    system.close()
    assert process.poll() is not None
    assert not folder.exists()
    assert image.stat().st_size == 3 << 20
