"""Compiles the C tokenizer for a given tokenizer.json and talks to it through pipes."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.render.tokenizer_tables import tokenizer_tables_source

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime_c"
STRICT = "-std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -ffp-contract=off".split()
BUILDS = {
    "native": (["gcc", "-O3"], []),
    "clang": (["clang", "-O3"], []),
    "sanitized": (["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"], []),
    "aarch64": (["aarch64-linux-gnu-gcc", "-O3", "-static"], ["qemu-aarch64-static", "-cpu", "cortex-a53"]),
}
OK, TOO_LONG, INVALID_UTF8 = 0, -3, -5


class Firmware:
    """One running harness. `encode` and `decode` are what the firmware's user would see."""

    def __init__(self, command: list[str], context: int, tables: Path, text_bytes: int) -> None:
        self.context, self._tables, self._text_bytes = context, tables, text_bytes
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def encode(self, text: str | bytes, capacity: int | None = None) -> tuple[int, list[int]]:
        data = text.encode() if isinstance(text, str) else text
        self._send(b"e" + struct.pack("<ii", self.context if capacity is None else capacity, len(data)) + data)
        (status,) = struct.unpack("<i", self._read(4))
        block = self._block(4)
        return status, list(struct.unpack(f"<{len(block) // 4}i", block))

    def decode(self, ids: list[int]) -> list[bytes]:
        """Return what comes out for each id, and at the end."""
        self._send(b"d" + struct.pack(f"<i{len(ids)}i", len(ids), *ids))
        return [self._block(1) for _ in range(len(ids) + 1)]

    def table_bytes(self) -> tuple[int, int]:
        """(constants of the generated tables, text of the vocabulary)."""
        sizes = subprocess.run(["size", str(self._tables)], check=True, capture_output=True).stdout.split()
        return int(sizes[6]), self._text_bytes

    def close(self) -> int:
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(timeout=10)

    def _send(self, data: bytes) -> None:
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _block(self, element_bytes: int) -> bytes:
        (n,) = struct.unpack("<i", self._read(4))
        return self._read(n * element_bytes)

    def _read(self, n: int) -> bytes:
        data = self._process.stdout.read(n)
        assert len(data) == n, f"the tokenizer died with exit code {self._process.wait()}"
        return data


def compile_firmware(json_text: str, folder: Path, build: str, vocab_size: int, context: int) -> Firmware:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = read_tokenizer_bytes(json_text.encode(), vocab_size)
    (folder / "tokenizer_tables.c").write_text(tokenizer_tables_source(tokenizer))
    config = f"#define MODEL_VOCAB_SIZE {vocab_size}\n#define MODEL_CONTEXT {context}\n"
    (folder / "model_config.h").write_text(config)
    (compiler, *flags), runner = BUILDS[build]
    sources = [*map(str, sorted((RUNTIME / "tokenizer").glob("*.c"))), str(Path(__file__).parent / "harness.c")]
    includes = [f"-I{RUNTIME}", f"-I{RUNTIME / 'include'}", f"-I{folder}"]
    command = [shutil.which(compiler) or compiler, *flags, *STRICT, *includes]
    tables = folder / "tokenizer_tables.o"
    subprocess.run([*command, "-c", str(folder / "tokenizer_tables.c"), "-o", str(tables)], check=True)
    subprocess.run([*command, *sources, str(tables), "-o", str(folder / "harness")], check=True)
    text_bytes = sum(map(len, tokenizer.tokens))
    return Firmware([*runner, str(folder / "harness")], context, tables, text_bytes)
