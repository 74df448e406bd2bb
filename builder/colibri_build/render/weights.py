"""weights.S or weights.c, or several of them: the model folder's binary files inside the firmware.

Both name the same symbols in the same section and give the same bytes there. The assembler copies files at disk speed;
a C array costs the compiler about 150 bytes of memory for each byte, so it is for small models only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from colibri_build.artifacts import FileRecord, ModelFolder
from colibri_build.errors import RenderError
from colibri_build.layout import file_layouts, symbol_of
from colibri_build.render.banner import banner
from colibri_build.render.environment import render

TEMPLATES = {"incbin": "weights.S.j2", "xxd": "weights.c.j2"}
MAX_XXD_BYTES = 32 << 20  # gcc needs about 5 GB of memory for this much
SHARE_BYTES = 256 << 20  # of weights in one source file
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
class FileLength:
    """Value of a `_len` symbol."""

    symbol: str
    bytes: int


@dataclass(frozen=True)
class WeightsContext:
    """Names of the template's values."""

    banner: str
    files: tuple[WeightFile, ...]
    lengths: tuple[FileLength, ...]  # of all embedded files, in one of the sources; () in the others


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


def weights_sources(folder: ModelFolder, embed: str) -> dict[str, str]:
    """File name -> text, in the order in which they must be linked. `embed`: incbin or xxd.

    One file unless the weights are many: assembler and linker hold one whole file's worth of them in memory. Raises
    RenderError for too much data for C arrays.
    """
    records = weight_records(folder)
    total = sum(record.bytes for record in records)
    if embed == "xxd" and total > MAX_XXD_BYTES:
        raise RenderError(
            f"--embed xxd: {total} bytes of weights are too many for C arrays (at most {MAX_XXD_BYTES})",
            hint="--embed incbin, the default",
        )
    name = TEMPLATES[embed].removesuffix(".j2")
    shares = _shares(records)
    names = [name] if len(shares) == 1 else [name.replace(".", f"_{i:03}.") for i in range(len(shares))]
    lengths = tuple(FileLength(symbol_of(record.name), record.bytes) for record in records)
    return {
        name: _text(folder, share, lengths if i == 0 else (), embed)
        for i, (name, share) in enumerate(zip(names, shares, strict=True))
    }


def _shares(records: tuple[FileRecord, ...]) -> list[list[FileRecord]]:
    """Runs of files that stay below `SHARE_BYTES` together; a file that is larger is alone."""
    shares: list[list[FileRecord]] = [[]]
    for record in records:
        if shares[-1] and sum(other.bytes for other in shares[-1]) + record.bytes > SHARE_BYTES:
            shares.append([])
        shares[-1].append(record)
    return shares


def _text(folder: ModelFolder, records: Iterable[FileRecord], lengths: tuple[FileLength, ...], embed: str) -> str:
    files = tuple(_weight_file(folder.path, record, embed) for record in records)
    return render(TEMPLATES[embed], WeightsContext(banner(TEMPLATES[embed], folder), files, lengths))


def _weight_file(path: Path, record: FileRecord, embed: str) -> WeightFile:
    lines = tuple(_lines((path / record.name).read_bytes())) if embed == "xxd" else ()
    return WeightFile(record.name, symbol_of(record.name), record.bytes, record.sha256, lines)


def _lines(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), _BYTES_PER_LINE):
        yield "".join(_BYTE_TEXT[byte] for byte in data[start : start + _BYTES_PER_LINE])
