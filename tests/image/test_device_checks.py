"""What keeps a user from overwriting the wrong disk, on machines as sysfs and procfs describe them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from image_disks import MEDIA, MOUNTABLE, Made, blank_disk, loop_device

from colibri_build.errors import FlashError
from colibri_build.image.device import Device, Machine, check_device, description, find_device
from colibri_build.image.medium import open_medium


class FakeMachine:
    """A /sys and a /proc with the disks that a test adds, linked as the kernel links them."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder / "sys", folder / "proc")
        (folder / "sys" / "dev" / "block").mkdir(parents=True)
        (folder / "sys" / "block").mkdir()
        (folder / "proc" / "self").mkdir(parents=True)
        self.mounts = ["22 1 0:20 / /proc rw,nosuid shared:1 - proc proc rw"]
        self.swaps = ["Filename Type Size Used Priority"]

    def entry(self, name: str, number: str, parent: Path | None = None, **files: str) -> Path:
        folder = (parent or self.machine.sys / "devices") / name
        for file, text in {"dev": number, "ro": "0", **files}.items():
            path = folder / file.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        (self.machine.sys / "dev" / "block" / number).symlink_to(folder)
        if parent is None:
            (self.machine.sys / "block" / name).symlink_to(folder)
        return folder

    def hold(self, below: Path, holder: Path) -> None:
        (below / "holders").mkdir(exist_ok=True)
        (below / "holders" / holder.name).symlink_to(holder)

    def check(self, name: str, number: str, force: bool = False) -> None:
        (self.machine.proc / "self" / "mountinfo").write_text("\n".join(self.mounts) + "\n")
        (self.machine.proc / "swaps").write_text("\n".join(self.swaps) + "\n")
        check_device(Device(Path("/dev") / name, name, 64 * 10**9, number), self.machine, force)

    def refusal(self, name: str, number: str, force: bool = False) -> str:
        with pytest.raises(FlashError) as caught:
            self.check(name, number, force)
        return str(caught.value)


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def stick(fake: FakeMachine) -> Path:
    disk = fake.entry("sdb", "8:16", removable="1", device__vendor="Acme", device__model="Stick")
    fake.entry("sdb1", "8:17", disk, partition="1")
    return disk


def test_an_unused_stick_and_an_sd_card_are_taken(fake: FakeMachine) -> None:
    stick(fake)
    fake.entry("mmcblk1", "179:0", removable="0", device__type="SD")
    fake.check("sdb", "8:16")
    fake.check("mmcblk1", "179:0")


@pytest.mark.parametrize("force", [False, True])
def test_a_mounted_partition_is_refused_even_by_force(fake: FakeMachine, force: bool) -> None:
    stick(fake)
    fake.mounts.append(r"40 22 8:17 / /media/my\040stick rw,relatime shared:2 - vfat /dev/sdb1 rw")
    assert fake.refusal("sdb", "8:16", force) == (
        "/dev/sdb is in use: sdb1 is mounted at /media/my stick; try: umount /dev/sdb1, or another disk"
    )


def test_a_disk_mounted_as_a_whole_is_refused(fake: FakeMachine) -> None:
    stick(fake)
    fake.mounts.append("40 22 8:16 / /mnt rw - ext4 /dev/sdb rw")
    assert "/dev/sdb is in use: sdb is mounted at /mnt" in fake.refusal("sdb", "8:16", force=True)


def test_what_is_built_upon_a_disk_counts(fake: FakeMachine) -> None:
    """An encrypted or logical volume, on a partition of the disk."""
    disk = stick(fake)
    fake.hold(disk / "sdb1", fake.entry("dm-0", "254:0"))
    fake.check("sdb", "8:16")
    fake.mounts.append("40 22 254:0 / /home rw - ext4 /dev/mapper/home rw")
    assert "/dev/sdb is in use: dm-0 is mounted at /home" in fake.refusal("sdb", "8:16", force=True)


def test_a_disk_with_another_number_is_not_taken_for_mounted(fake: FakeMachine) -> None:
    stick(fake)
    fake.mounts.append("40 22 8:1 / / rw - ext4 /dev/sda1 rw")
    fake.mounts.append("41 22 8:170 / /data rw - ext4 /dev/sdk10 rw")
    fake.check("sdb", "8:16")


def test_a_partition_is_not_a_disk(fake: FakeMachine) -> None:
    stick(fake)
    assert fake.refusal("sdb1", "8:17", force=True) == "/dev/sdb1 is partition 1 of a disk; try: the disk: /dev/sdb"


def test_disks_of_the_machine_itself_need_force(fake: FakeMachine) -> None:
    fake.entry("nvme0n1", "259:0", removable="0", device__model="Fast 1T")
    assert fake.refusal("nvme0n1", "259:0") == (
        "/dev/nvme0n1 (Fast 1T, 64.0 GB) is not removable: this machine's own disk?; "
        "try: check the name with lsblk; if it is right, --force"
    )
    fake.check("nvme0n1", "259:0", force=True)
    fake.entry("mmcblk0", "179:0", removable="0", device__type="MMC", device__name="DG4016")
    assert "/dev/mmcblk0 (DG4016, 64.0 GB) is an eMMC that is soldered in" in fake.refusal("mmcblk0", "179:0")
    fake.check("mmcblk0", "179:0", force=True)


def test_a_disk_that_sysfs_does_not_know_counts_as_the_machines_own(fake: FakeMachine) -> None:
    assert "is not removable" in fake.refusal("sdq", "65:0")


def test_write_protection_and_large_sectors_are_said(fake: FakeMachine) -> None:
    fake.entry("sdc", "8:32", removable="1", ro="1")
    assert fake.refusal("sdc", "8:32") == "/dev/sdc is write-protected; try: the switch on the card or its adapter"
    fake.entry("sdd", "8:48", removable="1", queue__logical_block_size="4096")
    assert fake.refusal("sdd", "8:48") == "/dev/sdd has sectors of 4096 bytes, images have 512; try: another disk"


def test_a_description_is_what_lsblk_says(fake: FakeMachine) -> None:
    stick(fake)
    assert description(Device(Path("/dev/sdb"), "sdb", 64 * 10**9, "8:16"), fake.machine) == "Acme Stick, 64.0 GB"


def test_a_file_behind_a_mounted_loop_device_is_refused(fake: FakeMachine, tmp_path: Path) -> None:
    file = blank_disk(tmp_path / "disk.img")
    other = blank_disk(tmp_path / "other.img")
    fake.entry("loop3", "7:3", loop__backing_file=str(file))
    fake.mounts.append("40 22 7:3 / /mnt rw - squashfs /dev/loop3 ro")
    (fake.machine.proc / "self" / "mountinfo").write_text("\n".join(fake.mounts) + "\n")
    check_device(find_device(other, fake.machine), fake.machine, force=False)
    with pytest.raises(FlashError, match=f"{file} is in use: loop3 is mounted at /mnt"):
        check_device(find_device(file, fake.machine), fake.machine, force=True)


def test_the_kernels_own_words_are_understood() -> None:
    """No file system that is mounted on the machine that runs this test could be overwritten."""
    numbers = [line.split()[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert numbers
    for number in set(numbers):
        with pytest.raises(FlashError, match=r"^/dev/some is in use: .* is mounted at /"):
            check_device(Device(Path("/dev/some"), "some", 10**9, number), Machine(), force=True)


def test_a_slot_that_this_kernel_has_mounted_is_refused(first: Made, disk: Path, tmp_path: Path) -> None:
    """Where this machine can mount; everywhere, the disk is taken while nothing is mounted."""
    place = tmp_path / "mounted"
    place.mkdir()
    check_device(find_device(disk, Machine()), Machine(), force=False)
    for _ in MOUNTABLE:
        where = f"ro,loop,offset={first.manifest.partitions[1].offset}"
        subprocess.run(["mount", "-t", "squashfs", "-o", where, str(disk), str(place)], check=True)
        try:
            assert (place / "firmware" / "colibri_inference").read_bytes() == first.elf.read_bytes()
            with pytest.raises(FlashError, match=f"{disk} is in use: loop.* is mounted at {place}; try: umount "):
                check_device(find_device(disk, Machine()), Machine(), force=True)
        finally:
            subprocess.run(["umount", str(place)], check=True)


LOOPS = [kind for kind in MEDIA if kind == "loop"]


def test_a_loop_device_is_taken_once_and_the_kernel_keeps_others_out(tmp_path: Path) -> None:
    """A file twice where the machine has no loop devices: its lock has the same effect between our own programs."""
    file = blank_disk(tmp_path / "disk.img")
    found = find_device(file, Machine())
    check_device(found, Machine(), force=False)
    with open_medium(found), pytest.raises(FlashError, match="in use by another program"), open_medium(found):
        pass
    for _ in LOOPS:
        with loop_device(file) as path:
            found = find_device(path, Machine())
            assert (found.is_disk, found.bytes, found.name) == (True, file.stat().st_size, path.name)
            check_device(found, Machine(), force=False)
            with open_medium(found), pytest.raises(FlashError, match="in use by another program"), open_medium(found):
                pass
            subprocess.run(["blockdev", "--setro", str(path)], check=True)
            with pytest.raises(FlashError, match="is write-protected"):
                check_device(found, Machine(), force=False)
            subprocess.run(["blockdev", "--setrw", str(path)], check=True)
