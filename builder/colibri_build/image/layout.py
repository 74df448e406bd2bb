"""Where each part of an image is: pure sums in bytes from the sizes of what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from colibri_build.errors import ImageError
from colibri_build.layout import align

MIB = 1024 * 1024
SECTOR = 512  # logical sector of the devices that we write; the unit of GPT
BLOCK = 4096  # unit of the block map, and of everything that is written
TABLE_BYTES = 34 * SECTOR  # protective MBR, GPT header and 128 entries
BACKUP_BYTES = 33 * SECTOR  # entries and header again, at the end
# Several boards keep their boot loader between the table and the first partition (i.MX8M: from 33 KiB, up to 4 MiB).
# The block map leaves that gap out, so that flashing does not touch it.
FIRST_PARTITION = 8 * MIB
BOOT_LEAST = 16 * MIB  # mkfs.vfat makes it FAT16, which every boot loader reads
SLOT_LEAST = 4 * MIB  # a usual erase unit of an eMMC
FAT_CLUSTER = 4096  # at least as large as the clusters that mkfs.vfat takes up to 8 GiB
BOOT, SLOTS = "boot", ("a", "b")


def slot_label(slot: str) -> str:
    """PARTLABEL of a slot: `a` -> `firmware-a`."""
    return f"firmware-{slot}"


@dataclass(frozen=True)
class Region:
    """One partition: name, first byte and size in the image, both multiples of 1 MiB."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Layout:
    """The partitions in order, and the size of the whole."""

    regions: tuple[Region, ...]
    bytes: int

    def region(self, name: str) -> Region:
        """Return the partition of that name (KeyError without one)."""
        return {region.name: region for region in self.regions}[name]


def roomy(used: int, least: int) -> int:
    """Return `used` and a quarter more, for a later and larger content, in whole MiB, at least `least`."""
    return max(align(used * 5 // 4, MIB), least)


def boot_bytes(files: Sequence[int]) -> int:
    """Return the size of the boot partition for files of these sizes."""
    return roomy(sum(align(size, FAT_CLUSTER) for size in files), BOOT_LEAST)


def slot_bytes(used: int, budget: int, wanted_mib: int | None) -> int:
    """Return the size of one slot that holds `used` bytes, on a board that gives a firmware `budget` bytes.

    Raises ImageError if the firmware or the size that the user wants does not go with them.
    """
    if used > budget:
        raise ImageError(
            f"the slot image has {used} bytes, the board's firmware partition {budget} (storage.flash_budget_mib)",
            hint="a smaller model, or --bits 4 when quantizing",
        )
    size = min(roomy(used, SLOT_LEAST), budget) if wanted_mib is None else wanted_mib * MIB
    if size < used:
        least = align(used, MIB) // MIB
        raise ImageError(f"--slot-size {wanted_mib}: the slot image has {used} bytes", hint=f"--slot-size {least}")
    if size > budget:
        raise ImageError(
            f"--slot-size {wanted_mib}: the board's flash budget is {budget // MIB} MiB a slot",
            hint=f"--slot-size {budget // MIB}",
        )
    return size


def make_layout(boot: int, slot: int, image_mib: int | None = None) -> Layout:
    """Return the layout of an image. Raises ImageError with the sums if `image_mib` is too small."""
    regions, end = [], FIRST_PARTITION
    for name, size in ((BOOT, boot), *((slot_label(name), slot) for name in SLOTS)):
        regions.append(Region(name, end, size))
        end += size
    needed = align(end + BACKUP_BYTES, MIB)
    if image_mib is not None and image_mib * MIB < needed:
        sums = f"{FIRST_PARTITION // MIB} table and gap + {boot // MIB} boot + 2 x {slot // MIB} slots + 1 backup table"
        raise ImageError(
            f"--image-size {image_mib}: {needed // MIB} MiB are needed ({sums})",
            hint=f"--image-size {needed // MIB}, or a smaller --slot-size",
        )
    return Layout(tuple(regions), needed if image_mib is None else image_mib * MIB)
