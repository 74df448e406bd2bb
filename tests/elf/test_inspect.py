"""The inspection: real binaries that break one promise each must fail the check of that name, and no other."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.artifacts import BuildPlan, BuildReport, Firmware, ModelFolder, Region, SourceTree
from colibri_build.compile.build import compile_tree
from colibri_build.elf.facts import read_facts
from colibri_build.elf.inspect import inspect_firmware, report_to_json
from colibri_build.errors import InspectError
from colibri_build.target.board import Board
from colibri_build.target.toolchain import Toolchain
from support.stub_tree import OPTIONS, main_program, stub_tree, target, tiny_folder

Where = tuple[Board, Toolchain]
X86, A53 = ("x86-64-v3", "debian-gcc"), ("cortex-a53", "debian-gcc")
CODE, BINARY_CODE = "objects hold only the board's instructions", "binary holds only the board's instructions"
# What the plan of the tiny stub says: the two buffers are exact, the rest is generous.
PLAN = BuildPlan(
    "board", "model", OPTIONS,
    (Region("KV cache", 0, 4096, ""), Region("arena", 0, 64, ""), Region("code", 4 << 20, 4 << 20, ""),
     Region("thread stacks", 0, 2 * 128 * 1024, "")),
    1 << 30, 1 << 30, 1, None,
)  # fmt: skip
BUFFERS = "char kv_cache[4096];\nchar arena[64];\n"
USE_BUFFERS = "    kv_cache[MODEL_DIM & model_eos_ids[0]] = arena[1];\n"


# Without a C library there is little to disassemble; most promises can be broken without one.
BARE = """\
#include "store/model_tables.h"
#include "tokenizer/tables.h"

volatile float sink;
void _start(void);
void _start(void) {
    sink = model_final_norm[0] + (float)model_experts[0][0].up.rows + (float)model_layers[0].q.rows;
    sink = (float)tokenizer_n_prefix_ids;
}
"""


def bare_program(before: str, inside: str) -> str:
    """BARE with text before its function and at the start of it."""
    return BARE.replace("volatile float", before + "volatile float").replace(
        "_start(void) {\n", "_start(void) {\n" + inside
    )


class Case:
    """One tree on its way to a binary."""

    def __init__(
        self,
        tmp: Path,
        monkeypatch: pytest.MonkeyPatch,
        where: tuple[str, str],
        extra_c: str = "",
        inside: str = "",
        *,
        libc: bool = False,
    ) -> None:
        self.board, self.toolchain = target(*where)
        self.folder: ModelFolder = tiny_folder(tmp)
        program = (main_program if libc else bare_program)(BUFFERS + extra_c, USE_BUFFERS + inside)
        if not libc:
            self.toolchain = replace(self.toolchain, ldflags=("-nostdlib", *self.toolchain.ldflags))
        self.tree: SourceTree = stub_tree(
            tmp, monkeypatch, (self.board, self.toolchain), main_c=program, folder=self.folder
        )

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        path = self.tree.path / name
        before = path.read_text(encoding="utf-8")
        after = change(before)
        assert after != before, "the edit changes nothing: the test would be blind"
        path.write_text(after, encoding="utf-8")

    def link_with(self, without: tuple[str, ...] = (), plus: tuple[str, ...] = ()) -> None:
        flags = (*self.toolchain.ldflags, *self.tree.link_flags)
        assert set(without) <= set(flags)
        self.toolchain = replace(self.toolchain, ldflags=tuple(f for f in flags if f not in without) + plus)
        self.tree = replace(self.tree, link_flags=())

    def build(self) -> Firmware:
        return compile_tree(self.tree, self.board, self.toolchain)

    def inspect(self, firmware: Firmware | None = None, plan: BuildPlan = PLAN) -> BuildReport:
        return inspect_firmware(firmware or self.build(), self.folder, self.board, self.toolchain, plan)


@pytest.fixture
def x86(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(tmp_path, monkeypatch, X86)


@pytest.fixture
def a53(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(tmp_path, monkeypatch, A53)


def failed(report: BuildReport) -> dict[str, str]:
    return {check.name: check.detail for check in report.checks if not check.ok}


@pytest.mark.parametrize(
    "where", [X86, A53, ("x86-64-v3", "zig"), ("cortex-a53", "clang")], ids=lambda where: " ".join(where)
)
def test_a_sound_binary_passes_every_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[str, str]
) -> None:
    report = Case(tmp_path, monkeypatch, where, libc=True).inspect()
    assert failed(report) == {}
    assert report.ok
    assert len(report.checks) == 17 + bool(target(*where)[0].cpu.errata)
    assert report.deepest_stack[0][1] > 0


def test_a_dynamic_binary_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x86 = Case(tmp_path, monkeypatch, X86, libc=True)
    x86.link_with(without=("-static",), plus=("-no-pie",))
    assert set(failed(x86.inspect())) == {"fully static"}
    assert "PT_INTERP" in failed(x86.inspect())["fully static"]


def test_a_static_but_movable_binary_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x86 = Case(tmp_path, monkeypatch, X86, libc=True)
    x86.link_with(without=("-static",), plus=("-static-pie",))
    x86.toolchain = replace(x86.toolchain, cflags=(*x86.toolchain.cflags, "-fPIE"))
    found = failed(x86.inspect())
    assert "ET_DYN" in found["fully static"]


def test_an_executable_stack_is_found(x86: Case) -> None:
    x86.link_with(without=("-Wl,-z,noexecstack",), plus=("-Wl,-z,execstack", "-Wl,--no-warn-execstack"))
    assert set(failed(x86.inspect())) == {"stack not executable"}


def test_a_binary_of_another_machine_is_found(x86: Case, a53: Case) -> None:
    firmware = x86.build()
    report = inspect_firmware(firmware, x86.folder, a53.board, replace(x86.toolchain), PLAN)
    assert "EM_X86_64" in failed(report)["right machine"]


def test_writable_weights_are_found(x86: Case) -> None:
    x86.edit("generated/weights.S", lambda text: text.replace('.weights, "a"', '.weights, "aw"'))
    assert set(failed(x86.inspect())) == {"weights read-only"}


def test_weights_in_an_executable_segment_are_found(a53: Case) -> None:
    """What GNU ld does on AArch64 without -z separate-code."""
    a53.link_with(without=("-Wl,-z,separate-code",))
    assert "executable" in failed(a53.inspect())["weights read-only"]


def test_code_that_is_writable_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = '__asm__(".section mixed,\\"awx\\"\\n.global both\\nboth: .byte 1\\n.text");\nextern char both;\n'
    case = Case(tmp_path, monkeypatch, X86, extra, "    both = kv_cache[0];\n")
    case.link_with(plus=("-Wl,--no-warn-rwx-segments",))
    assert set(failed(case.inspect())) == {"no writable code"}


def test_a_misaligned_array_is_found(x86: Case) -> None:
    def misalign(text: str) -> str:
        head, name, tail = text.partition("    .global expert_0_1_bin\n")
        return head + "    .skip 64\n" + name + tail

    x86.edit("generated/weights.S", misalign)
    found = failed(x86.inspect())
    assert set(found) == {"weights aligned"}
    assert "expert_0_1_bin is at" in found["weights aligned"]


def test_a_flipped_bit_in_an_array_is_found(x86: Case) -> None:
    firmware = x86.build()
    facts = read_facts(firmware.elf)
    section, symbol = facts.section(".weights"), facts.symbols["expert_1_0_bin"]
    assert section is not None
    data = bytearray(firmware.elf.read_bytes())
    data[section.offset + symbol.address - section.address + 77] ^= 4
    firmware.elf.write_bytes(data)
    found = failed(x86.inspect(firmware))
    assert set(found) == {"weights are the model's"}
    assert "expert_1_0_bin differs" in found["weights are the model's"]


def test_missing_and_wrong_symbols_are_found(x86: Case) -> None:
    x86.edit("generated/weights.S", lambda t: t.replace(".size dense_bin, . - dense_bin", ".size dense_bin, 64"))
    x86.edit("generated/weights.S", lambda t: re.sub(r"(routing_bin_len:\n    \.4byte )\d+", r"\g<1>7", t))
    x86.edit("generated/weights.S", lambda t: t.replace("expert_0_0_bin_len", "renamed"))
    detail = failed(x86.inspect())["weight symbols complete"]
    assert "dense_bin has 64 bytes" in detail
    assert "routing_bin_len is 7" in detail
    assert "expert_0_0_bin_len is missing" in detail


def test_a_binary_without_weights_is_found(x86: Case) -> None:
    x86.edit("generated/weights.S", lambda text: text.replace('.section .weights, "a"', '.section .elsewhere, "a"'))
    assert "no section .weights" in failed(x86.inspect())["weights read-only"]


@pytest.mark.parametrize(
    ("where", "instruction", "group"),
    [
        (A53, ".inst 0x4e809400", "dotprod"),  # sdot v0.4s, v0.4s, v0.4s
        (A53, ".arch_extension lse\\n ldadd w0, w1, [sp]", "lse"),
        (A53, ".arch_extension crypto\\n aese v0.16b, v1.16b", "aes"),  # QEMU's cortex-a53 executes it
        (X86, "vpaddd %zmm0, %zmm1, %zmm2", "avx512"),
        (X86, "aesenc %xmm0, %xmm1", "aes"),
    ],
    ids=["sdot", "ldadd", "aese", "zmm", "aesenc"],
)
def test_a_foreign_instruction_is_found_in_object_and_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[str, str], instruction: str, group: str
) -> None:
    extra = f'void guilty(void);\nvoid guilty(void) {{ __asm__ volatile("{instruction}"); }}\n'
    case = Case(tmp_path, monkeypatch, where, extra, "    guilty();\n")
    found = failed(case.inspect())
    assert set(found) == {CODE, BINARY_CODE}
    for detail in found.values():
        assert f"({group})" in detail
        assert "guilty has" in detail or "_start has" in detail  # inlined or not


@pytest.mark.parametrize(("where", "fma"), [(A53, ()), (X86, ("-mfma",))], ids=["aarch64", "x86-64"])
def test_contraction_that_was_left_on_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[str, str], fma: tuple[str, ...]
) -> None:
    extra = "float f(float a, float b, float c);\nfloat f(float a, float b, float c) { return a * b + c; }\n"
    case = Case(tmp_path, monkeypatch, where, extra)
    assert failed(case.inspect()) == {}
    flags = tuple(flag for flag in case.toolchain.cflags if flag != "-ffp-contract=off")
    case.toolchain = replace(case.toolchain, cflags=(*flags, *fma, "-ffp-contract=fast"))
    assert set(failed(case.inspect())) == {"no fused multiply-add"}


def test_objects_that_are_gone_are_no_excuse(x86: Case, tmp_path: Path) -> None:
    firmware = x86.build()
    moved = tmp_path / "alone" / "colibri_inference"
    moved.parent.mkdir()
    moved.write_bytes(firmware.elf.read_bytes())
    found = failed(x86.inspect(Firmware(moved, ())))
    assert "no object files" in found[CODE]


def test_a_stack_that_grows_without_bound_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = "int g(int n);\n__attribute__((used)) int g(int n) { volatile char v[n]; v[0] = 1; return v[n - 1]; }\n"
    found = failed(Case(tmp_path, monkeypatch, X86, extra).inspect())
    assert found == {"stack bounded": "g: stack grows at run time"}


@pytest.mark.parametrize("toolchain", ["debian-gcc", "zig"])
def test_a_stack_frame_larger_than_a_threads_stack_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: str
) -> None:
    extra = (
        "int g(int n);\n__attribute__((used)) int g(int n) { volatile char v[124000]; v[n] = 1; return v[n / 2]; }\n"
    )
    report = Case(tmp_path, monkeypatch, ("cortex-a53", toolchain), extra, libc=True).inspect()
    assert "deepest g 124" in failed(report)["stack bounded"]
    assert report.deepest_stack[0][0] == "g"


def test_sizes_beyond_the_plan_are_found(x86: Case) -> None:
    firmware = x86.build()
    stacks = [region for region in PLAN.regions if region.name == "thread stacks"]
    tiny = [Region(name, 0, 1, "") for name in ("KV cache", "arena")]
    small = replace(PLAN, regions=(*stacks, *tiny))
    found = failed(x86.inspect(firmware, small))
    assert set(found) == {"file within the plan", "memory within the plan", "buffers as planned"}
    assert "kv_cache has 4096 bytes, the plan says 1" in found["buffers as planned"]
    assert f"{firmware.elf.stat().st_size} of 0 planned bytes" in found["file within the plan"]


def test_a_path_of_the_build_machine_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = f'extern const char where[];\nconst char where[] = "{tmp_path / "out"}";\n'
    case = Case(tmp_path, monkeypatch, X86, extra, "    arena[2] = where[model_eos_ids[0] & 7];\n")
    assert "build folder" in failed(case.inspect())["no path of this machine"]


@pytest.mark.parametrize("content", [b"", b"not an elf", b"\x7fELF" + b"\0" * 60], ids=["empty", "text", "zeros"])
def test_a_file_that_is_no_binary_is_one_clear_error(x86: Case, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "colibri_inference"
    path.write_bytes(content)
    with pytest.raises(InspectError, match="colibri_inference"):
        x86.inspect(Firmware(path, ()))


def test_facts_are_those_of_readelf_and_nm(a53: Case) -> None:
    elf = a53.build().elf
    facts = read_facts(elf)

    def said(*command: str) -> list[list[str]]:
        done = subprocess.run([*command, str(elf)], check=True, capture_output=True, text=True)
        return [line.split() for line in done.stdout.splitlines()]

    loads = [
        (int(w[2], 16), int(w[1], 16), int(w[4], 16), int(w[5], 16))
        for w in said("readelf", "-lW")
        if w[:1] == ["LOAD"]
    ]
    assert [(s.address, s.offset, s.file_bytes, s.memory_bytes) for s in facts.loads()] == loads
    for words in said("aarch64-linux-gnu-nm", "-S"):
        if len(words) == 4 and words[3].endswith(("_bin", "_bin_len")) and words[2] in "RrDd":
            symbol = facts.symbols[words[3]]
            assert (symbol.address, symbol.bytes) == (int(words[0], 16), int(words[1], 16))
    sizes = {words[0]: int(words[1]) for words in said("size", "-A") if len(words) == 3 and words[0].startswith(".")}
    report = a53.inspect(Firmware(elf, ()))
    assert {name: size for name, size in report.sections.items() if name in sizes} == {
        name: size for name, size in sizes.items() if name in report.sections
    }
    assert report.sections[".weights"] == sizes[".weights"]


def test_the_report_is_json_and_names_hash_and_verdict(x86: Case) -> None:
    firmware = x86.build()
    report = x86.inspect(firmware)
    data = json.loads(json.dumps(report_to_json(report)))
    said = subprocess.run(["sha256sum", str(firmware.elf)], check=True, capture_output=True, text=True).stdout
    assert data["sha256"] == said.split()[0]
    assert data["ok"] is True
    assert data["elf"] == "colibri_inference"
    assert {check["name"] for check in data["checks"]} >= {"fully static", "weights are the model's", CODE}
