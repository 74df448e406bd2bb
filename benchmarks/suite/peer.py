"""The other side: llama.cpp, fetched, built for the same instruction sets, and its files of the same models."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import gguf

from suite.cache import digest_of, digest_of_files, made
from suite.commands import run
from suite.models import Model, checkpoint_key
from suite.ours import timed
from suite.peer_file import write_gguf
from suite.places import BENCHMARKS, WORK, Json

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
ARCHIVE = f"llama_cpp_python-{VERSION}.tar.gz"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
SOURCE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp"
TYPES = ("q4_0", "q4_k_m")
COMMON = ("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF", "-DGGML_NATIVE=OFF", "-DGGML_CCACHE=OFF")
# Exactly the instructions of our boards' flags: AVX2, FMA and F16C without AVX-512 or VNNI; NEON without dotprod.
X86 = tuple(f"-DGGML_{name}=ON" for name in ("SSE42", "AVX", "AVX2", "FMA", "F16C", "BMI2"))
AARCH64 = (
    "-DCMAKE_SYSTEM_NAME=Linux",
    "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
    "-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
    "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
    "-DGGML_CPU_ARM_ARCH=armv8-a",
)
SETTINGS = {"x86_64": X86, "aarch64": AARCH64}


@dataclass(frozen=True)
class PeerModel:
    """A driver and a file. `repacks`: whether llama.cpp rearranges the weights when it loads them, its default."""

    driver: Path
    driver_digest: str
    gguf: Path
    type: str
    repacks: bool
    file_digest: str
    weight_bytes: int  # that a token reads

    @property
    def name(self) -> str:
        """How tables call it."""
        return f"{self.type} {'repacked' if self.repacks else 'as stored'}"


def source() -> Path:
    """llama.cpp's folder; the archive is fetched and its digest compared. Raises ValueError for another digest."""

    def make(folder: Path) -> Json:
        fetch = ["download", "--quiet", "--no-binary", PACKAGE, "--no-deps", "--dest", str(folder)]
        run([sys.executable, "-m", "pip", *fetch, f"{PACKAGE}=={VERSION}"])
        archive = folder / ARCHIVE
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != SHA256:
            raise ValueError(f"{ARCHIVE}: SHA-256 {found}, not {SHA256}")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, members=[m for m in tar if f"{SOURCE}/" in m.name], filter="data")
        archive.unlink()
        return {}

    made(WORK / "peer" / "source", digest_of(VERSION, SHA256), make)
    return WORK / "peer" / "source" / SOURCE


def driver(arch: str) -> tuple[Path, str]:
    """The driver for "x86_64" or "aarch64", linked statically with llama.cpp, and its digest.

    The objects stay: another driver, or a build that was interrupted, does not compile llama.cpp again.
    """
    own = [BENCHMARKS / "peer" / name for name in ("CMakeLists.txt", "driver.c")]
    objects = WORK / "peer" / f"objects-{arch}"
    target = WORK / "peer" / arch

    def make(folder: Path) -> Json:
        compiler = "gcc" if arch == "x86_64" else "aarch64-linux-gnu-gcc"
        openmp = run([compiler, "-print-file-name=libgomp.a"]).stdout.strip()  # CMake would find the shared one
        settings = [*COMMON, *SETTINGS[arch], f"-DOpenMP_gomp_LIBRARY={openmp}", f"-DLLAMA_SOURCE={source()}"]
        run(["cmake", "-S", BENCHMARKS / "peer", "-B", objects, *settings])
        run(["cmake", "--build", objects, "--parallel", str(os.cpu_count())])
        shutil.copy(objects / "peer_driver", folder)
        return {"digest": digest_of_files([folder / "peer_driver"])}

    value = made(target, digest_of(SHA256, COMMON, SETTINGS[arch], digest_of_files(own)), make)
    return target / "peer_driver", value["digest"]


def quantized(model: Model) -> tuple[Path, Json]:
    """A folder with q4_0.gguf and q4_k_m.gguf, made by llama.cpp of F16, and what making them took and reads a token."""
    program, _ = driver("x86_64")

    def make(folder: Path) -> Json:
        half = folder / "f16.gguf"
        write_gguf(model.checkpoint(), half)
        value: Json = {}
        for kind in TYPES:
            file = folder / f"{kind}.gguf"
            taken = timed([program, "quantize", half, file, kind, str(os.cpu_count())])
            value[kind] = {
                "quantize_s": taken["seconds"],
                "quantize_peak_bytes": taken["peak_bytes"],
                "file_bytes": file.stat().st_size,
                "weight_bytes": active_bytes(file),
                "digest": digest_of_files([file]),
            }
        half.unlink()
        return value

    key = digest_of(checkpoint_key(model), SHA256, digest_of_files([BENCHMARKS / "suite" / "peer_file.py"]))
    target = model.folder() / "gguf"
    return target, made(target, key, make)


def active_bytes(file: Path) -> int:
    """Bytes of the weights that a token reads: all of a matrix, top-k experts' share, of the embedding one row."""
    reader = gguf.GGUFReader(file)
    fields = reader.fields
    experts = fields["llama.expert_count"].contents()
    used = fields["llama.expert_used_count"].contents()
    names = {tensor.name for tensor in reader.tensors}
    total = 0.0
    for tensor in reader.tensors:
        share = 1.0
        if "_exps" in tensor.name:
            share = used / experts
        elif tensor.name == "token_embd.weight" and "output.weight" in names:
            share = 1 / float(tensor.shape[1])
        total += float(tensor.n_bytes) * share
    return int(total)


def peers(model: Model, arch: str) -> list[PeerModel]:
    """Every configuration of llama.cpp that is measured: both types, repacked or not."""
    program, digest = driver(arch)
    folder, facts = quantized(model)
    return [
        PeerModel(
            program,
            digest,
            folder / f"{kind}.gguf",
            kind,
            repacks,
            facts[kind]["digest"],
            facts[kind]["weight_bytes"],
        )
        for kind in TYPES
        for repacks in (True, False)
    ]
