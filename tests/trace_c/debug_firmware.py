"""Builds the runtime around a small model once, and its parts that --debug touches for each set of names."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from colibri_build.artifacts import BuildOptions, Generation, ModelFolder, QuantizedModel
from colibri_build.checkpoint.tokenizer_encode import encode_text
from colibri_build.pack.writer import write_model_folder
from colibri_build.reference.generate import generate
from colibri_build.reference.model import ReferenceModel
from colibri_build.render.tokenizer_tables import tokenizer_tables_source
from colibri_build.render.tree import render_tree
from colibri_build.target.board import load_board
from colibri_build.target.toolchain import resolve_toolchain
from support.tiny_quantized import AWKWARD_CONFIG, random_quantized

# Six chosen experts take two ROUTING records a layer.
CONFIG = replace(AWKWARD_CONFIG, n_experts=9, top_k=6)
ALL = ("memory", "routing", "timing")
SUBSETS = [tuple(name for i, name in enumerate(ALL) if bits >> i & 1) for bits in range(8)]
CONTEXT, MAX_THREADS, PROMPT = 64, 3, "the window on"
QEMU = {"cortex-a53": ["qemu-aarch64-static", "-cpu", "cortex-a53"], "x86-64-v3": []}
STRICT = "-std=c11 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
_HOOK = re.compile(
    r"trace|DEBUG_|records\.h", re.IGNORECASE
)  # of a file that sees each name; others see if there is one
# Folders whose files see the names, or a struct that they change.
HOOKED = {f"runtime_c/{name}" for name in ("app", "model", "port", "serve", "trace")}


def options(debug: tuple[str, ...]) -> BuildOptions:
    return BuildOptions(CONTEXT, MAX_THREADS, debug=debug, prefill_batch=4)


@dataclass(frozen=True)
class Run:
    """What one run left behind; `trace` is what came out of its --trace-fd."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    trace: bytes

    @property
    def status(self) -> dict[str, Any]:
        line = self.stderr.decode().splitlines()[-1]
        assert line.startswith("COLIBRI_STATUS "), line
        status: dict[str, Any] = json.loads(line.removeprefix("COLIBRI_STATUS "))
        return status


@dataclass(frozen=True)
class DebugFirmware:
    """A linked binary, and how it is started."""

    elf: Path
    prefix: list[str]

    def __call__(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> Run:
        """Run it, with descriptor 3 open on a file: `--trace-fd 3`."""
        out = self.elf.with_suffix(".trace")
        with out.open("wb") as stream:
            done = self.start(arguments, stream.fileno(), stdin)
        assert not check or done.returncode == 0, done.stderr[-2000:]
        return Run(done.returncode, done.stdout, done.stderr, out.read_bytes())

    def start(self, arguments: Sequence[str], trace_fd: int, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run it with descriptor 3 open as `trace_fd` is."""
        command = ["bash", "-c", f'exec "$@" 3>&{trace_fd}', "bash", *self.prefix, str(self.elf), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, pass_fds=(trace_fd,), timeout=30, check=False)


@dataclass
class Workshop:
    """One board's tree. What two sets of names compile to the same text is compiled once."""

    folder: Path  # the tree
    board: str
    compiler: tuple[str, ...]  # with its flags
    model: QuantizedModel
    packed: ModelFolder
    golden: Generation
    sources: tuple[str, ...]
    _built: dict[tuple[str, ...], DebugFirmware] = field(default_factory=dict)

    def firmware(self, debug: tuple[str, ...] = ALL) -> DebugFirmware:
        if debug not in self._built:
            self._built[debug] = self._link(debug)
        return self._built[debug]

    def _link(self, debug: tuple[str, ...]) -> DebugFirmware:
        work = self.folder / "-".join(debug) if debug else self.plain
        work.mkdir()
        config = (self.folder / "generated/model_config.h").read_text(encoding="utf-8")
        for name in ALL:
            config = re.sub(rf"(#define DEBUG_{name.upper()}) \d", rf"\1 {int(name in debug)}", config)
        (work / "model_config.h").write_text(config, encoding="utf-8")
        command = [*self.compiler, f"-I{work}", "-Iruntime_c", "-Iruntime_c/include", "-Igenerated", "-Iweights"]
        sources = [source for source in self.sources if debug or "/trace/" not in source]
        with ThreadPoolExecutor(2) as pool:
            objects = list(pool.map(lambda source: self._object(command, source), sources))
        elf = work / "firmware"
        self._run([*self.compiler, *objects, "-static", "-pthread", "-lm", "-o", str(elf)])
        return DebugFirmware(elf, QEMU[self.board])

    def _object(self, command: list[str], source: str) -> str:
        text = b"always the same"
        if "/".join(source.split("/")[:2]) in HOOKED:
            speaks_of_it = _HOOK.search((self.folder / source).read_text(encoding="utf-8"))
            text = self._run([*command, "-E", "-P", source]) if speaks_of_it else b"%d" % (f"-I{self.plain}" in command)
        made = f"{source}.{hashlib.sha256(text).hexdigest()[:16]}.o"
        if not (self.folder / made).exists():
            self._run([*command, "-c", source, "-o", made])
        return made

    @property
    def plain(self) -> Path:
        """Where the configuration without any name is."""
        return self.folder / "none"

    def _run(self, command: list[str]) -> bytes:
        return subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.PIPE).stdout


def make_workshop(folder: Path, board_name: str, *compiler: str) -> Workshop:
    """Render the tree with every name."""
    board = load_board(board_name)
    model = random_quantized(CONFIG)
    packed = write_model_folder(model, folder / "model")
    reference = ReferenceModel(model, context=CONTEXT)
    golden = generate(reference, PROMPT, encode_text(model.tokenizer, PROMPT), 12)
    tables = tokenizer_tables_source(model.tokenizer)
    tree = render_tree(
        packed, board, resolve_toolchain(board, "debian-gcc"), options(ALL), golden, tables, folder / "t"
    )
    command = (*compiler, *STRICT.split())
    return Workshop(tree.path, board_name, command, model, packed, golden, tree.sources)
