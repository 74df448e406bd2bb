"""Board profiles: what a board's CPU, memory, storage, console and emulator are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from colibri_build.errors import TargetError
from colibri_build.resources import data_dir
from colibri_build.target.profile import Profile, closest, merge, read_toml, validate

MIB = 1024 * 1024

Arch = Literal["aarch64", "x86_64"]
Kernels = Literal["neon", "avx2", "portable"]
# Groups of instructions that a CPU has or lacks. The inspection of a binary knows the mnemonics of each.
Feature = Literal[
    "asimd", "crc32", "aes", "pmull", "sha1", "sha2", "dotprod", "fp16-arith", "lse", "i8mm", "sve",
    "avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe", "avx512", "avx-vnni",
]  # fmt: skip
_KERNEL_NEEDS: dict[str, tuple[str, set[str]]] = {
    "neon": ("aarch64", {"asimd"}),
    "avx2": ("x86_64", {"avx2", "f16c"}),
}


class Cpu(Profile):
    """The processor."""

    name: str
    isa: str  # architecture version, for people
    cores: int = Field(ge=1)
    clock_mhz: int | None = Field(default=None, ge=1)
    features: tuple[Feature, ...]
    forbidden: tuple[Feature, ...]  # instruction groups that the firmware must not contain
    errata: tuple[str, ...] = ()  # silicon errata that compiler or linker have to work around


class Cache(Profile):
    """Cache sizes in KiB; 0: none. L1 is a core's own."""

    l1d_kib: int = Field(ge=0)
    l1i_kib: int = Field(ge=0)
    l2_kib: int = Field(ge=0)
    l2_shared_by: int = Field(default=1, ge=1)  # cores
    l3_kib: int = Field(ge=0)


class Bandwidth(Profile):
    """A measured rate. `source` says who measured it, on what."""

    mb_per_s: float = Field(gt=0)  # 10^6 bytes a second
    source: str = Field(min_length=1)


class Memory(Profile):
    """RAM."""

    ram_total_mib: int = Field(ge=1)
    ram_budget_mib: int = Field(ge=1)  # what one firmware may use, file-backed weights included
    read_bandwidth: Bandwidth | None = None  # one thread, sequential; absent: nobody measured it


class Storage(Profile):
    """Where the firmware is kept."""

    kind: str
    device: str
    flash_budget_mib: int = Field(ge=1)  # size of one firmware partition


class Console(Profile):
    """The serial console under the board's own Linux."""

    device: str
    baud: int = Field(ge=1)


class Defaults(Profile):
    """What a build takes when the user names nothing else."""

    context: int = Field(ge=1)  # positions
    threads: int = Field(ge=1)


class Flags(Profile):
    """Architecture flags of one compiler family."""

    compile: tuple[str, ...]
    link: tuple[str, ...] = ()  # beside the compile flags, which the link gets as well


class CompilerFlags(Profile):
    """Architecture flags by compiler family."""

    gcc: Flags
    clang: Flags
    zig: Flags


class Qemu(Profile):
    """User-mode emulation: `command` + `args` + the firmware's own command line."""

    commands: tuple[str, ...] = Field(min_length=1)  # the first one installed is taken
    args: tuple[str, ...]
    native: bool = False  # a host that has every feature of the board runs the firmware without emulator


class QemuSystem(Profile):
    """Emulation of a whole machine: kernel, eMMC, console."""

    machine: str
    cpu: str
    cpus: int = Field(ge=1)
    ram_mib: int = Field(ge=32)
    console: str  # the emulated machine's serial console, as in console= of the kernel's command line
    args: tuple[str, ...] = ()  # more of QEMU's


class Board(Profile):
    """One board profile, complete: what it extends is merged in."""

    name: str  # the profile's path below boards/, without .toml
    description: str
    arch: Arch
    kernels: Kernels
    cpu: Cpu
    cache: Cache
    memory: Memory
    storage: Storage
    console: Console
    defaults: Defaults
    flags: CompilerFlags
    qemu: Qemu
    qemu_system: QemuSystem | None = None  # absent: no such machine is emulated

    @property
    def cores(self) -> int:
        """CPU cores."""
        return self.cpu.cores

    @property
    def default_context(self) -> int:
        """Positions of the KV cache when the user names none."""
        return self.defaults.context

    @property
    def default_threads(self) -> int:
        """Worker threads when the user names none."""
        return self.defaults.threads

    @property
    def ram_budget_bytes(self) -> int:
        """RAM that one firmware may use."""
        return self.memory.ram_budget_mib * MIB

    @property
    def flash_budget_bytes(self) -> int:
        """Size of one firmware partition."""
        return self.storage.flash_budget_mib * MIB

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        both = sorted(set(self.cpu.features) & set(self.cpu.forbidden))
        if both:
            raise ValueError(f"cpu.features and cpu.forbidden both name {', '.join(both)}")
        if self.memory.ram_budget_mib > self.memory.ram_total_mib:
            raise ValueError(
                f"memory.ram_budget_mib {self.memory.ram_budget_mib} is above ram_total_mib {self.memory.ram_total_mib}"
            )
        arch, needed = _KERNEL_NEEDS.get(self.kernels, (self.arch, set()))
        if arch != self.arch:
            raise ValueError(f"kernels '{self.kernels}' are for {arch}, arch is {self.arch}")
        lacking = sorted(needed - set(self.cpu.features))
        if lacking:
            raise ValueError(f"kernels '{self.kernels}' need cpu.features {', '.join(lacking)}")
        return self


@dataclass(frozen=True)
class BoardSummary:
    """One line of the list of boards."""

    name: str
    description: str
    arch: str
    cpu: str
    ram_budget_mib: int
    flash_budget_mib: int


def load_board(name: str, search: Path | None = None) -> Board:
    """Load a board by name (`cortex-a53`, `cortex-a53/rpi-zero2w`) or by the path of the user's own .toml file.

    `search` is the folder of profiles (default: the project's). Raises TargetError for an unknown board or a profile
    with a mistake.
    """
    folder = search or data_dir("boards")
    path = _locate(name, folder)
    data, files = _read_chain(path, folder, ())
    board_name = _name_of(path, folder) or path.stem
    return validate(Board, {**data, "name": board_name}, files)


def list_boards(search: Path | None = None) -> list[BoardSummary]:
    """Every board of the folder, by name. Raises TargetError if a profile has a mistake."""
    return [_summary(load_board(name, search)) for name in board_names(search or data_dir("boards"))]


def board_names(folder: Path) -> list[str]:
    """Names of the profiles in a folder: generic boards, each followed by its variants."""
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))


def _summary(board: Board) -> BoardSummary:
    return BoardSummary(
        board.name,
        board.description,
        board.arch,
        f"{board.cpu.cores}x {board.cpu.name}",
        board.memory.ram_budget_mib,
        board.storage.flash_budget_mib,
    )


def _locate(name: str, folder: Path) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    known = board_names(folder)
    if name in known:
        return folder / f"{name}.toml"
    guess = closest(name, known)
    meant = f"'{guess}', or " if guess else ""
    raise TargetError(f"unknown board '{name}'", hint=f"{meant}one of: {', '.join(known)}; or the path of a .toml file")


def _name_of(path: Path, folder: Path) -> str | None:
    if path.is_relative_to(folder):
        return path.relative_to(folder).with_suffix("").as_posix()
    return None


def _shown(path: Path, folder: Path) -> str:
    name = _name_of(path, folder)
    return f"boards/{name}.toml" if name else str(path)


def _read_chain(path: Path, folder: Path, below: tuple[Path, ...]) -> tuple[dict[str, Any], list[tuple[str, Path]]]:
    """Read a profile and what it extends. Returns the merged data and the files, the outermost first."""
    shown = _shown(path, folder)
    data = read_toml(path, shown)
    if "name" in data:
        raise TargetError(f"{shown}: unknown key 'name'", hint="'description'; a board is named after its file")
    parent = data.pop("extends", None)
    removed = data.pop("remove", [])
    if parent is None:
        if removed:
            raise TargetError(f"{shown}: 'remove' without 'extends'", hint="leave the key out instead of removing it")
        return data, [(shown, path)]
    if not isinstance(parent, str):
        raise TargetError(f"{shown}: 'extends' is {parent!r}", hint='the name of a board, as "cortex-a53"')
    parent_path = path.parent / parent if parent.endswith(".toml") else _locate(parent, folder)
    if parent_path.resolve() in (p.resolve() for p in (*below, path)):
        raise TargetError(f"{shown}: extends '{parent}', which extends it in turn", hint="break the circle")
    base, files = _read_chain(parent_path, folder, (*below, path))
    for key in removed:
        _remove(base, key, shown)
    return merge(base, data), [(shown, path), *files]


def _remove(data: dict[str, Any], dotted: Any, shown: str) -> None:
    """Delete an inherited value. Parsed TOML is ours alone, so it is changed in place."""
    *tables, last = str(dotted).split(".")
    table: Any = data
    for key in tables:
        table = table.get(key) if isinstance(table, Mapping) else None
    if not isinstance(table, dict) or last not in table:
        raise TargetError(f"{shown}: 'remove' names '{dotted}', which is not inherited", hint="check the spelling")
    del table[last]
