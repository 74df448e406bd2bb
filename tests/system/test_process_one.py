"""The firmware as the only program of a system that nobody has prepared: no mounts, no open console, orphans, signals."""

from __future__ import annotations

import gzip
import json
import stat
import subprocess
from pathlib import Path

from colibri_build.image.initramfs import Entry, newc_archive
from colibri_build.run.qemu_system import DirectBoot
from support.systems import BOOT_TIMEOUT_S, Bench

SOURCE = Path(__file__).with_name("orphan_init.c")
FOLDERS = ("dev", "proc", "sys", "run", "firmware")


def initramfs(folder: Path, firmware: Path) -> Path:
    """A root with empty folders, the test's init and a firmware; without /dev/console."""
    init = folder / "init"
    subprocess.run(["aarch64-linux-gnu-gcc", "-std=c11", "-O1", "-static", str(SOURCE), "-o", str(init)], check=True)
    entries = [Entry(name, stat.S_IFDIR | 0o755) for name in FOLDERS]
    files = {"init": init, "firmware/colibri_inference": firmware}
    entries += [Entry(name, stat.S_IFREG | 0o755, path.read_bytes()) for name, path in files.items()]
    path = folder / "initrd"
    path.write_bytes(gzip.compress(newc_archive(entries), mtime=0))
    return path


def test_it_mounts_reaps_and_ends_in_order(bench: Bench, tmp_path: Path) -> None:
    flashed = bench.tiny("cortex-a53")
    initrd = initramfs(tmp_path, flashed.result.firmware.elf)
    with bench.boot(flashed, DirectBoot(flashed.kernel.image, initrd, arguments=("--stdin",))) as system:
        system.wait_ready(BOOT_TIMEOUT_S)
        assert system.expect(r"orphan .*\n", 30).strip() == "orphan reaped, proc mounted, run writable"
        said = system.expect(r"(?m)^COLIBRI_STATUS .*\n", 30)
        system.wait_power_off()
    status = json.loads(said.split(" ", 1)[1])
    assert (status["status"], status["exit_code"]) == ("interrupted", 130), "SIGTERM must end it in order"
