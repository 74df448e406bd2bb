"""Compiles kernel_harness.c with the kernels of one ISA, and runs it (under QEMU for the ARM boards)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime_c"
STRICT = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O3", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow")
AARCH64 = ("aarch64-linux-gnu-gcc", "-march=armv8-a+crc", "-mtune=cortex-a53", "-static")
PRODUCT_PARTS = ("quantize_activation", "matvec_w4", "matvec_w8", "matmul_w4", "matmul_w8")
VECTOR_PARTS = ("vector", "matvec_float", "attention")
HARNESS = Path(__file__).with_name("kernel_harness.c")


@dataclass(frozen=True)
class Platform:
    """A compiler with its flags, the kernel set, and how its binaries are started."""

    isa: str
    compiler: tuple[str, ...]
    runner: tuple[str, ...] = ()
    contract: str = "off"  # -ffp-contract
    header: str = ""  # intrinsics, precompiled: reading them costs more than compiling a kernel

    def __str__(self) -> str:
        runner = "-" + self.runner[-1] if self.runner else ""
        return f"{self.isa}-{self.compiler[0]}{runner}"


QEMU_A53 = ("qemu-aarch64-static", "-cpu", "cortex-a53")
QEMU_A72 = ("qemu-aarch64-static", "-cpu", "cortex-a72")
GCC_AVX2 = Platform("avx2", ("gcc", "-march=x86-64-v3", "-fno-tree-reassoc", "-fno-tree-ter"), header="immintrin.h")
# The first four run every group size and activation class, the others (second compilers) two of them.
MAIN_PLATFORMS = (
    GCC_AVX2,
    Platform("portable", ("gcc",)),
    Platform("neon", AARCH64, QEMU_A53, header="arm_neon.h"),
    Platform("neon", AARCH64, QEMU_A72, header="arm_neon.h"),
)
OTHER_PLATFORMS = (
    Platform("avx2", ("clang", "-march=x86-64-v3")),
    Platform("portable", ("clang",)),
    Platform("portable", AARCH64, QEMU_A53),
)
PLATFORMS = MAIN_PLATFORMS + OTHER_PLATFORMS


class Builder:
    """Object files and binaries in one folder; each is made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def harness(self, platform: Platform, group_size: int, bits: int) -> Path:
        """The harness of a platform for one group size and activation class."""
        tag = f"{platform.isa}-{platform.compiler[0]}-{platform.contract}"
        binary = self.folder / f"harness-{tag}-{group_size}-{bits}"
        if not binary.exists():
            sources = [_kernel_source(platform, part) for part in PRODUCT_PARTS]
            shared = [self._shared_object(platform, tag, part) for part in (*VECTOR_PARTS, "harness")]
            generated = self._generated(platform.isa, group_size, bits)
            self._compile(platform, tag, generated, [*sources, *shared, "-o", binary])
        return binary

    def _shared_object(self, platform: Platform, tag: str, part: str) -> Path:
        """An object that is the same for every group size and activation class."""
        target = self.folder / f"{part}-{tag}.o"
        if not target.exists():
            source = _kernel_source(platform, part)
            if part == "harness":
                source, platform = HARNESS, replace(platform, header="")
            self._compile(platform, tag, self._generated(platform.isa, 128, 16), [source, "-c", "-o", target])
        return target

    def _compile(self, platform: Platform, tag: str, generated: Path, arguments: list[str | Path]) -> None:
        includes = [f"-I{path}" for path in (RUNTIME, RUNTIME / "include", generated)]
        if platform.header:
            includes += ["-include", str(self._precompiled(platform, tag)), "-Winvalid-pch"]
        _run_compiler([*_command(platform), *includes, *map(str, arguments)])

    def _precompiled(self, platform: Platform, tag: str) -> Path:
        header = self.folder / f"{tag}.h"
        if not header.exists():
            header.write_text(f"#include <{platform.header}>\n")
            _run_compiler([*_command(platform), "-x", "c-header", str(header), "-o", f"{header}.gch"])
        return header

    def _generated(self, isa: str, group_size: int, bits: int) -> Path:
        """A folder with model_config.h and board_config.h as the generator writes them for the kernels."""
        folder = self.folder / f"generated-{isa}-{group_size}-{bits}"
        folder.mkdir(exist_ok=True)
        constants = {"GROUP_SIZE": group_size, "ACTIVATION_BITS": bits, "USES_W4": 1, "USES_W8": 1, "USES_F16": 1}
        lines = [f"#define MODEL_{name} {value}\n" for name, value in constants.items()]
        (folder / "model_config.h").write_text("".join(lines))
        (folder / "board_config.h").write_text(f"#define BOARD_KERNELS_{isa.upper()} 1\n")
        return folder

    def run(self, platform: Platform, binary: Path, cases: Path) -> subprocess.CompletedProcess[str]:
        """Runs a harness; its results are beside the binary, with the suffix .results."""
        command = [*platform.runner, str(binary), str(cases), str(binary.with_suffix(".results"))]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def _kernel_source(platform: Platform, part: str) -> Path:
    return RUNTIME / "kernels" / f"{part}_{platform.isa}.c"


def _command(platform: Platform) -> list[str]:
    return [*platform.compiler, *STRICT, "-Werror", f"-ffp-contract={platform.contract}", "-fno-math-errno"]


def _run_compiler(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
