"""Flashes an image folder: the whole image, or one slot and then the switch to it. Everything is read back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from colibri_build.errors import FlashError, ImageError, ReadBackError
from colibri_build.image.block_map import read_block_map
from colibri_build.image.device import Device, Machine, check_device, description, find_device
from colibri_build.image.gpt import Partition, ReadAt, find_partition, moved_backup, read_gpt
from colibri_build.image.layout import BLOCK, MIB, SECTOR, slot_label
from colibri_build.image.manifest import (
    IMAGE_FILE,
    MANIFEST_FILE,
    MAP_FILE,
    SLOT_IMAGE_FILE,
    FirmwareRecord,
    Manifest,
    check_sums,
    compatible_boards,
    parse_firmware,
    parse_manifest,
)
from colibri_build.image.medium import Medium, open_medium
from colibri_build.image.slots import Switch, boot_volume, find_switch, other_slot
from colibri_build.image.write import Piece, compare_pieces, literal, write_pieces

OTHER = "other"


@dataclass(frozen=True)
class FlashOptions:
    """What to flash and what the user takes upon himself."""

    slot: str | None = None  # "a", "b", "other" (the one that is not active); None: the whole image
    force: bool = False
    board: str | None = None  # of the device; None: what its boot partition says


class FlashEvents:
    """What a caller may want to see or decide. The methods do nothing; override what is needed."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Report bytes of the current step."""

    def confirm(self, question: str) -> None:
        """Raise an exception to end the command before the first byte of a disk is written."""

    def state(self, text: str) -> None:
        """Take note of the state that the device is in from now on."""


@dataclass(frozen=True)
class FlashResult:
    """What was written."""

    device: str
    slot: str | None  # None: the whole image
    active: str
    written_bytes: int
    firmware: str  # SHA-256 of the binary


@dataclass(frozen=True)
class _Job:
    """One call, with everything that does not depend on the open device."""

    folder: Path
    manifest: Manifest
    device: Device
    options: FlashOptions
    events: FlashEvents
    machine: Machine


def flash(
    folder: Path, device: Path, options: FlashOptions, events: FlashEvents, machine: Machine | None = None
) -> FlashResult:
    """Flash the image folder to a disk, or to a file that stands for one.

    Raises ImageError for a damaged image, FlashError for a device that must not be or cannot be written, ReadBackError
    if it does not hold what was written. The slot is switched only after the read-back.
    """
    machine = machine or Machine()
    check_sums(folder, (MANIFEST_FILE,), lambda *_: None)
    manifest = parse_manifest((folder / MANIFEST_FILE).read_bytes(), str(folder / MANIFEST_FILE))
    found = find_device(device, machine)
    events.state(f"{device} is untouched")
    _refuse_self(folder, found)
    check_device(found, machine, options.force)
    if options.board is not None:
        _require_board(manifest.firmware, options.board, compatible_boards(options.board), "--board")
    job = _Job(folder, manifest, found, options, events, machine)
    with open_medium(found) as medium:
        return _flash_image(job, medium) if options.slot is None else _flash_slot(job, medium, options.slot)


def _flash_image(job: _Job, medium: Medium) -> FlashResult:
    """Write every mapped block; the partition table last, so that a half-written disk is not taken for a whole one."""
    if job.device.bytes < job.manifest.image_bytes:
        raise _wrong_size(job.device, job.manifest.image_bytes, "the image")
    _check_replaced_board(job, medium)
    check_sums(job.folder, (IMAGE_FILE, MAP_FILE), job.events.progress)
    ranges = read_block_map(job.folder / MAP_FILE, job.manifest.image_bytes)
    path = job.device.path
    with _source(job.folder / IMAGE_FILE) as read:
        if len(ranges) < 2 or ranges[0].offset or ranges[-1].offset + ranges[-1].bytes != job.manifest.image_bytes:
            raise ImageError(f"{job.folder / MAP_FILE} leaves the partition table out", hint="make the image again")
        table, backup = _tables(read, ranges[0].bytes, ranges[-1].bytes, job)
        pieces = [_piece(read, span.offset, span.bytes, span.sha256) for span in ranges[1:-1]]
        pieces.append(backup)
        total = sum(piece.bytes for piece in (*pieces, table))
        _confirm(job, f"overwrite everything on {path}")
        with _stating(job, f"{path} is half written and has no partition table: flash it again"):
            medium.write(0, bytes(table.bytes))
            medium.flush()
            write_pieces(medium, pieces, _counter(job, "write", total))
            done = _counter(job, "read back", total)
            compare_pieces(medium, pieces, done)
            write_pieces(medium, [table], lambda _: None)
            compare_pieces(medium, [table], done)
    medium.reread_table()
    job.events.state(f"{path} is complete")
    active = find_switch(medium.read, read_gpt(medium.read, str(path)), str(path)).active
    return FlashResult(str(path), None, active, total, job.manifest.firmware.sha256)


def _flash_slot(job: _Job, medium: Medium, wanted: str) -> FlashResult:
    """Write a slot, its first block last, read it back, and only then make it the active one."""
    where = str(job.device.path)
    partitions = read_gpt(medium.read, where)
    switch = find_switch(medium.read, partitions, where)
    slot = other_slot(switch.active) if wanted == OTHER else wanted
    partition = find_partition(partitions, slot_label(slot), where)
    _check_slot(job, medium, partitions, partition, slot == switch.active)
    image = job.manifest.slot_image
    check_sums(job.folder, (SLOT_IMAGE_FILE,), job.events.progress)
    with _source(job.folder / SLOT_IMAGE_FILE) as read:
        piece = Piece(partition.offset, image.bytes, read, image.sha256)
        _confirm(job, f"overwrite slot {slot} of {where} (slot {switch.active} is active)")
        with _stating(job, _half_written(where, slot, switch.active)):
            _write_slot(job, medium, piece)
        unsure = f"slot {slot} of {where} is written and compared; whether it is active now or still {switch.active}"
        with _stating(job, f"{unsure}, the sector did not tell: flash it again"):
            _switch(medium, switch, slot)
    job.events.state(f"slot {slot} of {where} is written, compared and active")
    return FlashResult(where, slot, slot, image.bytes, job.manifest.firmware.sha256)


def _write_slot(job: _Job, medium: Medium, piece: Piece) -> None:
    """Write and compare a slot image. Until all else is compared, its first block is zero: no file system."""
    first = piece.read(0, min(BLOCK, piece.bytes))
    medium.write(piece.offset, bytes(len(first)))
    medium.flush()
    write_pieces(medium, [piece], _counter(job, "write", piece.bytes), skip=len(first))
    compare_pieces(medium, [piece], _counter(job, "read back", piece.bytes), skip=len(first))
    head = literal(piece.offset, first)
    write_pieces(medium, [head], lambda _: None)
    compare_pieces(medium, [head], lambda _: None)


def _switch(medium: Medium, switch: Switch, slot: str) -> None:
    sector = switch.switched(slot)
    medium.write_sector(switch.offset, sector)
    if medium.read_back(switch.offset, SECTOR) != sector:
        raise ReadBackError(
            f"{medium.device.path}: the sector at offset {switch.offset} that names the active slot differs",
            hint="another card or reader",
        )


def _check_slot(job: _Job, medium: Medium, table: tuple[Partition, ...], partition: Partition, is_active: bool) -> None:
    needed = partition.offset + partition.bytes
    if job.device.bytes < needed:
        raise _wrong_size(job.device, needed, f"its partition {partition.name}")
    image = job.manifest.slot_image
    if image.bytes > partition.bytes:
        raise FlashError(
            f"the slot image has {image.bytes} bytes, {partition.name} of {job.device.path} {partition.bytes}",
            hint=f"an image with --slot-size {-(-image.bytes // MIB)}, flashed whole (without --slot)",
        )
    _check_board(job, medium, table)
    if is_active and not job.options.force:
        raise FlashError(
            f"{partition.name} of {job.device.path} is the active slot: a cut would leave the board without firmware",
            hint="--slot other, or --force",
        )


def _check_board(job: _Job, medium: Medium, table: tuple[Partition, ...]) -> None:
    """Hold the image's board against the device's own manifest. Raises FlashError, unless the user forces it."""
    if job.options.force:
        return
    where = f"{job.device.path}, partition boot"
    volume = boot_volume(medium.read, table, str(job.device.path))
    file = volume.find(MANIFEST_FILE)
    if file is None:
        raise FlashError(f"{where}: no {MANIFEST_FILE}: for which board?", hint="--force, or flash the whole image")
    try:
        record = parse_firmware(volume.content(file), f"{where}: {MANIFEST_FILE}")
    except ImageError as error:
        raise FlashError(error.what, hint="--force, or flash the whole image (without --slot)") from error
    _require_board(job.manifest.firmware, record.board, record.compatible, where)


def _check_replaced_board(job: _Job, medium: Medium) -> None:
    """The same for a whole image, where a disk may as well be empty or of somebody else's."""
    try:
        _check_board(job, medium, read_gpt(medium.read, str(job.device.path)))
    except WrongBoardError:
        raise
    except FlashError:
        return


class WrongBoardError(FlashError):
    """An image for another board than the device's."""


def _require_board(firmware: FirmwareRecord, board: str, compatible: tuple[str, ...], says_who: str) -> None:
    """Raise WrongBoardError unless firmware for its board runs on `board`, which also runs that of `compatible`."""
    if firmware.board not in compatible:
        raise WrongBoardError(
            f"the image is for board {firmware.board}, the device is a {board} ({says_who})",
            hint=f"an image that was built with -b {board}",
        )


def _wrong_size(device: Device, needed: int, what: str) -> FlashError:
    return FlashError(
        f"disk of the wrong size: {device.path} has {device.bytes} bytes ({device.bytes / MIB:.1f} MiB), "
        f"{what} needs {needed} ({needed / MIB:.1f} MiB)",
        hint="a larger disk, or an image with a smaller --slot-size or --image-size",
    )


def _refuse_self(folder: Path, device: Device) -> None:
    for name in (IMAGE_FILE, MAP_FILE, SLOT_IMAGE_FILE, MANIFEST_FILE):
        with suppress(OSError):
            if device.path.samefile(folder / name):
                raise FlashError(f"{device.path} is a file of the image itself", hint="a disk, or a copy of the file")


def _confirm(job: _Job, what: str) -> None:
    if job.device.is_disk:
        job.events.confirm(f"{what} ({description(job.device, job.machine)})?")


def _half_written(where: str, slot: str, active: str) -> str:
    if slot == active:
        return f"slot {slot} of {where} is half written and active, the board cannot start from it: flash it again"
    return f"slot {slot} of {where} is half written and not active; slot {active} is active and untouched"


def _tables(read: ReadAt, head: int, tail: int, job: _Job) -> tuple[Piece, Piece]:
    """Return the image's two partition tables for this device: the second copy goes to its very end."""
    size = job.manifest.image_bytes
    first, second = moved_backup(read(0, head), read(size - tail, tail), job.device.bytes)
    return literal(0, first), literal(job.device.bytes // SECTOR * SECTOR - tail, second)


def _piece(read: ReadAt, offset: int, size: int, sha256: str) -> Piece:
    return Piece(offset, size, lambda at, count: read(offset + at, count), sha256)


@contextmanager
def _source(path: Path) -> Iterator[ReadAt]:
    with path.open("rb") as stream:
        yield lambda offset, size: os.pread(stream.fileno(), size, offset)


@contextmanager
def _stating(job: _Job, state: str) -> Iterator[None]:
    """Say what state the device is in while this runs, and in the message of an error that ends it."""
    job.events.state(state)
    try:
        yield
    except FlashError as error:
        raise type(error)(f"{error.what}; {state}", hint=error.hint) from error


def _counter(job: _Job, what: str, total: int) -> Callable[[int], None]:
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        job.events.progress(what, done, total)

    return count
