"""The promise of two slots: whenever the process is killed or the power goes, the board boots the old slot or the new one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from image_disks import MIB, Made, copied, digest, flashed, image_of, partition_bytes

from colibri_build.errors import FlashError
from colibri_build.image import medium as medium_module
from colibri_build.image.slots import active_slot

SECTOR = 512


def slot_digest(disk: Path, slot: str, made: Made) -> str:
    return digest(partition_bytes(disk, f"firmware-{slot}")[: made.manifest.slot_image.bytes])


def check_either_slot_boots(disk: Path, first: Made, update: Made, moment: object) -> str:
    """The delivered disk had `first` in slot a, active. Returns the slot that is active now."""
    active = active_slot(disk)
    made = {"a": first, "b": update}[active]
    assert slot_digest(disk, active, made) == made.manifest.slot_image.sha256, moment
    assert slot_digest(disk, "a", first) == first.manifest.slot_image.sha256, f"the old slot was touched: {moment}"
    return active


def killed_at(call: int, half: bool, disk: Path, made: Made, slot: str | None) -> int:
    """Flash in a process of its own that is killed by SIGKILL at its n-th write or flush; returns how it ended."""
    process = os.fork()
    if process == 0:  # never returns to pytest
        try:
            _die_at(call, half)
            flashed(made.folder, disk, slot)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(process, 0)[1]


def _die_at(call: int, half: bool) -> None:
    put, sync, calls = medium_module._put, medium_module._sync, 0

    def counted(real: Callable[..., int | None]) -> Callable[..., int | None]:
        def run(descriptor: int, *arguments: object) -> int | None:
            nonlocal calls
            calls += 1
            if calls == call:
                if half and arguments:
                    data, offset = arguments
                    assert isinstance(data, memoryview)
                    os.pwrite(descriptor, data[: len(data) // 2 // SECTOR * SECTOR], offset)  # type: ignore[arg-type]
                os.kill(os.getpid(), signal.SIGKILL)
            return real(descriptor, *arguments)

        return run

    medium_module._put = counted(put)  # type: ignore[assignment]
    medium_module._sync = counted(sync)  # type: ignore[assignment]


@pytest.mark.parametrize("half", [False, True])
def test_kill_9_at_every_write_of_a_slot_leaves_a_slot_that_boots(
    first: Made, update: Made, delivered: Path, tmp_path: Path, half: bool
) -> None:
    disk = tmp_path / "disk.img"
    actives = []
    for call in range(1, 50):
        copied(delivered, disk)
        ended = killed_at(call, half, disk, update, "other")
        actives.append(check_either_slot_boots(disk, first, update, f"call {call}"))
        if ended == 0:
            break
        assert os.WTERMSIG(ended) == signal.SIGKILL, "the child must die by the signal, not by an error"
        if actives[-1] == "a":
            assert flashed(update.folder, disk, "other").active == "b", "the next try succeeds"
    assert len(actives) > 8 and actives[0] == "a" and actives[-1] == "b"
    assert actives == sorted(actives)


def test_kill_9_during_a_whole_image_leaves_no_table_that_looks_good(
    first: Made, update: Made, delivered: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk.img"
    outcomes = []
    for call in range(1, 60):
        copied(delivered, disk)
        ended = killed_at(call, False, disk, update, None)
        try:
            active_slot(disk)
        except FlashError:
            outcomes.append("no table")
        else:
            now = slot_digest(disk, "a", update)
            outcomes.append("new" if now == update.manifest.slot_image.sha256 else "old")
            if outcomes[-1] == "old":
                assert slot_digest(disk, "a", first) == first.manifest.slot_image.sha256
        if ended == 0:
            break
    assert [name for i, name in enumerate(outcomes) if name not in outcomes[:i]] == ["old", "no table", "new"]


@dataclass
class Recorder:
    """What reached a device between flushes, as (offset, bytes)."""

    batches: list[list[tuple[int, bytes]]] = field(default_factory=lambda: [[]])

    def put(self, descriptor: int, data: memoryview, offset: int) -> int:
        self.batches[-1].append((offset, bytes(data)))
        return os.pwrite(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)
        self.batches.append([])


def test_a_power_cut_that_loses_any_unflushed_sectors_leaves_a_slot_that_boots(
    first: Made, update: Made, delivered: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device may write what was not flushed in any order, or not at all; single sectors are whole."""
    recorder = Recorder()
    monkeypatch.setattr(medium_module, "_put", recorder.put)
    monkeypatch.setattr(medium_module, "_sync", recorder.sync)
    flashed(update.folder, disk, "other")
    chance, cut, flushed = random.Random(1), tmp_path / "cut.img", copied(delivered, tmp_path / "flushed.img")
    seen = set()
    for batch in recorder.batches:
        sectors = [(at + i, data[i : i + SECTOR]) for at, data in batch for i in range(0, len(data), SECTOR)]
        for share in (0.1, 0.5, 0.95):
            copied(flushed, cut)
            write_sectors(cut, [sector for sector in sectors if chance.random() < share])
            seen.add(check_either_slot_boots(cut, first, update, f"share {share} of {len(sectors)} sectors"))
        write_sectors(flushed, sectors)
    assert seen == {"a", "b"}
    assert flushed.read_bytes() == disk.read_bytes(), "the record is complete"


def write_sectors(disk: Path, sectors: list[tuple[int, bytes]]) -> None:
    with disk.open("r+b") as stream:
        for at, data in sectors:
            stream.seek(at)
            stream.write(data)


def test_the_switch_is_one_write_of_one_sector(
    first: Made, update: Made, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(medium_module, "_put", recorder.put)
    monkeypatch.setattr(medium_module, "_sync", recorder.sync)
    flashed(update.folder, disk, "other")
    *earlier, (offset, data) = [write for batch in recorder.batches for write in batch]
    assert (offset, len(data), data[:7]) == (first.manifest.switch.offset, SECTOR, b"slot=b\n")
    assert offset % SECTOR == 0
    slot = first.manifest.partitions[2]
    assert all(slot.offset <= at and at + len(data) <= slot.offset + slot.bytes for at, data in earlier)


@pytest.fixture(scope="module")
def large(first: Made, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A firmware that takes a moment to write."""
    folder = tmp_path_factory.mktemp("large")
    elf = Path(shutil.copyfile(first.elf, folder / "colibri_inference"))
    with elf.open("ab") as stream:
        for number in range(10):
            stream.write(random.Random(number).randbytes(MIB))
    return Made(elf, folder / "image", image_of(elf, folder / "image"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_command_stopped_from_outside_leaves_the_old_slot_and_says_so(
    large: Made, tmp_path: Path, number: signal.Signals
) -> None:
    disk = tmp_path / "disk.img"
    with disk.open("wb") as stream:
        stream.truncate(large.manifest.image_bytes)
    flashed(large.folder, disk)
    command = [sys.executable, "-c", _SLOW, "flash", str(large.folder), "--device", str(disk), "--slot", "other"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    start, deadline = large.manifest.partitions[2].offset, time.monotonic() + 60
    while not any(_read(disk, start + 2 * MIB, 4096)):  # it is writing
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert active_slot(disk) == "a"
    assert slot_digest(disk, "a", large) == large.manifest.slot_image.sha256
    assert not any(_read(disk, start, 4096)), "the half-written slot has no file system"
    said = f"stopped: slot b of {disk} is half written and not active; slot a is active and untouched\n"
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 128 + number
        assert said in err
        assert "Traceback" not in err


# The command on a slow card: 100 ms for a MiB.
_SLOW = """
import sys, time
from colibri_build.image import medium
put = medium._put
medium._put = lambda *arguments: (time.sleep(0.1), put(*arguments))[1]
from colibri_build.__main__ import main
sys.argv[0] = "colibri-build"
main()
"""


def _read(disk: Path, offset: int, size: int) -> bytes:
    with disk.open("rb") as stream:
        stream.seek(offset)
        return stream.read(size)


def test_the_old_boot_file_is_the_same_but_for_one_letter(
    first: Made, update: Made, delivered: Path, disk: Path
) -> None:
    flashed(update.folder, disk, "other")
    boot = first.manifest.partitions[0]
    old, new = (_read(path, boot.offset, boot.bytes) for path in (delivered, disk))
    different = [at for at in range(0, boot.bytes, SECTOR) if old[at : at + SECTOR] != new[at : at + SECTOR]]
    assert [boot.offset + at for at in different] == [first.manifest.switch.offset]
    assert struct.unpack_from("7s", new, different[0])[0] == b"slot=b\n"
