"""What an image holds: the record inside a slot and the boot partition, and the one beside the image. And SHA256SUMS."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from colibri_build.errors import ImageError
from colibri_build.files import sha256_of, unique_keys
from colibri_build.image.layout import Region

VERSION = 1
FIRMWARE_KIND, IMAGE_KIND = "colibri-firmware", "colibri-image"
IMAGE_FILE, MAP_FILE, SLOT_IMAGE_FILE = "colibri.img", "colibri.img.bmap", "firmware.squashfs"
MANIFEST_FILE, SUMS_FILE = "manifest.json", "SHA256SUMS"
SUMMED_FILES = (IMAGE_FILE, MAP_FILE, SLOT_IMAGE_FILE, MANIFEST_FILE)
_SUM_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
_CHUNK = 1 << 20
_Record = TypeVar("_Record")
Progress = Callable[[str, int, int], None]  # what, bytes done, bytes in all


@dataclass(frozen=True)
class FirmwareRecord:
    """The firmware of an image."""

    board: str
    compatible: tuple[str, ...]  # the board, then the more general ones whose firmware it runs
    build_id: str  # of the ELF file, hexadecimal
    model: str  # digest of the model folder
    bytes: int
    sha256: str


@dataclass(frozen=True)
class FileEntry:
    """A file of an image: the one for an update of one slot, or one of the boot partition."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class SwitchRecord:
    """The sector that names the active slot."""

    file: str  # in the boot partition
    offset: int  # from the start of the image
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """Everything about an image folder."""

    firmware: FirmwareRecord
    image_bytes: int
    mapped_bytes: int  # what flashing writes
    disk_uuid: str
    partitions: tuple[Region, ...]
    used: tuple[str, ...]  # slots that hold the firmware
    slot_image: FileEntry
    switch: SwitchRecord
    boot_files: tuple[FileEntry, ...]  # every file of the boot partition


def compatible_boards(board: str) -> tuple[str, ...]:
    """Return the board and what it is a variant of: cortex-a53/imx8mm -> (cortex-a53/imx8mm, cortex-a53)."""
    parts = board.split("/")
    return tuple("/".join(parts[:count]) for count in range(len(parts), 0, -1))


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def firmware_json(record: FirmwareRecord) -> bytes:
    """Return the manifest that a slot and the boot partition carry."""
    return _json({"format": FIRMWARE_KIND, "version": VERSION, "firmware": asdict(record)})


def manifest_json(manifest: Manifest) -> bytes:
    """Return the manifest that lies beside the image."""
    return _json({"format": IMAGE_KIND, "version": VERSION, **asdict(manifest)})


def parse_firmware(data: bytes, where: str) -> FirmwareRecord:
    """Read what `firmware_json` wrote. Raises ImageError."""
    return _parsed(data, FIRMWARE_KIND, where, lambda record: _firmware(record["firmware"]))


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Read what `manifest_json` wrote. Raises ImageError."""
    return _parsed(data, IMAGE_KIND, where, _manifest)


def _parsed(data: bytes, kind: str, where: str, build: Callable[[dict[str, Any]], _Record]) -> _Record:
    try:
        record = json.loads(data, object_pairs_hook=unique_keys)
        if not isinstance(record, dict) or record.get("format") != kind:
            raise ImageError(f"{where} is no manifest of {kind}", hint="name a folder that colibri-build image made")
        if record["version"] != VERSION:
            raise ImageError(
                f"{where} has version {record['version']}, this program knows {VERSION}", hint="make the image again"
            )
        return build(record)
    except (ValueError, KeyError, TypeError) as error:
        raise ImageError(f"{where} is damaged", hint="make the image again") from error


def _firmware(record: dict[str, Any]) -> FirmwareRecord:
    found = FirmwareRecord(**{**record, "compatible": tuple(record["compatible"])})
    if not all(isinstance(name, str) for name in (found.board, *found.compatible)):
        raise ValueError("board")
    return found


def _manifest(record: dict[str, Any]) -> Manifest:
    fields = {name: value for name, value in record.items() if name not in ("format", "version")}
    fields["firmware"] = _firmware(fields["firmware"])
    fields["partitions"] = tuple(Region(**region) for region in fields["partitions"])
    fields["used"] = tuple(fields["used"])
    fields["slot_image"] = FileEntry(**fields["slot_image"])
    fields["switch"] = SwitchRecord(**fields["switch"])
    fields["boot_files"] = tuple(FileEntry(**file) for file in fields["boot_files"])
    manifest = Manifest(**fields)
    sizes = (manifest.image_bytes, manifest.mapped_bytes, manifest.slot_image.bytes, manifest.switch.offset)
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("sizes")
    return manifest


def described(path: Path, name: str) -> FileEntry:
    """Return size and hash of a file under the name that it has in an image."""
    return FileEntry(name, path.stat().st_size, sha256_of(path))


def sha256_with_progress(path: Path, progress: Progress) -> str:
    """Return a file's SHA-256; `progress` is called about once a MiB."""
    total, done, digest = path.stat().st_size, 0, hashlib.sha256()
    with path.open("rb") as stream:
        while data := stream.read(_CHUNK):
            digest.update(data)
            done += len(data)
            progress(f"check {path.name}", done, total)
    return digest.hexdigest()


def sums_text(hashes: dict[str, str]) -> str:
    """Return SHA256SUMS as `sha256sum -c` reads it."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))


def check_sums(folder: Path, names: tuple[str, ...], progress: Progress) -> None:
    """Hold files of an image folder against its SHA256SUMS. Raises ImageError for the first that differs."""
    again = "copy the folder again, or make the image again"
    try:
        lines = (folder / SUMS_FILE).read_text(encoding="ascii").splitlines()
        wanted = {name: digest for digest, name in (m.groups() for m in map(_SUM_LINE.fullmatch, lines) if m)}
    except (OSError, ValueError) as error:
        inner = folder / "image"  # of a build folder
        hint = str(inner) if (inner / SUMS_FILE).is_file() else again
        raise ImageError(f"{folder / SUMS_FILE} cannot be read: no folder of an image", hint=hint) from error
    for name in names:
        if name not in wanted:
            raise ImageError(f"{folder / SUMS_FILE} does not name {name}", hint=again)
        try:
            found = sha256_with_progress(folder / name, progress)
        except OSError as error:
            raise ImageError(f"cannot read {folder / name}: {error.strerror}", hint=again) from error
        if found != wanted[name]:
            size = (folder / name).stat().st_size
            raise ImageError(
                f"{folder / name} ({size} bytes) is damaged or cut off: SHA-256 {found[:16]}..., not {wanted[name][:16]}...",
                hint=again,
            )
