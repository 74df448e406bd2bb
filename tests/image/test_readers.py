"""Our readers of FAT and GPT against the tools that write them: a device's own manifest decides what may be flashed."""

from __future__ import annotations

import contextlib
import os
import random
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from image_disks import MIB, blank_disk

from colibri_build.errors import FlashError
from colibri_build.image.fat import FatVolume
from colibri_build.image.gpt import ReadAt, read_gpt


def reader(path: Path) -> ReadAt:
    data = path.read_bytes()
    return lambda offset, size: data[offset : offset + size]


NAMES = (
    "a",
    "MANIFEST.TXT",
    "manifest.json",
    "a name with blanks and more than 26 characters.conf",
    "folder/extlinux.conf",
    "folder/deeper/slot",
)


@pytest.mark.parametrize(
    ("bits", "size_mib", "cluster"),
    [(12, 2, 1), (12, 16, 16), (16, 16, 4), (16, 24, 1), (32, 40, 1), (32, 34, 1)],
)
def test_files_on_every_kind_of_fat_are_what_mtools_wrote(
    bits: int, size_mib: int, cluster: int, tmp_path: Path
) -> None:
    disk = blank_disk(tmp_path / "boot.vfat", size_mib * MIB)
    subprocess.run(["mkfs.vfat", "-F", str(bits), "-s", str(cluster), str(disk)], check=True, capture_output=True)
    chance = random.Random(bits)
    content = {name: chance.randbytes(chance.choice((1, 512, 5000, 70_000))) for name in NAMES}
    subprocess.run(["mmd", "-i", str(disk), "::folder", "::folder/deeper"], check=True)
    filler = [tmp_path / f"filler-{number}" for number in range(40)]  # a folder of more than one cluster, with holes
    for path in filler:
        path.write_bytes(chance.randbytes(3000))
    subprocess.run(["mcopy", "-i", str(disk), *map(str, filler), "::folder"], check=True)
    subprocess.run(["mdel", "-i", str(disk), *(f"::folder/{path.name}" for path in filler[::2])], check=True)
    for name, data in content.items():
        (tmp_path / "source").write_bytes(data)
        subprocess.run(["mcopy", "-i", str(disk), str(tmp_path / "source"), f"::{name}"], check=True)
    read = reader(disk)
    volume = FatVolume(read, "disk")
    for name, data in content.items():
        file = volume.find(name.upper())
        assert file is not None and volume.content(file) == data, name
        first, _ = file.clusters[0]
        assert read(first, min(512, len(data))) == data[:512], "where the switch of slots would be written"
    for name in ("b", "folder/a", "a/b", "folder/filler-0", "folder/deeper/slot/x"):
        assert volume.find(name) is None, name


def test_a_chain_in_a_circle_ends(tmp_path: Path) -> None:
    disk = blank_disk(tmp_path / "boot.vfat", 16 * MIB)
    subprocess.run(["mkfs.vfat", "-F", "16", "-s", "4", "-a", "-R", "1", str(disk)], check=True, capture_output=True)
    (tmp_path / "slot").write_bytes(bytes(512))
    subprocess.run(["mcopy", "-i", str(disk), str(tmp_path / "slot"), "::slot"], check=True)
    with disk.open("r+b") as stream:
        stream.seek(512 + 2 * 2)  # the entry of cluster 2: it is followed by itself
        stream.write(b"\x02\x00")
    with pytest.raises(FlashError, match="chain that runs in a circle"):
        FatVolume(reader(disk), "disk").find("slot")


@pytest.mark.parametrize("damage", [b"", bytes(512), b"\xff" * 510 + b"\x55\xaa", bytes(510) + b"\x55\xaa"])
def test_what_is_no_fat_is_said(damage: bytes) -> None:
    with pytest.raises(FlashError, match="disk: no FAT file system"):
        FatVolume(lambda offset, size: damage[offset : offset + size], "disk").find("slot")


def test_random_bytes_never_end_in_a_traceback(tmp_path: Path) -> None:
    """A worn-out card holds anything."""
    disk = blank_disk(tmp_path / "boot.vfat", 2 * MIB)
    subprocess.run(["mkfs.vfat", "-F", "12", str(disk)], check=True, capture_output=True)
    (tmp_path / "slot").write_bytes(bytes(512))
    subprocess.run(["mcopy", "-i", str(disk), str(tmp_path / "slot"), "::slot"], check=True)
    sound = disk.read_bytes()
    worn = tmp_path / "worn"
    for seed in range(200):
        chance, data = random.Random(seed), bytearray(sound)
        for _ in range(chance.choice((1, 4, 30))):
            data[chance.choice((chance.randrange(11, 90), chance.randrange(512, 20_000)))] = chance.randrange(256)
        worn.write_bytes(data)
        with worn.open("rb") as stream, contextlib.suppress(FlashError):
            volume = FatVolume(lambda offset, size, file=stream: os.pread(file.fileno(), size, offset), "disk")
            found = volume.find("slot")
            assert found is None or len(volume.content(found)) == found.bytes


def test_names_and_places_are_sfdisks(tmp_path: Path) -> None:
    disk = blank_disk(tmp_path / "disk.img", 40 * MIB)
    script = 'label: gpt\nname="firmware-a", start=4096, size=6144\nname="größer als boot", start=20480, size=1024\n'
    subprocess.run(["sfdisk", str(disk)], input=script, text=True, check=True, capture_output=True)
    found = [(part.name, part.offset, part.bytes) for part in read_gpt(reader(disk), "disk")]
    assert found == [("firmware-a", 2 * MIB, 3 * MIB), ("größer als boot", 10 * MIB, MIB // 2)]


@pytest.mark.parametrize("last", [4095, 1 << 63])
def test_a_partition_beyond_all_disks_is_said(last: int, delivered: Path) -> None:
    """With sound CRCs: a table that somebody made."""
    data = bytearray(delivered.read_bytes())
    struct.pack_into("<Q", data, 1024 + 40, last)
    struct.pack_into("<I", data, 512 + 88, zlib.crc32(data[1024 : 1024 + 128 * 128]))
    struct.pack_into("<I", data, 512 + 16, 0)
    struct.pack_into("<I", data, 512 + 16, zlib.crc32(data[512 : 512 + 92]))
    with pytest.raises(FlashError, match=f"disk: partition 1 reaches from sector 16384 to {last}"):
        read_gpt(lambda offset, size: bytes(data[offset : offset + size]), "disk")
