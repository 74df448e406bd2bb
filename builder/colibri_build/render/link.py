"""What the weight section asks of the linker."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colibri_build.artifacts import FileRecord, ModelFolder
from colibri_build.layout import symbol_of
from colibri_build.render.banner import banner
from colibri_build.render.environment import render
from colibri_build.target.toolchain import Toolchain

LAYOUT_TEMPLATE = "layout.ld.j2"
LAYOUT_SCRIPT = "generated/layout.ld"
# Above this, weights between code and data would push data out of the reach of 32-bit relocations.
FAR_WEIGHTS_BYTES = 3 << 29
OWN_BUILD_ID_BYTES = 1 << 28
FAR_WEIGHTS_ADDRESS = "0x100000000"  # in reach of kernels with 39-bit addresses


@dataclass(frozen=True)
class LayoutContext:
    """Names of the template's values. `far_address` is empty where the weights stay beside the code."""

    banner: str
    far_address: str


def needs_layout_script(toolchain: Toolchain) -> bool:
    """Whether the tree holds LAYOUT_SCRIPT. zig's linker takes no option that strips debug sections or places one."""
    return toolchain.family == "zig"


def layout_source(folder: ModelFolder, records: Sequence[FileRecord]) -> str:
    """Text of the linker script."""
    return render(LAYOUT_TEMPLATE, LayoutContext(banner(LAYOUT_TEMPLATE, folder), _far_address(records)))


def link_flags(records: Sequence[FileRecord], toolchain: Toolchain) -> tuple[str, ...]:
    """Flags beside the toolchain's.

    `-u` keeps the `_len` symbols, which the runtime does not use: they share one section, so one of them is enough.
    """
    keep_lengths = f"-Wl,-u,{symbol_of(records[0].name)}_len"
    if needs_layout_script(toolchain):
        return (keep_lengths, f"-Wl,-T,{LAYOUT_SCRIPT}")
    # GNU ld would put constants, and so the weights, into the executable segment of the code.
    flags = (keep_lengths, "-Wl,-z,separate-code")
    far = _far_address(records)
    return (*flags, f"-Wl,--section-start=.weights={far}") if far else flags


def build_id_flags(records: Sequence[FileRecord], texts: Mapping[str, str]) -> tuple[str, ...]:
    """A build id from what the binary is made of, for large models: to hash the binary itself, GNU ld reads all of it.

    `texts`: the tree's sources by name. For others the toolchain's flag stands.
    """
    if sum(record.bytes for record in records) <= OWN_BUILD_ID_BYTES:
        return ()
    digest = hashlib.sha256()
    for name, content in [*((record.name, record.sha256) for record in records), *sorted(texts.items())]:
        digest.update(f"{name}\0{content}\0".encode())
    return (f"-Wl,--build-id=0x{digest.hexdigest()[:40]}",)


def _far_address(records: Sequence[FileRecord]) -> str:
    return FAR_WEIGHTS_ADDRESS if sum(record.bytes for record in records) > FAR_WEIGHTS_BYTES else ""
