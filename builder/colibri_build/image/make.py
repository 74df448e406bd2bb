"""Makes an image folder from a finished firmware: colibri.img, its block map, slot image, manifest, SHA256SUMS."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from colibri_build.errors import ImageError
from colibri_build.image import slots
from colibri_build.image.block_map import block_map_text, blocks_of, hashed
from colibri_build.image.build_id import build_id_of
from colibri_build.image.fat import FatVolume
from colibri_build.image.genimage import (
    BOOT_IMAGE,
    Ids,
    Watcher,
    disk_config,
    require_tools,
    run_genimage,
    slot_config,
)
from colibri_build.image.gpt import read_gpt
from colibri_build.image.layout import (
    BACKUP_BYTES,
    BLOCK,
    BOOT,
    SLOTS,
    TABLE_BYTES,
    Layout,
    Region,
    boot_bytes,
    make_layout,
    slot_bytes,
    slot_label,
)
from colibri_build.image.manifest import (
    IMAGE_FILE,
    IMAGE_KIND,
    MANIFEST_FILE,
    MAP_FILE,
    SLOT_IMAGE_FILE,
    SUMMED_FILES,
    SUMS_FILE,
    FileEntry,
    FirmwareRecord,
    Manifest,
    SwitchRecord,
    compatible_boards,
    described,
    firmware_json,
    manifest_json,
    sums_text,
)
from colibri_build.target.board import Board

_START = b'#!/bin/sh\nexec /firmware/colibri_inference "$@"\n'
_MOUNT_POINTS = ("proc", "sys", "dev", "tmp", "run")  # for a slot that is the root file system


@dataclass(frozen=True)
class Kernel:
    """What boots the firmware where the board has no system of its own."""

    kernel: Path
    initrd: Path
    dtb: Path | None = None
    cmdline: str = ""  # more words; those after ` -- ` are the firmware's arguments


@dataclass(frozen=True)
class ImageOptions:
    """One image as the user asked for it; None: computed from the content."""

    slot_mib: int | None = None
    image_mib: int | None = None
    kernel: Kernel | None = None
    fill_both: bool = False  # slot b holds the same firmware, else it is empty


def make_image(elf: Path, board: Board, model: str, out: Path, options: ImageOptions, watcher: Watcher) -> Manifest:
    """Make the image of the firmware `elf` in the folder `out`; `model` is the digest of its model folder.

    An older image folder there is replaced once the new one is complete; whatever happens, nothing else is left behind.
    Raises ImageError: a tool or an input is missing, something does not fit, `out` is something else, the disk is full.
    """
    out = out.resolve()
    require_tools()
    _refuse_foreign(out)
    with _scratch(out, 4 * elf.stat().st_size) as scratch:
        work, folder = scratch / "work", scratch / "folder"
        for path in (work / "root", work / "in", folder):
            path.mkdir(parents=True)
        record = _stage_root(work / "root", elf, board, model)
        manifest = _build(board, record, options, work, folder, watcher)
        (folder / MANIFEST_FILE).write_bytes(manifest_json(manifest))
        sums = {name: described(folder / name, name).sha256 for name in SUMMED_FILES}
        (folder / SUMS_FILE).write_text(sums_text(sums), encoding="ascii")
        _replace(folder, out, scratch)
    return manifest


def _build(
    board: Board, record: FirmwareRecord, options: ImageOptions, work: Path, folder: Path, watcher: Watcher
) -> Manifest:
    """Make everything but manifest and sums in `folder`."""
    boot_files = _stage_boot(work / "in", board, record, options.kernel)
    sources = tuple(described(work / "in" / source, name) for name, source in boot_files.items())
    watcher.stage("make the file system of a slot")
    run_genimage(work, "slot", slot_config(), (SLOT_IMAGE_FILE, record.bytes), watcher)
    slot = described(work / "out" / SLOT_IMAGE_FILE, SLOT_IMAGE_FILE)
    layout = _layout(board, options, slot, sources)
    used = SLOTS if options.fill_both else SLOTS[:1]
    ids = _ids(slot, sources, used, layout)
    (work / "out" / SLOT_IMAGE_FILE).rename(work / "in" / SLOT_IMAGE_FILE)
    watcher.stage("make the disk")
    expected = len(used) * slot.bytes + sum(source.bytes for source in sources)
    run_genimage(work, "disk", disk_config(layout, boot_files, used, ids), (IMAGE_FILE, expected), watcher)
    watcher.stage("hash what was made")
    image = work / "out" / IMAGE_FILE
    switch = _checked_switch(image, layout)
    ranges = hashed(image, _mapped(work / "out" / BOOT_IMAGE, layout, slot.bytes, used))
    (folder / MAP_FILE).write_text(block_map_text(layout.bytes, ranges), encoding="utf-8")
    image.rename(folder / IMAGE_FILE)
    (work / "in" / SLOT_IMAGE_FILE).rename(folder / SLOT_IMAGE_FILE)
    mapped = sum(span.bytes for span in ranges)
    disk = ids.uuid("disk")
    return Manifest(record, layout.bytes, mapped, disk, layout.regions, used, slot, switch, sources)


def _layout(board: Board, options: ImageOptions, slot: FileEntry, sources: tuple[FileEntry, ...]) -> Layout:
    return make_layout(
        boot_bytes([source.bytes for source in sources]),
        slot_bytes(slot.bytes, board.flash_budget_bytes, options.slot_mib),
        options.image_mib,
    )


def _ids(slot: FileEntry, sources: tuple[FileEntry, ...], used: tuple[str, ...], layout: Layout) -> Ids:
    """Derive the identifiers from everything that makes an image what it is."""
    content = json.dumps([slot.sha256, *(source.sha256 for source in sources), used, str(layout)])
    return Ids(hashlib.sha256(content.encode()).hexdigest())


def _stage_root(root: Path, elf: Path, board: Board, model: str) -> FirmwareRecord:
    """Lay out the content of a slot, with modes that do not depend on the user's umask, and say what it is."""
    firmware = root / "firmware"
    for folder in (root, firmware, *(root / name for name in _MOUNT_POINTS)):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    binary = firmware / "colibri_inference"
    shutil.copyfile(elf, binary)
    file = described(binary, binary.name)  # the copy: somebody may be building anew
    record = FirmwareRecord(
        board.name, compatible_boards(board.name), build_id_of(binary), model, file.bytes, file.sha256
    )
    (firmware / "start").write_bytes(_START)
    (firmware / MANIFEST_FILE).write_bytes(firmware_json(record))
    for name, mode in ((binary.name, 0o755), ("start", 0o755), (MANIFEST_FILE, 0o644)):
        (firmware / name).chmod(mode)
    return record


def _stage_boot(folder: Path, board: Board, record: FirmwareRecord, kernel: Kernel | None) -> dict[str, str]:
    """Put the files of the boot partition into `folder`; name in the partition -> name there, the switch first."""
    files = {slots.SLOT_FILE: "slot"}
    (folder / "slot").write_bytes(slots.slot_sector())
    if kernel is not None:
        console = board.console
        sector = slots.extlinux_sector(console.device, console.baud, kernel.cmdline, kernel.dtb is not None)
        (folder / "slot").write_bytes(sector)
        files = {slots.EXTLINUX_FILE: "slot"}
    (folder / MANIFEST_FILE).write_bytes(firmware_json(record))
    files[MANIFEST_FILE] = MANIFEST_FILE
    if kernel is not None:
        given = ((slots.KERNEL_FILE, kernel.kernel), (slots.INITRD_FILE, kernel.initrd), (slots.DTB_FILE, kernel.dtb))
        for name, source in given:
            if source is not None:
                _copy_input(source, folder / name)
                files[name] = name
    return files


def _copy_input(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise ImageError(f"cannot read {source}: {error.strerror}", hint="check the path") from error
    if not target.stat().st_size:
        raise ImageError(f"{source} is empty", hint="name another file")


def _checked_switch(image: Path, layout: Layout) -> SwitchRecord:
    """Find the switch in the finished image as flash will find it on a device, and hold the table against the plan."""
    with image.open("rb") as stream:

        def read(offset: int, size: int) -> bytes:
            return os.pread(stream.fileno(), size, offset)

        partitions = read_gpt(read, IMAGE_FILE)
        found = tuple(Region(part.name, part.offset, part.bytes) for part in partitions)
        if found != layout.regions:
            raise ImageError(f"genimage made other partitions than planned: {found}", hint="report genimage's version")
        switch = slots.find_switch(read, partitions, IMAGE_FILE)
    return SwitchRecord(switch.file, switch.offset, len(switch.sector))


def _mapped(boot_image: Path, layout: Layout, slot: int, used: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the spans that a device must hold. Zeros in them count: they are the rest of a FAT or a table.

    Of an empty slot it is the first block, so that no older file system in it is taken for a firmware.
    """
    spans = [(0, TABLE_BYTES), (layout.bytes - BACKUP_BYTES, BACKUP_BYTES)]
    spans.append((layout.region(BOOT).offset, _used_bytes(boot_image)))
    for name in SLOTS:
        spans.append((layout.region(slot_label(name)).offset, slot if name in used else BLOCK))
    return blocks_of(spans)


def _used_bytes(boot_image: Path) -> int:
    """Return how much of a FAT volume counts: its tables, and clusters up to the last that is not zero."""
    with boot_image.open("rb") as stream:
        end: int = FatVolume(lambda offset, size: os.pread(stream.fileno(), size, offset), BOOT_IMAGE).data_start
        stream.seek(end)
        at = end
        while data := stream.read(BLOCK):
            at += len(data)
            if any(data):
                end = at
    return end


@contextlib.contextmanager
def _scratch(out: Path, needed: int) -> Iterator[Path]:
    """Yield a folder beside `out` for the work, removed at the end whatever happens."""
    scratch = out.with_name(f".{out.name}.{secrets.token_hex(4)}.tmp")
    try:
        scratch.mkdir(parents=True)
        free = shutil.disk_usage(scratch).free
        if free < needed:
            raise ImageError(
                f"the disk is full: the image takes {needed} bytes in {out.parent} while it is made, {free} are free",
                hint="free some space, or choose a folder on another disk with -o",
            )
        yield scratch
    except OSError as error:
        raise ImageError(f"cannot write {out}: {error.strerror}", hint="another folder with -o") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _refuse_foreign(out: Path) -> None:
    """Raise ImageError unless `out` is absent, empty, or an image folder without anything of the user's in it."""
    if not out.exists():
        return
    hint = "choose another folder with -o, or remove it first"
    if not out.is_dir():
        raise ImageError(f"{out} exists and is no folder", hint=hint)
    names = {entry.name for entry in out.iterdir()}
    kind = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        kind = json.loads((out / MANIFEST_FILE).read_bytes()).get("format")
    foreign = sorted(names - {*SUMMED_FILES, SUMS_FILE})
    if names and (kind != IMAGE_KIND or foreign):
        raise ImageError(f"{out} exists and is no image folder (it holds {(foreign or sorted(names))[0]})", hint=hint)


def _replace(folder: Path, out: Path, scratch: Path) -> None:
    """Flush `folder` and put it in the place of `out`; an older one steps aside first, and comes back if that fails."""
    for path in (*folder.iterdir(), folder):
        _flush(path)
    old = scratch / "old"
    if out.exists():
        out.rename(old)
    try:
        folder.rename(out)
    except BaseException:
        if old.exists():
            old.rename(out)
        raise
    _flush(out.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
