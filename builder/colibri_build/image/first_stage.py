"""Compiles the first stage, /init of the initramfs, with the board's toolchain and the firmware's flags."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from colibri_build.errors import CompileError
from colibri_build.files import write_whole
from colibri_build.resources import data_dir
from colibri_build.target.toolchain import Toolchain, environment

SOURCE = "boot/first_stage.c"
_DEADLINE_S = 300.0  # zig builds its C library the first time


def compile_first_stage(toolchain: Toolchain, out: Path) -> Path:
    """Compile and link the first stage to `out` (static, executable) and return `out`. Raises CompileError."""
    source = data_dir("runtime_c") / SOURCE
    with tempfile.TemporaryDirectory(prefix="colibri-first-stage-") as folder:
        here = Path(folder)
        # Its name in the folder, not its path: what the compiler is told may end up in the binary.
        (here / source.name).write_bytes(source.read_bytes())
        made = here / "init"
        _run((*toolchain.cc, *toolchain.cflags, "-c", source.name, "-o", "init.o"), here, toolchain)
        _run((*toolchain.cc, "-o", made.name, "init.o", *toolchain.ldflags), here, toolchain)
        write_whole(out, made.read_bytes())
    out.chmod(0o755)
    return out


def _run(command: tuple[str, ...], folder: Path, toolchain: Toolchain) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_DEADLINE_S, check=False,
        )  # fmt: skip
    except OSError as error:
        raise CompileError(f"cannot start {command[0]}: {error.strerror}", hint=toolchain.install) from error
    except subprocess.TimeoutExpired:
        raise CompileError(f"first stage: not compiled after {_DEADLINE_S:.0f} s", hint="build again") from None
    if done.returncode != 0:
        said = next((line for line in done.stdout.splitlines() if "error" in line), done.stdout.strip()[:200])
        raise CompileError(f"first stage: {said}", hint="report it with the toolchain's version")
