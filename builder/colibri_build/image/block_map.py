"""Block maps (bmap 2.0, as Debian's bmap-tools read them): which blocks of an image have to be written, and their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from colibri_build.errors import ImageError
from colibri_build.image.layout import BLOCK

_CHUNK = 1 << 20
_NO_HASH = "0" * 64


@dataclass(frozen=True)
class Range:
    """A run of bytes of the image, in whole blocks; SHA-256 of them as hexadecimal digits."""

    offset: int
    bytes: int
    sha256: str


def blocks_of(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (offset, bytes) spans widened to whole blocks, in order, touching ones joined."""
    found: list[tuple[int, int]] = []
    for offset, size in sorted(spans):
        start, end = offset // BLOCK * BLOCK, -(-(offset + size) // BLOCK) * BLOCK
        if found and start <= sum(found[-1]):
            found[-1] = (found[-1][0], max(end, sum(found[-1])) - found[-1][0])
        else:
            found.append((start, end - start))
    return found


def hashed(image: Path, spans: Iterable[tuple[int, int]]) -> list[Range]:
    """Return the spans of an image with their hashes."""
    with image.open("rb") as stream:
        ranges = []
        for offset, size in spans:
            stream.seek(offset)
            digest, left = hashlib.sha256(), size
            while left and (data := stream.read(min(left, _CHUNK))):
                digest.update(data)
                left -= len(data)
            ranges.append(Range(offset, size, digest.hexdigest()))
    return ranges


def block_map_text(image_bytes: int, ranges: Iterable[Range]) -> str:
    """Return the XML of a block map."""
    ranges = list(ranges)
    mapped = sum(span.bytes for span in ranges) // BLOCK
    lines = [
        '<?xml version="1.0" ?>',
        '<bmap version="2.0">',
        f"    <ImageSize> {image_bytes} </ImageSize>",
        f"    <BlockSize> {BLOCK} </BlockSize>",
        f"    <BlocksCount> {-(-image_bytes // BLOCK)} </BlocksCount>",
        f"    <MappedBlocksCount> {mapped} </MappedBlocksCount>",
        "    <ChecksumType> sha256 </ChecksumType>",
        f"    <BmapFileChecksum> {_NO_HASH} </BmapFileChecksum>",
        "    <BlockMap>",
    ]
    for span in ranges:
        first, last = span.offset // BLOCK, (span.offset + span.bytes) // BLOCK - 1
        blocks = str(first) if first == last else f"{first}-{last}"
        lines.append(f'        <Range chksum="{span.sha256}"> {blocks} </Range>')
    text = "\n".join([*lines, "    </BlockMap>", "</bmap>", ""])
    return text.replace(_NO_HASH, hashlib.sha256(text.encode()).hexdigest(), 1)


def read_block_map(path: Path, image_bytes: int) -> list[Range]:
    """Return the ranges of a block map. Raises ImageError if it is damaged or belongs to an image of another size."""
    try:
        text = path.read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        values = {child.tag: (child.text or "").strip() for child in root}
        wanted = hashlib.sha256(text.replace(values["BmapFileChecksum"], _NO_HASH, 1).encode()).hexdigest()
        if values["BmapFileChecksum"] != wanted or int(values["BlockSize"]) != BLOCK:
            raise ValueError("checksum or block size")
        if int(values["ImageSize"]) != image_bytes:
            raise ValueError(f"it is for {values['ImageSize']} bytes, the image has {image_bytes}")
        return [_range(element) for element in root.iterfind("BlockMap/Range")]
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        raise ImageError(f"the block map {path} is damaged: {error}", hint="make the image again") from error


def _range(element: ElementTree.Element) -> Range:
    first, _, last = (element.text or "").strip().partition("-")
    start, end = int(first), int(last or first) + 1
    return Range(start * BLOCK, (end - start) * BLOCK, element.attrib["chksum"])
