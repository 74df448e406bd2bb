"""Our side: quantize and build, as a user does, and remember what that took."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.cache import builder_digest, digest_of, digest_of_files, made
from suite.commands import launch
from suite.models import Model, checkpoint_folder, checkpoint_key
from suite.places import Json

BITS = (16, 8)
BOARD_X86 = "x86-64-v3"
GOLDEN_TOKENS = 4  # the reference takes seconds for a token of the largest model


@dataclass(frozen=True)
class Firmware:
    """A finished build. `cost` is of quantizing and building; a token reads `weight_bytes`, by the builder's plan."""

    model: Model
    board: str
    bits: int
    path: Path
    digest: str
    cost: Json
    weight_bytes: int

    @property
    def name(self) -> str:
        """How tables call it."""
        return f"a{self.bits}"


def timed(command: Sequence[str | Path]) -> Json:
    """Run a command; seconds, and the largest resident set among its processes in bytes."""
    seen = launch(command, has_status=False)
    return {"seconds": round(seen.total_us / 1e6, 2), "peak_bytes": seen.peak_bytes}


def script(name: str) -> Path:
    """One of the project's commands, of the Python that runs this."""
    return Path(sys.executable).parent / name


def model_folder(model: Model, builder: str) -> tuple[Path, Json]:
    """The quantized model and what quantizing took."""
    target = model.folder() / "quantized"

    def make(folder: Path) -> Json:
        taken = timed([script("colibri-quantize"), checkpoint_folder(model), folder / "model", "--method", "rtn"])
        return {"quantize_s": taken["seconds"], "quantize_peak_bytes": taken["peak_bytes"]}

    cost = made(target, digest_of(checkpoint_key(model), builder), make)
    return target / "model", cost


def firmware(model: Model, board: str, bits: int) -> Firmware:
    """Build for a board, or take what an earlier run built of the same sources."""
    builder = builder_digest()
    quantized, quantize_cost = model_folder(model, builder)
    target = model.folder() / f"{board.replace('/', '-')}-a{bits}"
    key = digest_of(builder, checkpoint_key(model), board, bits, model.prompt, model.context)
    value = made(target, key, lambda folder: _build(model, board, bits, quantized, folder))
    path = target / "build" / "colibri_inference"
    return Firmware(model, board, bits, path, value["digest"], quantize_cost | value["cost"], value["weight_bytes"])


def _build(model: Model, board: str, bits: int, quantized: Path, folder: Path) -> Json:
    """Build twice, the second time with nothing changed; keep what running and counting needs."""
    out = folder / "build"
    prompts = folder / "prompts.txt"
    prompts.write_text(model.prompt + "\n")
    command: list[str | Path] = [script("colibri-build"), "--board", board, "--activations", str(bits), "--out", out]
    command += ["--ctx", str(model.context), "--prompts", prompts, "--golden-tokens", str(GOLDEN_TOKENS), "--verbose"]
    first = timed([*command, quantized])
    again = timed([*command, quantized])
    plan = json.loads((out / "plan.json").read_text())
    binary = out / "colibri_inference"
    cost = {
        "build_s": first["seconds"],
        "build_peak_bytes": first["peak_bytes"],
        "rebuild_s": again["seconds"],
        "binary_bytes": binary.stat().st_size,
    }
    shutil.rmtree(out / "weights", ignore_errors=True)
    for heavy in (out / "objects").rglob("weights*.o"):
        heavy.unlink()
    return {"cost": cost, "weight_bytes": plan["active_weight_bytes"], "digest": digest_of_files([binary])}


def text_bytes(binary: Path) -> int:
    """Bytes of a program's .text, what `size -A` prints."""
    done = subprocess.run(["size", "-A", str(binary)], capture_output=True, text=True, check=True)
    found = re.search(r"^\.text\s+(\d+)", done.stdout, re.MULTILINE)
    if found is None:
        raise ValueError(f"{binary}: no .text")
    return int(found[1])
