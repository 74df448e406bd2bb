"""The instruction tables: each group's instructions are found, and the base ISA's are not taken for one of them.

A missing pattern would let a firmware pass that dies with SIGILL on the board. The judges are the assembler, which
encodes, and objdump, GNU's and LLVM's, which names.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.elf.code_checks import code_checks
from colibri_build.elf.disassembly import Function, Listing, disassemble
from colibri_build.elf.isa import fused_rule, rules_for, unknown_rule
from colibri_build.target.board import load_board
from colibri_build.target.toolchain import resolve_toolchain

AARCH64_FORBIDDEN = {
    "aes": ["aese v0.16b, v1.16b", "aesmc v0.16b, v1.16b"],
    "pmull": ["pmull v0.1q, v1.1d, v2.1d", "pmull2 v0.1q, v1.2d, v2.2d"],
    "sha1": ["sha1h s0, s1", "sha1c q0, s1, v2.4s", "sha1su0 v0.4s, v1.4s, v2.4s"],
    "sha2": ["sha256h q0, q1, v2.4s", "sha256su0 v0.4s, v1.4s"],
    "dotprod": ["sdot v0.4s, v1.16b, v2.16b", "udot v0.2s, v1.8b, v2.4b[1]"],
    "fp16-arith": ["fadd h0, h1, h2", "fmul v0.8h, v1.8h, v2.8h", "fcvtzs w0, h1", "scvtf h0, w1", "fmov h0, w1",
                   "fmlal v0.4s, v1.4h, v2.4h", "fcmgt v0.4h, v1.4h, #0.0", "scvtf v0.8h, v1.8h", "fabs h0, h1"],
    "lse": ["ldadd w0, w1, [x2]", "ldaddal x0, x1, [x2]", "ldclrb w0, w1, [x2]", "stadd w0, [x1]", "ldsmaxh w0, w1, [x2]",
            "swp w0, w1, [x2]", "swpalb w0, w1, [x2]", "cas w0, w1, [x2]", "casal x0, x1, [x2]",
            "casp x0, x1, x2, x3, [x4]", "caslh w0, w1, [x2]"],
    "i8mm": ["smmla v0.4s, v1.16b, v2.16b", "usdot v0.4s, v1.16b, v2.16b", "usmmla v0.4s, v1.16b, v2.16b"],
    "sve": ["add z0.s, z1.s, z2.s", "ptrue p0.b", "ld1b {z0.b}, p0/z, [x0]", "cntd x0", "rdvl x0, #1", "incb x0",
            "whilelo p0.s, x0, x1", "sel z0.b, p0, z1.b, z2.b"],
    "sha512, sha3, sm3, sm4": ["eor3 v0.16b, v1.16b, v2.16b, v3.16b", "sha512h q0, q1, v2.2d"],
    "rcpc": ["ldapr w0, [x1]", "ldaprb w0, [x1]"],
    "rdm": ["sqrdmlah v0.4s, v1.4s, v2.4s"],
    "complex": ["fcadd v0.4s, v1.4s, v2.4s, #90"],
    "bf16": ["bfdot v0.4s, v1.8h, v2.8h", "bfcvt h0, s1"],
    "jscvt, frint": ["fjcvtzs w0, d1", "frint32z s0, s1"],
    "flagm": ["cfinv", "rmif x0, #1, #2"],
    "pauth": ["pacia x0, x1", "retaa", "autia x0, x1", "braa x0, x1"],
    "mte": ["irg x0, x1", "stg x0, [x1]", "ldg x0, [x1]"],
    "sb, ls64, wfxt": ["sb"],
}  # fmt: skip
AARCH64_ALLOWED = [
    "crc32b w0, w1, w2", "pmull v0.8h, v1.8b, v2.8b", "smull v0.4s, v1.4h, v2.4h", "smlal v0.4s, v1.4h, v2.4h",
    "fcvt s0, h1", "fcvt h0, s1", "fcvtl v0.4s, v1.4h", "fcvtl2 v0.4s, v1.8h", "fcvtn v0.4h, v1.4s", "ldr h0, [x0]",
    "dup v0.8h, w0", "add v0.8h, v1.8h, v2.8h", "mla v0.8h, v1.8h, v2.8h", "sqrdmulh v0.8h, v1.8h, v2.8h",
    "ldxr w0, [x1]", "stlxr w0, w1, [x2]", "ldar w0, [x1]", "ldset: ldrb w0, [x1]", "paciasp", "xpaclri", "bti c",
    "fadd s0, s1, s2", "fmul v0.4s, v1.4s, v2.4s", "sadalp v0.4s, v1.8h", "casual: nop", "cnt v0.8b, v1.8b",
    "addg1: add x0, x1, #16", "sub sp, sp, #16", "stur w0, [x1, #1]", "ins v0.h[1], w2", "umov w0, v1.h[2]", "ret",
]  # fmt: skip
AARCH64_FUSED = [
    "fmadd s0, s1, s2, s3",
    "fnmsub d0, d1, d2, d3",
    "fmla v0.4s, v1.4s, v2.4s",
    "fmls v0.4s, v1.4s, v2.s[1]",
]

X86_FORBIDDEN = {
    "avx512": ["vaddps %zmm0, %zmm1, %zmm2", "vpternlogd $1, %xmm0, %xmm1, %xmm2", "vmovdqu8 %ymm0, %ymm1",
               "vaddps %xmm17, %xmm1, %xmm2", "kmovw %eax, %k1", "vpaddd %ymm1, %ymm2, %ymm3{%k1}",
               "vpabsq %xmm0, %xmm1"],
    "avx-vnni": ["{vex} vpdpbusd %ymm0, %ymm1, %ymm2", "{vex} vpdpwssd %xmm0, %xmm1, %xmm2"],
    "aes": ["aesenc %xmm0, %xmm1", "vaesdec %xmm0, %xmm1, %xmm2", "aeskeygenassist $1, %xmm0, %xmm1"],
    "pclmul": ["pclmulqdq $1, %xmm0, %xmm1"],
    "sha": ["sha1msg1 %xmm0, %xmm1", "sha256rnds2 %xmm0, %xmm1, %xmm2"],
    "gfni": ["gf2p8mulb %xmm0, %xmm1", "vgf2p8mulb %ymm0, %ymm1, %ymm2"],
    "adx": ["adcx %rax, %rbx", "adox %eax, %ebx"],
    "rdrand": ["rdrand %eax", "rdseed %rax"],
    "rtm": ["xbegin .", "xend", "xtest"],
}  # fmt: skip
X86_ALLOWED = [
    "vpaddd %ymm1, %ymm2, %ymm3", "vpmaddubsw %ymm0, %ymm1, %ymm2", "vcvtph2ps %xmm0, %ymm1", "tzcnt %eax, %ebx",
    "lzcnt %rax, %rbx", "mulx %rax, %rbx, %rcx", "movbe (%rax), %ebx", "popcnt %eax, %ebx", "lock cmpxchg %ecx, (%rdx)",
    "endbr64", "adc %rax, %rbx", "rep stosb", "vmovdqu (%rax), %ymm15", "add %al, %bl", "vbroadcastss (%rax), %ymm1",
    "vpermd %ymm0, %ymm1, %ymm2", "xchg %eax, (%rbx)", "bswap %eax", "pshufb %xmm0, %xmm1", "ret",
]  # fmt: skip
X86_FUSED = [
    "vfmadd231ps %ymm0, %ymm1, %ymm2",
    "vfnmsub132sd %xmm0, %xmm1, %xmm2",
    "vfmaddsub213ps %ymm0, %ymm1, %ymm2",
]

COMPILERS = {"aarch64": ("aarch64-linux-gnu-gcc", "-march=armv8.5-a+sve+crypto+sha3+dotprod+fp16fml+i8mm+bf16+memtag+sb"),
             "x86_64": ("gcc", "-m64")}  # fmt: skip
BOARDS = {"aarch64": "cortex-a53", "x86_64": "x86-64-v3"}
GNU = {"aarch64": "aarch64-linux-gnu-objdump", "x86_64": "objdump"}
FORBIDDEN = {"aarch64": AARCH64_FORBIDDEN, "x86_64": X86_FORBIDDEN}


def assemble(tmp: Path, arch: str, instructions: list[str]) -> Path:
    """One function a line of `instructions`: f0, f1 ..."""
    lines = [".text"]
    for i, instruction in enumerate(instructions):
        lines += [f".global f{i}", f".type f{i}, %function", f"f{i}:", instruction]
    source, obj = tmp / "code.s", tmp / "code.o"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run([*COMPILERS[arch], "-c", str(source), "-o", str(obj)], check=True)
    return obj


def functions_of(tmp: Path, arch: str, objdump: str, instructions: list[str]) -> dict[str, Function]:
    toolchain = replace(resolve_toolchain(load_board(BOARDS[arch]), "debian-gcc", check=False), objdump=(objdump,))
    return {f.name: f for f in disassemble((assemble(tmp, arch, instructions),), toolchain).functions()}


def groups_in(function: Function, arch: str) -> set[str]:
    rules = (*rules_for(load_board(BOARDS[arch])), unknown_rule())
    return {rule.group for rule in rules if rule.pattern.search("\n".join(function.code))}


@pytest.mark.parametrize("tool", ["gnu", "llvm-objdump"])
@pytest.mark.parametrize("arch", ["aarch64", "x86_64"])
def test_every_forbidden_instruction_is_found_in_its_group(tmp_path: Path, arch: str, tool: str) -> None:
    expected = [(group, text) for group, texts in FORBIDDEN[arch].items() for text in texts]
    functions = functions_of(tmp_path, arch, GNU[arch] if tool == "gnu" else tool, [text for _, text in expected])
    missed = [
        (group, text, functions[f"f{i}"].code)
        for i, (group, text) in enumerate(expected)
        if group not in groups_in(functions[f"f{i}"], arch)
    ]
    assert not missed


@pytest.mark.parametrize("tool", ["gnu", "llvm-objdump"])
@pytest.mark.parametrize(("arch", "allowed"), [("aarch64", AARCH64_ALLOWED), ("x86_64", X86_ALLOWED)], ids=BOARDS)
def test_no_instruction_of_the_board_is_refused(tmp_path: Path, arch: str, allowed: list[str], tool: str) -> None:
    functions = functions_of(tmp_path, arch, GNU[arch] if tool == "gnu" else tool, allowed)
    assert len(functions) >= len(allowed)
    wrong = {name: (f.code, groups_in(f, arch)) for name, f in functions.items() if groups_in(f, arch)}
    assert not wrong


@pytest.mark.parametrize(
    ("arch", "fused", "other"),
    [("aarch64", AARCH64_FUSED, AARCH64_ALLOWED), ("x86_64", X86_FUSED, X86_ALLOWED)],
    ids=BOARDS,
)
def test_fused_multiply_add_is_found_and_integer_multiply_add_is_not(
    tmp_path: Path, arch: str, fused: list[str], other: list[str]
) -> None:
    rule = fused_rule(arch)
    functions = functions_of(tmp_path, arch, GNU[arch], fused + other)
    found = [i for i in range(len(fused + other)) if rule.pattern.search("\n".join(functions[f"f{i}"].code))]
    assert found == list(range(len(fused)))


def test_a_board_with_a_feature_may_use_it() -> None:
    """The TDA4VM's A72 has AES; the A53 of a Raspberry Pi has not."""
    groups = {board: {rule.group for rule in rules_for(load_board(board))} for board in ("tda4vm", "cortex-a53")}
    assert "aes" in groups["cortex-a53"]
    assert "aes" not in groups["tda4vm"]
    assert "lse" in groups["tda4vm"]
    assert "crc32" not in groups["cortex-a53"]


def listing_of(**functions: str) -> Listing:
    """What objdump would print for functions of one instruction."""
    lines = [line for name, code in functions.items() for line in (f"0000 <{name}>:", f"  4:\tb82083ff \t{code}")]
    return Listing(tuple(lines), "aarch64")


def test_only_the_librarys_functions_are_excused_and_only_for_their_group() -> None:
    board = load_board("cortex-a53")
    swap, sve = "swp\tw0, w0, [x1]", "cntb\tx0"
    own, library = listing_of(main="nop"), {"__aarch64_swp4_acq": swap, "__memcpy_sve": sve, "main": "nop"}
    assert code_checks(own, listing_of(**library), board, 1)[1].ok
    for name, code in (("__aarch64_cas4_acq", sve), ("memcpy", swap), ("my__aarch64_swp4", swap)):
        check = code_checks(own, listing_of(**library, **{name: code}), board, 1)[1]
        assert not check.ok
        assert check.detail.startswith(f"{name} has `{code.expandtabs(1)}`")
    impostor = listing_of(__aarch64_swp4_acq=swap)  # a function of ours with the library's name
    assert not code_checks(impostor, listing_of(**library), board, 1)[1].ok


def test_padding_of_zero_bytes_is_no_instruction(tmp_path: Path) -> None:
    functions = functions_of(tmp_path, "aarch64", GNU["aarch64"], ["ret\n.word 0\n.word 0", "ret"])
    assert functions["f0"].code == ("ret",)
    bad = functions_of(tmp_path, "aarch64", GNU["aarch64"], [".inst 0xffffffff", "ret"])
    assert groups_in(bad["f0"], "aarch64") == {"unknown instruction"}
