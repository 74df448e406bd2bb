"""weights.S or weights.c: the model folder's binary files inside the firmware.

Both name the same symbols in the same section and give the same bytes there. The assembler copies files at disk speed;
a C array costs the compiler about 150 bytes of memory for each byte, so it is for small models only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from colibri_build.artifacts import FileRecord, ModelFolder
from colibri_build.errors import RenderError
from colibri_build.layout import file_layouts, symbol_of
from colibri_build.render.banner import banner
from colibri_build.render.environment import render

TEMPLATES = {"incbin": "weights.S.j2", "xxd": "weights.c.j2"}
MAX_XXD_BYTES = 32 << 20  # gcc needs about 5 GB of memory for this much
MAX_FILE_BYTES = (1 << 32) - 1  # `_len` symbols are unsigned int
_BYTES_PER_LINE = 32
_BYTE_TEXT = tuple(f"{byte}," for byte in range(256))


@dataclass(frozen=True)
class WeightFile:
    """One embedded file. `lines`: its bytes as C initialisers (empty for incbin)."""

    name: str
    symbol: str
    bytes: int
    sha256: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class WeightsContext:
    """Names of the template's values."""

    banner: str
    files: tuple[WeightFile, ...]


def weight_records(folder: ModelFolder) -> tuple[FileRecord, ...]:
    """The embedded files in the order of the section. Raises RenderError for one that a `_len` symbol cannot count."""
    layouts = file_layouts(folder.config, folder.formats, folder.group_size)
    records = tuple(folder.files[layout.name] for layout in layouts)
    for record in records:
        if record.bytes > MAX_FILE_BYTES:
            raise RenderError(
                f"{record.name} has {record.bytes} bytes, one embedded file holds {MAX_FILE_BYTES}",
                hint="quantize the dense tensors to fewer bits",
            )
    return records


def weights_source(folder: ModelFolder, embed: str) -> str:
    """Text of weights.S (`embed` = incbin) or weights.c (xxd). Raises RenderError for too much data for C arrays."""
    records = weight_records(folder)
    total = sum(record.bytes for record in records)
    if embed == "xxd" and total > MAX_XXD_BYTES:
        raise RenderError(
            f"--embed xxd: {total} bytes of weights are too many for C arrays (at most {MAX_XXD_BYTES})",
            hint="--embed incbin, the default",
        )
    files = tuple(_weight_file(folder.path, record, embed) for record in records)
    return render(TEMPLATES[embed], WeightsContext(banner(TEMPLATES[embed], folder), files))


def _weight_file(path: Path, record: FileRecord, embed: str) -> WeightFile:
    lines = tuple(_lines((path / record.name).read_bytes())) if embed == "xxd" else ()
    return WeightFile(record.name, symbol_of(record.name), record.bytes, record.sha256, lines)


def _lines(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), _BYTES_PER_LINE):
        yield "".join(_BYTE_TEXT[byte] for byte in data[start : start + _BYTES_PER_LINE])
