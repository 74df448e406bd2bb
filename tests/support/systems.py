"""Builds, flashed disks and boots for the tests of whole machines: made once, and one machine at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from colibri_build import pipeline
from colibri_build.artifacts import Format, Generation, Kind
from colibri_build.image.first_stage import compile_first_stage
from colibri_build.image.flash import FlashEvents, FlashOptions
from colibri_build.image.initramfs import write_initramfs
from colibri_build.image.make import ImageOptions, Kernel
from colibri_build.pack.writer import write_model_folder
from colibri_build.pipeline import BuildRequest, BuildResult
from colibri_build.run.qemu_system import BootLoader, DirectBoot, Hardware, QemuSystem
from colibri_build.target.kernel import KernelFiles, find_kernel
from colibri_build.target.toolchain import Toolchain
from support.builds import build_tiny
from support.tiny_quantized import AWKWARD_CONFIG, DEFAULT_FORMATS, random_quantized

MIB = 1024 * 1024
DISK_BYTES = 128 * MIB  # a power of two, as SD cards have it
GOLDEN_TOKENS = 12
ARM_BOARDS = ("cortex-a53", "tda4vm")
STDIN = ("--stdin", f"--max-tokens={GOLDEN_TOKENS}")
BOOT_TIMEOUT_S = 180.0  # 2 to 4 s where nothing else runs; tests may share two cores with much else


@dataclass(frozen=True)
class Flashed:
    """A firmware on a disk. `golden`: the reference's answers."""

    result: BuildResult
    disk: Path
    image: Path  # the folder that was flashed
    initrd: Path
    kernel: KernelFiles

    @property
    def golden(self) -> tuple[Generation, ...]:
        return self.result.golden

    def direct(self, *arguments: str, slot: str = "a", words: tuple[str, ...] = ()) -> DirectBoot:
        return DirectBoot(self.kernel.image, self.initrd, slot, arguments, words)


class Bench:
    """The folder that all test processes share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, Flashed] = {}

    def tiny(self, board: str) -> Flashed:
        """The tiny model, its image with a kernel, flashed to a disk of its own."""
        return self._once(board, lambda: build_tiny(self.folder, board, out=self.folder / board))

    def large(self, board: str) -> Flashed:
        """A firmware of 100 MiB of random experts, six a token."""
        return self._once(f"large-{board}", lambda: self._build_large(board, self.folder / f"large-{board}"))

    @contextlib.contextmanager
    def boot(
        self, flashed: Flashed, boot: DirectBoot | BootLoader, medium: Path | None = None, **hardware: Any
    ) -> Iterator[QemuSystem]:
        """The only machine on this host: two at a time would take each other's CPUs."""
        with (
            self.machine(),
            QemuSystem(flashed.result.board, medium or flashed.disk, boot, Hardware(**hardware)) as system,
        ):
            yield system

    def machine(self) -> contextlib.AbstractContextManager[None]:
        """The right to run a machine on this host."""
        return self._locked("machine")

    def initrd(self, toolchain: Toolchain, kernel: KernelFiles, folder: Path) -> Path:
        return write_initramfs(compile_first_stage(toolchain, folder / "init"), kernel.modules, folder / "initrd")

    def _once(self, name: str, build: Any) -> Flashed:
        with self._locked("build"):
            if name not in self._made:
                self._made[name] = self._flash(build(), self.folder / f"disk-{name}")
            return self._made[name]

    def _flash(self, result: BuildResult, folder: Path) -> Flashed:
        kernel = find_kernel(result.board.arch)
        folder.mkdir(exist_ok=True)
        initrd = self.initrd(result.toolchain, kernel, folder)
        disk, image = folder / "disk", folder / "image"
        if not disk.exists():  # else another process has made it
            # The machine's console, where it is not the board's, is the last one named and so the firmware's.
            words = f"panic=-1 console=ttyAMA0 -- --stdin --max-tokens {GOLDEN_TOKENS}"
            options = ImageOptions(kernel=Kernel(kernel.image, initrd, cmdline=words))
            pipeline.image(result.out, image, options)
            size = max(DISK_BYTES, 1 << (image / "colibri.img").stat().st_size.bit_length())
            blank = folder / "blank"
            with blank.open("wb") as stream:
                stream.truncate(size)
            pipeline.flash(image, blank, FlashOptions(), FlashEvents())
            blank.rename(disk)
        return Flashed(result, disk, image, initrd, kernel)

    def _build_large(self, board: str, out: Path) -> BuildResult:
        config = replace(
            AWKWARD_CONFIG, n_layers=1, dim=256, hidden_dim=2048, n_heads=4, n_kv_heads=2, head_dim=64,
            n_experts=62, top_k=6,
        )  # fmt: skip
        model = self.folder / "large-model"
        if not model.exists():
            write_model_folder(random_quantized(config, formats={**DEFAULT_FORMATS, Kind.EXPERT: Format.W8}), model)
        return pipeline.build(
            BuildRequest(model, board, out, prompts=("turn the window on",), golden_tokens=GOLDEN_TOKENS, max_threads=4)
        )

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        descriptor = os.open(self.folder / f".{name}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def shared_bench(factory: pytest.TempPathFactory) -> Bench:
    """The one bench of all test processes of a session."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "systems"
    folder.mkdir(exist_ok=True)
    return Bench(folder)


def answer(system: QemuSystem, prompt: str, timeout_s: float = 60.0) -> dict[str, Any]:
    """Type a prompt and return the status of its answer."""
    system.write(f"{prompt}\r")
    status: dict[str, Any] = json.loads(system.expect(r"(?m)^COLIBRI_ANSWER .*\n", timeout_s).split(" ", 1)[1])
    return status


def assert_is(golden: Generation, status: Any) -> None:
    got = (tuple(status["ids"]), status["logits_hash"], status["stop"])
    assert got == (golden.ids, golden.logits_hash, golden.stop), golden.prompt


def switch_off(system: QemuSystem) -> dict[str, Any]:
    """End the input (Ctrl-D), and return the status of the run once the machine is off."""
    system.write("\4")
    system.wait_power_off()
    status: dict[str, Any] = json.loads(system.expect(r"(?m)^COLIBRI_STATUS .*\n", 0).split(" ", 1)[1])
    return status
