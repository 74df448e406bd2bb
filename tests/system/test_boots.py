"""The flashed image under a real kernel on both ARM boards: what a user's board does from power on to power off."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from colibri_build import pipeline
from colibri_build.errors import RunError
from colibri_build.image.boot_files import read_boot_files
from colibri_build.image.flash import FlashEvents, FlashOptions
from colibri_build.image.gpt import find_partition, read_gpt
from colibri_build.run.client import Client, GenerateOptions
from colibri_build.run.link import Link
from colibri_build.run.qemu_system import BootLoader, qemu_command
from colibri_build.run.serial_port import SerialPort
from support.builds import run
from support.systems import (
    BOOT_TIMEOUT_S,
    GOLDEN_TOKENS,
    STDIN,
    Bench,
    Flashed,
    answer,
    assert_is,
    switch_off,
)

STDIN_WORDS = ("--stdin", "--max-tokens", str(GOLDEN_TOKENS))


def test_typed_prompts_get_the_references_answers(bench: Bench) -> None:
    flashed = bench.tiny("cortex-a53")
    with bench.boot(flashed, flashed.direct(*STDIN)) as system:
        ready = system.wait_ready(BOOT_TIMEOUT_S)
        assert ready == f"READY colibri model=tiny digest={flashed.result.folder.digest[:16]}"
        for golden in flashed.golden:
            assert_is(golden, answer(system, golden.prompt))
        status = switch_off(system)
    assert (status["prompts"], status["failed"], status["exit_code"]) == (len(flashed.golden), 0, 0)
    assert status["threads"] == flashed.result.board.cores
    emulated = run(flashed.result, f"--prompt={flashed.golden[0].prompt}", f"--max-tokens={GOLDEN_TOKENS}")
    assert_is(flashed.golden[0], emulated.status)


def test_a_person_at_the_terminal_of_the_other_board_gets_them_too(bench: Bench) -> None:
    """`colibri-build emulate` without --port: keys reach the board, its power off ends the command."""
    flashed = bench.tiny("tda4vm")
    command = [str(Path(sys.executable).with_name("colibri-build")), "emulate", str(flashed.disk)]
    with bench.machine():
        terminal = pexpect.spawn(command[0], command[1:], timeout=BOOT_TIMEOUT_S, encoding="utf-8")
        try:
            terminal.expect("tda4vm boots from .*its console is this terminal")
            terminal.expect(f"READY colibri model=tiny digest={flashed.result.folder.digest[:16]}")
            for golden in flashed.golden:
                terminal.send(f"{golden.prompt}\r")
                terminal.expect(r"COLIBRI_ANSWER (\{.*?\})\r+\n")
                assert_is(golden, json.loads(terminal.match[1]))
            terminal.send("\4")
            terminal.expect("the board has switched itself off")
            terminal.expect(pexpect.EOF)
        finally:
            terminal.close()
    assert terminal.exitstatus == 0


def test_the_serial_protocol_gets_the_references_answers_and_shuts_down(bench: Bench) -> None:
    """The same by the commands, on both boards, is tests/chain."""
    flashed = bench.tiny("cortex-a53")
    with bench.boot(flashed, flashed.direct()) as system:  # without arguments it serves
        system.wait_ready(BOOT_TIMEOUT_S)
        with Client(Link(SerialPort(system.console, "the machine's console"))) as client:
            assert client.connect().digest == flashed.result.folder.digest[:16]
            for golden in flashed.golden:
                assert_is(golden, client.generate(golden.prompt, GenerateOptions(GOLDEN_TOKENS)))
            assert client.selftest()["status"] == "ok"
            assert client.stats()["major_faults"] > 0, "the weights came from the disk"
            client.shutdown()
            system.wait_power_off()


def test_what_a_disk_boots_is_read_from_it(bench: Bench) -> None:
    """Emulation without a boot loader starts what the board's would: kernel, initrd, words, arguments."""
    flashed = bench.tiny("cortex-a53")
    found = read_boot_files(flashed.disk)
    assert found.kernel == flashed.kernel.image.read_bytes()
    assert found.initrd == flashed.initrd.read_bytes()
    assert (found.firmware.board, found.slot, found.arguments) == ("cortex-a53", "a", STDIN_WORDS)
    assert found.words[-2:] == ("panic=-1", "console=ttyAMA0")


@pytest.mark.parametrize(
    ("options", "board", "ram_mib"),
    [((None, None), "tda4vm", "1024M"), (("cortex-a53/imx8mm", 64), "cortex-a53/imx8mm", "64M")],
)
def test_emulation_is_of_the_disks_board_unless_another_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, options: tuple[Any, Any], board: str, ram_mib: str
) -> None:
    """The console of the board itself (ttyS2) is not there; the machine's has to be the firmware's."""
    flashed = bench.tiny("tda4vm")
    started: list[tuple[str, ...]] = []

    def start(*arguments: Any, bad_patterns: Any) -> Any:
        profile, disk, boot, hardware = arguments
        started.append((profile.name, *qemu_command(profile, disk, boot, hardware, 0)))
        return contextlib.nullcontext()

    monkeypatch.setattr(pipeline, "QemuSystem", start)
    with pipeline.emulated(flashed.image, *options):
        pass
    (words,) = started
    assert (words[0], words[words.index("-m") + 1]) == (board, ram_mib)
    line = words[words.index("-append") + 1]
    assert line.startswith("console=ttyAMA0 ") and "ttyS2" not in line
    assert line.endswith(" -- " + " ".join(STDIN_WORDS))


def without_slot_a(flashed: Flashed, disk: Any) -> None:
    """Make a disk whose slot b is active, and whose slot a holds nothing."""
    shutil.copyfile(flashed.disk, disk)
    result = pipeline.flash(flashed.image, disk, FlashOptions("b"), FlashEvents())
    assert result.active == "b"
    with disk.open("r+b") as stream:

        def read(offset: int, size: int) -> bytes:
            stream.seek(offset)
            return stream.read(size)

        stream.seek(find_partition(read_gpt(read, "disk"), "firmware-a", "disk").offset)
        stream.write(bytes(4096))


def test_u_boot_starts_the_active_slot_from_the_image_alone(bench: Bench, tmp_path: Any) -> None:
    flashed, disk = bench.tiny("cortex-a53"), tmp_path / "disk"
    without_slot_a(flashed, disk)
    with bench.boot(flashed, BootLoader(), disk, disk="nvme") as system:
        system.expect("U-Boot", BOOT_TIMEOUT_S)
        system.wait_ready(BOOT_TIMEOUT_S)
        assert_is(flashed.golden[0], answer(system, flashed.golden[0].prompt))
        switch_off(system)
        assert "colibri.slot=b" in system.console.text


def test_an_empty_slot_says_so_and_switches_off(bench: Bench) -> None:
    flashed = bench.tiny("cortex-a53")
    with bench.boot(flashed, flashed.direct(slot="b")) as system:
        with pytest.raises(RunError, match=r"FATAL: no file system .* is on /dev/mmcblk0p3") as caught:
            system.wait_ready(BOOT_TIMEOUT_S)
        assert "the console's end" in str(caught.value)
        system.console.drain(10.0)
        assert "reboot: Power down" in system.console.text


def test_a_partition_that_does_not_come_is_named(bench: Bench) -> None:
    """A missing driver or a wrong slot must not hang a board for ever."""
    flashed = bench.tiny("cortex-a53")
    with (
        bench.boot(flashed, flashed.direct(slot="c", words=("colibri.wait=1", "unknown-word"))) as system,
        pytest.raises(RunError, match="FATAL: no partition is labelled firmware-c"),
    ):
        system.wait_ready(BOOT_TIMEOUT_S)
