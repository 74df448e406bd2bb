"""Flashing files and, where the machine has them, loop devices: what lands, and what is refused with which words."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from image_disks import (
    MEDIA,
    MIB,
    Made,
    blank_disk,
    copied,
    digest,
    flashed,
    image_of,
    loop_device,
    medium,
    partition_bytes,
)

from colibri_build.errors import FlashError, ImageError, ReadBackError
from colibri_build.image import medium as medium_module
from colibri_build.image.flash import FlashEvents, FlashOptions, flash
from colibri_build.image.slots import active_slot


def refusal(folder: Path, disk: Path, slot: str | None = None, **options: object) -> str:
    with pytest.raises((FlashError, ImageError)) as caught:
        flash(folder, disk, FlashOptions(slot, **options), FlashEvents())  # type: ignore[arg-type]
    return str(caught.value)


def slot_holds(disk: Path, slot: str, made: Made) -> bool:
    image = (made.folder / "firmware.squashfs").read_bytes()
    return partition_bytes(disk, f"firmware-{slot}")[: len(image)] == image


@pytest.mark.parametrize("kind", MEDIA)
def test_a_device_lives_through_delivery_and_two_updates(kind: str, first: Made, update: Made, tmp_path: Path) -> None:
    with medium(kind, tmp_path) as disk:
        result = flashed(first.folder, disk)
        assert (result.slot, result.active) == (None, "a")
        assert result.written_bytes == first.manifest.mapped_bytes
        assert slot_holds(disk, "a", first)
        result = flashed(update.folder, disk, "other")
        assert (result.slot, result.active, active_slot(disk)) == ("b", "b", "b")
        assert slot_holds(disk, "a", first) and slot_holds(disk, "b", update)
        assert flashed(first.folder, disk, "a").active == "a"
        assert active_slot(disk) == "a"
        done = subprocess.run(["sgdisk", "-v", str(disk)], capture_output=True, text=True, check=True)
        assert "No problems found" in done.stdout
        boot = f"{disk}@@{first.manifest.partitions[0].offset}"
        assert subprocess.check_output(["mtype", "-i", boot, "::slot"], text=True).startswith("slot=a\n")


def test_on_a_larger_disk_the_second_table_is_at_its_end(first: Made, tmp_path: Path) -> None:
    """Or Linux, U-Boot and sgdisk complain, and a stale table at the end could be taken instead."""
    for size in (first.manifest.image_bytes, first.manifest.image_bytes + 512, 100 * MIB + 512 * 3 + 100):
        disk = blank_disk(tmp_path / "disk.img", size)
        flashed(first.folder, disk)
        done = subprocess.run(["sgdisk", "-v", str(disk)], capture_output=True, text=True, check=True)
        assert "No problems found" in done.stdout, size
        table = subprocess.run(["sfdisk", "--dump", str(disk)], capture_output=True, text=True, check=True)
        assert f"last-lba: {size // 512 - 34}" in table.stdout
        assert "mismatch" not in table.stderr


def test_a_boot_loader_before_the_first_partition_stays(first: Made, tmp_path: Path) -> None:
    disk = blank_disk(tmp_path / "disk.img")
    with disk.open("r+b") as stream:
        stream.seek(33 * 1024)
        stream.write(b"boot loader" * 1000)
    flashed(first.folder, disk)
    assert disk.read_bytes()[33 * 1024 :].startswith(b"boot loader" * 1000)


def test_a_used_disk_is_a_good_disk(first: Made, tmp_path: Path) -> None:
    disk = tmp_path / "disk.img"
    disk.write_bytes(os.urandom(MIB) * 40)
    flashed(first.folder, disk)
    assert active_slot(disk) == "a"
    boot = f"{disk}@@{first.manifest.partitions[0].offset}"
    listing = subprocess.check_output(["mdir", "-i", boot, "::"], text=True)
    assert "manifest.json" in listing and "2 files" in listing


def test_a_disk_of_the_wrong_size_is_refused_with_figures(first: Made, delivered: Path, tmp_path: Path) -> None:
    disk = blank_disk(tmp_path / "disk.img", 20 * MIB)
    assert refusal(first.folder, disk) == (
        f"disk of the wrong size: {disk} has 20971520 bytes (20.0 MiB), the image needs 34603008 (33.0 MiB); "
        "try: a larger disk, or an image with a smaller --slot-size or --image-size"
    )
    assert not any(disk.read_bytes())
    cut = copied(delivered, tmp_path / "cut.img")
    os.truncate(cut, 30 * MIB)
    assert refusal(first.folder, cut, "b") == (
        f"disk of the wrong size: {cut} has 31457280 bytes (30.0 MiB), its partition firmware-b needs 33554432 "
        "(32.0 MiB); try: a larger disk, or an image with a smaller --slot-size or --image-size"
    )


def test_the_active_slot_is_not_overwritten_unless_forced(update: Made, disk: Path) -> None:
    assert refusal(update.folder, disk, "a") == (
        f"firmware-a of {disk} is the active slot: a cut would leave the board without firmware; "
        "try: --slot other, or --force"
    )
    assert flashed(update.folder, disk, "a", force=True).active == "a"
    assert slot_holds(disk, "a", update)


def test_another_boards_image_is_refused(first: Made, other_board: Made, disk: Path) -> None:
    wanted = (
        f"the image is for board tda4vm, the device is a cortex-a53 ({disk}, partition boot); "
        "try: an image that was built with -b cortex-a53"
    )
    before = digest(disk.read_bytes())
    assert refusal(other_board.folder, disk, "other") == wanted
    assert refusal(other_board.folder, disk) == wanted
    assert refusal(first.folder, disk, board="tda4vm").startswith(
        "the image is for board cortex-a53, the device is a tda4vm (--board); try: "
    )
    assert digest(disk.read_bytes()) == before
    assert flashed(other_board.folder, disk, "b", force=True).active == "b"


def test_a_variant_runs_the_firmware_of_the_board_that_it_varies_and_not_the_other_way_round(
    first: Made, tmp_path: Path
) -> None:
    variant = tmp_path / "variant"
    image_of(first.elf, variant, "cortex-a53/imx8mm")
    disk = blank_disk(tmp_path / "disk.img")
    flashed(variant, disk)
    assert flashed(first.folder, disk, "other").active == "b"
    generic = blank_disk(tmp_path / "generic.img")
    flashed(first.folder, generic)
    assert "is for board cortex-a53/imx8mm, the device is a cortex-a53" in refusal(variant, generic, "other")


@pytest.mark.parametrize("slot", [None, "other"])
def test_a_damaged_or_truncated_image_is_refused_before_a_byte_is_written(
    first: Made, update: Made, disk: Path, tmp_path: Path, slot: str | None
) -> None:
    folder = copied(update.folder, tmp_path / "damaged")
    name = "firmware.squashfs" if slot else "colibri.img"
    before = digest(disk.read_bytes())
    size = (folder / name).stat().st_size
    os.truncate(folder / name, size - 4096)
    text = (
        rf"{folder / name} \({size - 4096} bytes\) is damaged or cut off: SHA-256 [0-9a-f]{{16}}\.\.\., not .*; try: .*"
    )
    assert re.fullmatch(text, refusal(folder, disk, slot))
    shutil.copyfile(first.folder / name, folder / name)  # of another build
    assert "is damaged or cut off" in refusal(folder, disk, slot)
    assert digest(disk.read_bytes()) == before


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("manifest.json", b"{}", "manifest.json (2 bytes) is damaged or cut off"),
        ("SHA256SUMS", b"", "SHA256SUMS does not name manifest.json"),
        ("SHA256SUMS", b"\xff", "SHA256SUMS cannot be read: no folder of an image"),
        ("SHA256SUMS", None, "SHA256SUMS cannot be read: no folder of an image"),
        ("manifest.json", None, "manifest.json: No such file or directory"),
        ("colibri.img", None, "colibri.img: No such file or directory"),
        ("colibri.img.bmap", b"<bmap/>", "colibri.img.bmap (7 bytes) is damaged or cut off"),
    ],
)
def test_a_damaged_folder_is_one_line(
    copy: Path, tmp_path: Path, name: str, content: bytes | None, wanted: str
) -> None:
    if content is None:
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(content)
    assert wanted in refusal(copy, blank_disk(tmp_path / "disk.img"))


def resum(folder: Path) -> None:
    """SHA256SUMS anew, as somebody does who edited a file."""
    names = [line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()]
    (folder / "SHA256SUMS").write_text("".join(f"{digest((folder / name).read_bytes())}  {name}\n" for name in names))


@pytest.mark.parametrize(
    ("name", "old", "new", "wanted"),
    [
        ("manifest.json", '"version": 1', '"version": 2', "has version 2, this program knows 1"),
        ("manifest.json", "colibri-image", "colibri-model", "is no manifest of colibri-image"),
        ("manifest.json", '"image_bytes": ', '"image_bytes": -', "manifest.json is damaged; try: make the image again"),
        ("manifest.json", '"used"', '"user"', "manifest.json is damaged"),
        ("colibri.img.bmap", "Range", "Rage", "colibri.img.bmap is damaged"),
        ("colibri.img.bmap", "> 0-4 <", "> 0-5 <", "colibri.img.bmap is damaged: checksum or block size"),
    ],
)
def test_an_edited_folder_is_one_line(copy: Path, tmp_path: Path, name: str, old: str, new: str, wanted: str) -> None:
    text = (copy / name).read_text()
    assert old in text
    (copy / name).write_text(text.replace(old, new))
    resum(copy)
    assert wanted in refusal(copy, blank_disk(tmp_path / "disk.img"))


def test_a_slot_image_larger_than_the_slot_is_refused(first: Made, disk: Path, tmp_path: Path) -> None:
    big = tmp_path / "colibri_inference"
    shutil.copyfile(first.elf, big)
    with big.open("ab") as stream:
        stream.write(os.urandom(5 * MIB))
    image_of(big, tmp_path / "big")
    assert re.fullmatch(
        rf"the slot image has \d+ bytes, firmware-b of {disk} 4194304; "
        r"try: an image with --slot-size 6, flashed whole \(without --slot\)",
        refusal(tmp_path / "big", disk, "other"),
    )


def label(disk: Path, name: str) -> None:
    script = f'label: gpt\nname="{name}", start=2048, size=2048\nname="data", size=2048\n'
    subprocess.run(["sfdisk", str(disk)], input=script, text=True, check=True, capture_output=True)


def test_a_disk_that_is_not_ours_takes_no_slot(first: Made, tmp_path: Path) -> None:
    disk = blank_disk(tmp_path / "disk.img")
    assert refusal(first.folder, disk, "b") == (
        f"{disk}: no GUID partition table; try: flash the whole image first (without --slot)"
    )
    label(disk, "root")
    assert refusal(first.folder, disk, "b") == (
        f"{disk}: no partition with PARTLABEL boot (there are: root, data); "
        "try: name the right device, or flash the whole image (without --slot)"
    )
    label(disk, "boot")
    assert "no FAT file system" in refusal(first.folder, disk, "b")
    subprocess.run(["mkfs.vfat", "--offset", "2048", str(disk), "1024"], check=True, capture_output=True)
    assert "neither extlinux/extlinux.conf nor slot in the boot partition" in refusal(first.folder, disk, "b")
    assert flashed(first.folder, disk).active == "a", "the whole image may go there"


def test_a_damaged_table_is_refused(first: Made, disk: Path) -> None:
    for at, wanted in ((1024 + 60, "the partition entries are damaged (CRC)"), (512 + 40, "header of the partition")):
        with disk.open("r+b") as stream:
            stream.seek(at)
            stream.write(b"\x99")
        assert wanted in refusal(first.folder, disk, "b")


def test_a_changed_switch_is_refused(first: Made, disk: Path, tmp_path: Path) -> None:
    """An editor on the board wrote the file anew: it is no longer one sector that can be switched."""
    (tmp_path / "slot").write_text("slot=a\n")
    boot = f"{disk}@@{first.manifest.partitions[0].offset}"
    subprocess.run(["mcopy", "-o", "-i", boot, str(tmp_path / "slot"), "::slot"], check=True)
    assert "slot in the boot partition was changed: 7 bytes, not 512" in refusal(first.folder, disk, "b")


def test_a_device_without_a_manifest_takes_a_slot_only_by_force(first: Made, disk: Path) -> None:
    boot = f"{disk}@@{first.manifest.partitions[0].offset}"
    subprocess.run(["mdel", "-i", boot, "::manifest.json"], check=True)
    assert f"{disk}, partition boot: no manifest.json: for which board?; try: --force" in refusal(
        first.folder, disk, "b"
    )
    assert flashed(first.folder, disk, "b", force=True).active == "b"


def test_what_is_no_device_is_said(first: Made, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert refusal(first.folder, gone) == (
        f"{gone}: No such file or directory; try: lsblk lists the disks; is it plugged in?"
    )
    assert refusal(first.folder, tmp_path).startswith(f"{tmp_path} is neither a disk nor a file; try: a disk as ")
    assert refusal(first.folder, Path("/dev/null")).startswith("/dev/null is neither a disk nor a file")
    image = first.folder / "colibri.img"
    assert refusal(first.folder, image) == f"{image} is a file of the image itself; try: a disk, or a copy of the file"


@pytest.mark.parametrize("name", ["mmcblk0boot0", "mmcblk1boot1", "mmcblk0rpmb", "mmcblk2gp0"])
@pytest.mark.parametrize("slot", [None, "other"])
def test_boot_areas_are_never_written(first: Made, name: str, slot: str | None) -> None:
    assert refusal(first.folder, Path("/dev") / name, slot, force=True) == (
        f"/dev/{name} is a boot or protected area of an eMMC, where boot loader and keys are: never written; "
        f"try: the user area, as /dev/{name[:7]}"
    )


def test_two_programs_do_not_write_one_device(first: Made, disk: Path) -> None:
    with medium_module.open_medium(_device(disk)):
        assert refusal(first.folder, disk, "b") == (
            f"{disk} is in use by another program; try: end it; lsof and lsblk say who"
        )


def _device(disk: Path) -> medium_module.Device:
    return medium_module.Device(disk, disk.name, disk.stat().st_size, None)


class BadCard:
    """A card that says yes and keeps other bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, fault: int = 0) -> None:
        self.at, self.fault, self.real = at, fault, medium_module._put
        monkeypatch.setattr(medium_module, "_put", self)

    def __call__(self, descriptor: int, data: memoryview, offset: int) -> int:
        if offset <= self.at < offset + len(data):
            if self.fault:
                raise OSError(self.fault, os.strerror(self.fault))
            changed = bytearray(data)
            changed[self.at - offset] ^= 0x40
            data = memoryview(changed)
        return self.real(descriptor, data, offset)


@pytest.mark.parametrize("kind", MEDIA)
def test_what_the_read_back_finds_is_named_and_the_old_slot_stays_active(
    kind: str, first: Made, update: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = first.manifest.partitions[2].offset
    with medium(kind, tmp_path) as disk:
        flashed(first.folder, disk)
        BadCard(monkeypatch, start + 9 * 4096 + 17)
        with pytest.raises(ReadBackError) as caught:
            flashed(update.folder, disk, "b")
        assert caught.value.exit_code == 5
        assert caught.value.what == (
            f"{disk} does not hold what was written: first different block at offset {start + 9 * 4096} "
            "(1 blocks of 4096 bytes differ in this MiB); "
            f"slot b of {disk} is half written and not active; slot a is active and untouched"
        )
        assert active_slot(disk) == "a"
        assert not any(partition_bytes(disk, "firmware-b")[:4096]), "a half-written slot has no file system"


def test_the_first_block_and_the_switch_are_read_back_too(
    first: Made, update: Made, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = first.manifest.partitions[2].offset
    with monkeypatch.context() as patch:
        BadCard(patch, start)
        with pytest.raises(ReadBackError, match=f"first different block at offset {start} "):
            flashed(update.folder, disk, "b")
        assert active_slot(disk) == "a"
    with monkeypatch.context() as patch:
        BadCard(patch, first.manifest.switch.offset + 100)
        with pytest.raises(
            ReadBackError, match="sector at offset .* that names the active slot differs.*flash it again"
        ):
            flashed(update.folder, disk, "b")


def test_a_whole_image_that_did_not_land_has_no_table(first: Made, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = first.manifest.partitions[1].offset + 8192
    BadCard(monkeypatch, at)
    with pytest.raises(ReadBackError, match=f"block at offset {at} .* has no partition table: flash it again"):
        flashed(first.folder, disk)
    with pytest.raises(FlashError, match="no GUID partition table"):
        active_slot(disk)


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        (errno.EIO, "Input/output error; slot b of .* slot a is active and untouched; try: check cable, reader"),
        (errno.ENOSPC, "No space left on device; slot b of .*; try: free some space"),
    ],
)
def test_a_device_that_fails_is_said_with_its_state(
    first: Made, update: Made, disk: Path, monkeypatch: pytest.MonkeyPatch, fault: int, wanted: str
) -> None:
    at = first.manifest.partitions[2].offset
    BadCard(monkeypatch, at + 4096, fault)
    with pytest.raises(FlashError, match=f"cannot write {disk} at offset {at + 4096}: {wanted}") as caught:
        flashed(update.folder, disk, "b")
    assert caught.value.exit_code == 4
    assert active_slot(disk) == "a"


def test_a_file_system_without_direct_access_is_read_back_all_the_same(
    first: Made, update: Made, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_DIRECT")
    monkeypatch.setattr(os, "O_DIRECT", 1 << 30, raising=False)  # a flag that open refuses or ignores
    real = os.open

    def refuse(path: object, flags: int, *rest: int) -> int:
        if flags & (1 << 30):
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    assert flashed(update.folder, disk, "other").active == "b"
    BadCard(monkeypatch, first.manifest.partitions[1].offset + 4096)
    with pytest.raises(ReadBackError):
        flashed(update.folder, disk, "other")


def test_steps_and_states_are_reported(update: Made, disk: Path) -> None:
    class Seen(FlashEvents):
        def __init__(self) -> None:
            self.steps: dict[str, tuple[int, int]] = {}
            self.states: list[str] = []
            self.questions: list[str] = []

        def progress(self, what: str, done: int, total: int) -> None:
            self.steps[what] = (done, total)

        def state(self, text: str) -> None:
            self.states.append(text)

        def confirm(self, question: str) -> None:
            self.questions.append(question)

    seen, size = Seen(), update.manifest.slot_image.bytes
    flash(update.folder, disk, FlashOptions("other"), seen)
    whole = (size, size)
    assert seen.steps == {"check firmware.squashfs": whole, "write": whole, "read back": whole}
    assert seen.states[0] == f"{disk} is untouched"
    assert "slot b of" in seen.states[1] and "slot a is active and untouched" in seen.states[1]
    assert seen.states[-1] == f"slot b of {disk} is written, compared and active"
    assert seen.questions == [], "a file needs no question"


LOOPS = [kind for kind in MEDIA if kind == "loop"]


def test_a_disk_needs_a_yes_and_a_file_does_not(first: Made, tmp_path: Path) -> None:
    """On every machine: a file is no disk. Where there are loop devices, they are asked about."""

    class Asked(FlashEvents):
        def confirm(self, question: str) -> None:
            raise FlashError(question)

    file = blank_disk(tmp_path / "disk.img")
    for _ in LOOPS:
        with loop_device(file) as disk:
            with pytest.raises(FlashError, match=f"overwrite everything on {disk} .*50.3 MB"):
                flash(first.folder, disk, FlashOptions(), Asked())
            assert not any(file.read_bytes())
    flash(first.folder, file, FlashOptions(), Asked())
    assert active_slot(file) == "a"
