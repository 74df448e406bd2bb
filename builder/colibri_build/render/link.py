"""What the weight section asks of the linker."""

from __future__ import annotations

from dataclasses import dataclass

from colibri_build.artifacts import FileRecord, ModelFolder
from colibri_build.errors import RenderError
from colibri_build.render.banner import banner
from colibri_build.render.c_text import symbol_of
from colibri_build.render.environment import render
from colibri_build.target.toolchain import Toolchain

NO_DEBUG_TEMPLATE = "no_debug.ld.j2"
NO_DEBUG_SCRIPT = "generated/no_debug.ld"
# Above this, weights between code and data would push data out of the reach of 32-bit relocations.
FAR_WEIGHTS_BYTES = 3 << 29
FAR_WEIGHTS_ADDRESS = 0x1_0000_0000  # in reach of kernels with 39-bit addresses


@dataclass(frozen=True)
class NoDebugContext:
    """Names of the template's values."""

    banner: str


def no_debug_source(folder: ModelFolder) -> str:
    """Text of the linker script that leaves debug sections out."""
    return render(NO_DEBUG_TEMPLATE, NoDebugContext(banner(NO_DEBUG_TEMPLATE, folder)))


def link_flags(records: tuple[FileRecord, ...], toolchain: Toolchain) -> tuple[str, ...]:
    """Flags beside the toolchain's. Raises RenderError for weights that the linker cannot place.

    `-u` keeps the `_len` symbols, which the runtime does not use: they share one section, so one of them is enough.
    """
    keep_lengths = f"-Wl,-u,{symbol_of(records[0].name)}_len"
    weight_bytes = sum(record.bytes for record in records)
    if toolchain.family == "zig":
        if weight_bytes > FAR_WEIGHTS_BYTES:
            raise RenderError(
                f"{weight_bytes} bytes of weights: zig's linker cannot place more than {FAR_WEIGHTS_BYTES}",
                hint="--toolchain debian-gcc or clang",
            )
        return (keep_lengths, f"-Wl,-T,{NO_DEBUG_SCRIPT}")
    # GNU ld would put constants, and so the weights, into the executable segment of the code.
    flags = (keep_lengths, "-Wl,-z,separate-code")
    if weight_bytes > FAR_WEIGHTS_BYTES:
        return (*flags, f"-Wl,--section-start=.weights=0x{FAR_WEIGHTS_ADDRESS:x}")
    return flags
