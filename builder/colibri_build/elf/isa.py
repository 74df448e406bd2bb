"""Which instructions belong to which group of a CPU's features, and who may contain one that the board lacks.

Patterns match the start of a disassembled instruction as disassembly.py normalises it: mnemonic, one space, operands
separated by commas; EVEX-encoded x86 instructions end in ` {evex}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from colibri_build.target.board import Board

_H_REGISTER = r"[^<\n]*\b(?:h\d+|v\d+\.[248]h)\b"
_SVE_REGISTER = r"[^<\n]*\b(?:z\d+(?:\.[bhsdq])?|p\d+(?:/[mz]|\.[bhsd]))\b"
_ORDER = r"(?:al?|l)?[bh]?"  # acquire, release; byte, halfword

AARCH64_GROUPS: Mapping[str, str] = {
    "crc32": r"crc32c?[bhwx] ",
    "aes": r"aes(?:e|d|mc|imc) ",
    "pmull": r"pmull2? v\d+\.1q",
    "sha1": r"sha1[a-z]",
    "sha2": r"sha256[a-z]",
    "dotprod": r"[su]dot v",
    # fcvt, fcvtl and fcvtn between precisions are ARMv8.0
    "fp16-arith": rf"(?:f(?!cvt(?:l2?|n2?|xn2?)? )[a-z0-9]+|[su]cvtf) {_H_REGISTER}",
    "lse": rf"(?:(?:ld|st)(?:add|clr|eor|set|[su]max|[su]min){_ORDER}|swp{_ORDER}|casp?{_ORDER}) ",
    "i8mm": r"(?:smmla|ummla|usmmla|usdot|sudot) v",
    "sve": rf"[a-z0-9.]+ {_SVE_REGISTER}|ptrue |pfalse |whilel[eost] |rdvl |addvl |addpl |"
    r"(?:cnt|[us]?q?inc|[us]?q?dec)[bhwdp] [xw]",
}
# Later than ARMv8.0-A and of no feature name in a board profile. Pointer authentication in hint space (paciasp, xpaclri
# ...) and bti do nothing on an older CPU and are no fault.
AARCH64_LATER: Mapping[str, str] = {
    "sha512, sha3, sm3, sm4": r"(?:sha512|eor3|rax1|xar|bcax|sm3[a-z]|sm4[a-z])",
    "rcpc": r"(?:ldapu?r[a-z]*|stlur[a-z]*) ",
    "rdm": r"sqrdml[as]h ",
    "complex": r"fcmla |fcadd ",
    "bf16": r"bf(?:dot|mmla|cvtn?2?|mlal[bt]) ",
    "jscvt, frint": r"fjcvtzs |frint(?:32|64)[xz] ",
    "flagm": r"(?:cfinv|rmif|setf8|setf16|axflag|xaflag)\b",
    "pauth": r"(?:pac|aut)[id][ab]z? x|pacga |xpac[id] |reta[ab]\b|b(?:l)?ra[ab]z? |eretaa|eretab|ldra[ab] ",
    "mte": r"(?:irg|gmi|ldgm?|stg|stzg|st2g|stz2g|stgp|stgm|stzgm|subps?|addg|subg) ",
    "mops": r"(?:cpyf?[pme][a-z]*|setg?[pme][a-z]*) \[",
    "sb, ls64, wfxt": r"sb$|ld64b |st64b|wfet |wfit ",
}

_VEX = r"v[a-z0-9]+ [^<\n]*%[xy]mm"
X86_64_GROUPS: Mapping[str, str] = {
    "avx2": _VEX,  # and plain AVX, which no profile names apart
    "fma": r"vfn?m(?:add|sub)",
    "f16c": r"vcvtph2ps|vcvtps2ph",
    "bmi1": r"(?:andn|bextr|blsi|blsmsk|blsr|tzcnt)[lq]? ",
    "bmi2": r"(?:bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx)[lq]? ",
    "lzcnt": r"lzcnt[wlq]? ",
    "movbe": r"movbe[wlq]? ",
    "aes": r"v?aes(?:enc|dec|imc|keygen)",
    "avx512": r".*(?:\{evex\}$|%zmm\d|%k[0-7]\b|%[xy]mm(?:1[6-9]|2\d|3[01])\b)",
    "avx-vnni": r"(?:\{vex\} )?vpdp[bw]",
}
X86_64_LATER: Mapping[str, str] = {
    "pclmul": r"v?pclmul",
    "sha": r"v?sha(?:1|256|512)[a-z]|vsm[34]",
    "gfni": r"v?gf2p8",
    "adx": r"(?:adcx|adox)[lq]? ",
    "rdrand": r"rdrand|rdseed",
    "rtm": r"(?:xbegin|xend|xabort|xtest)\b",
    "xsavec": r"xsave[cs]",
    "amx": r"(?:ld|st)tilecfg|tile(?:load|store|zero|release)|tdp",
    "waitpkg, movdir": r"umwait|tpause|umonitor|movdir|serialize|enqcmd",
}
# A board of another ISA version is judged by its own feature lists alone.
_LATER_THAN: Mapping[str, Mapping[str, str]] = {"ARMv8.0-A": AARCH64_LATER, "x86-64-v3": X86_64_LATER}

# The C library's and libgcc's functions that hold such instructions and run only where the CPU has them: chosen by an
# ifunc resolver or behind a test of the hardware capabilities. By group, whole names; never ours.
GUARDED: Mapping[str, Mapping[str, str]] = {
    "aarch64": {
        "lse": r"__aarch64_(?:cas|swp|ldadd|ldclr|ldeor|ldset)\w*",  # libgcc's outline atomics
        # libgcc's unwinder reads the vector length if a frame describes SVE registers
        "sve": r"__mem(?:cpy|move|set|chr)_(?:a64fx|sve)\w*|_Unwind_\w+|uw_\w+|execute_(?:stack_op|cfa_program)\w*",
        "mops": r"__mem(?:cpy|move|set)_mops\w*",
        # glibc's memory tagging: off unless a tunable and the CPU turn it on
        "mte": r"__libc_\w+|_*(?:int_|mid_)?(?:malloc|calloc|realloc|free|memalign)\w*(?:\.\w+)*|\w*mtag\w*",
    },
    "x86_64": {
        "avx512": r"\w+_(?:evex|avx512)\w*",
        "rtm": r"\w+_rtm\w*|_*lll_\w*elision\w*",
        "xsavec": r"_dl_\w+_xsavec",
    },
}

FUSED: Mapping[str, str] = {
    "aarch64": r"fn?m(?:add|sub) |fml[as]l?2? |fcmla ",
    "x86_64": r"vfn?m(?:add|sub)",
}
# Bytes that the disassembler cannot name: in our own code an instruction that nobody could check.
UNKNOWN = r"\.inst|undefined|<unknown>|\(bad\)|udf "


@dataclass(frozen=True)
class Rule:
    """One group that a binary must not contain, and the pattern of its instructions."""

    group: str
    pattern: re.Pattern[str]
    guarded: re.Pattern[str] | None  # library functions that may contain it


def rules_for(board: Board) -> tuple[Rule, ...]:
    """Every group that is outside the board's ISA: those its profile forbids or does not name as a feature."""
    groups = dict(AARCH64_GROUPS if board.arch == "aarch64" else X86_64_GROUPS)
    groups.update(_LATER_THAN.get(board.cpu.isa, {}))
    outside = {group: text for group, text in groups.items() if group not in board.cpu.features}
    guarded = GUARDED[board.arch]
    return tuple(_rule(group, text, guarded.get(group)) for group, text in outside.items())


def fused_rule(arch: str) -> Rule:
    """Fused multiply-add on floats: rounds once where the reference rounds twice."""
    return _rule("fused multiply-add", FUSED[arch], None)


def unknown_rule() -> Rule:
    """An instruction that the disassembler does not know."""
    return _rule("unknown instruction", UNKNOWN, None)


def _rule(group: str, pattern: str, guarded: str | None) -> Rule:
    at_line_start = re.compile(f"^(?:{pattern})", re.MULTILINE)
    return Rule(group, at_line_start, re.compile(guarded) if guarded else None)
