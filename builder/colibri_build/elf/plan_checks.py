"""Checks of the real sizes against the plan."""

from __future__ import annotations

from collections.abc import Callable

from colibri_build.artifacts import BuildPlan, Check
from colibri_build.elf.facts import ALLOC, EXECUTE, WRITE, ElfFacts, Section
from colibri_build.elf.stack import STACKS_REGION
from colibri_build.elf.weight_checks import SECTION

# Static memory of the runtime: region of the plan -> symbol. Both are exact, so they must be equal.
_EXACT = {"KV cache": "kv_cache", "arena": "arena", "trace ring": "trace_ring"}
_TRACER = "trace_"  # what the symbols of a debug build begin with


def plan_checks(elf: ElfFacts, plan: BuildPlan) -> tuple[Check, ...]:
    """The whole file against flash, everything mapped against RAM, and the planned buffers one by one."""
    return (_flash(elf, plan), _memory(elf, plan), _buffers(elf, plan), _debug(elf, plan))


def _flash(elf: ElfFacts, plan: BuildPlan) -> Check:
    code = _bytes(elf, lambda s: bool(s.flags & EXECUTE))
    constants = _bytes(elf, lambda s: not s.flags & (EXECUTE | WRITE) and s.name != SECTION)
    weights = _bytes(elf, lambda s: s.name == SECTION)
    parts = f"code {code}, constants {constants}, weights {weights}"
    detail = f"{elf.file_bytes} of {plan.flash_bytes} planned bytes ({parts})"
    return Check("file within the plan", elf.file_bytes <= plan.flash_bytes, detail)


def _memory(elf: ElfFacts, plan: BuildPlan) -> Check:
    mapped = sum(segment.memory_bytes for segment in elf.loads())
    stacks = sum(region.ram_bytes for region in plan.regions if region.name == STACKS_REGION)
    writable = _bytes(elf, lambda s: bool(s.flags & WRITE))
    detail = f"{mapped + stacks} of {plan.ram_bytes} planned bytes (writable {writable}, thread stacks {stacks})"
    return Check("memory within the plan", mapped + stacks <= plan.ram_bytes, detail)


def _buffers(elf: ElfFacts, plan: BuildPlan) -> Check:
    planned = {_EXACT[region.name]: region.ram_bytes for region in plan.regions if region.name in _EXACT}
    faults, sizes = [], []
    for name, expected in planned.items():
        symbol = elf.symbols.get(name)
        sizes.append(f"{name} {expected}")
        if symbol is None:
            faults.append(f"{name} is missing")
        elif symbol.bytes != expected:
            faults.append(f"{name} has {symbol.bytes} bytes, the plan says {expected}")
    return Check("buffers as planned", not faults, "; ".join(faults) or ", ".join(sizes) + " bytes")


def _debug(elf: ElfFacts, plan: BuildPlan) -> Check:
    """Records cost time and say what the user asked: a firmware holds none of it unless it was built to."""
    found = sorted(name for name in elf.symbols if name.startswith(_TRACER))
    debug = plan.options.debug
    if debug:
        return Check("debug build", bool(found), f"records {', '.join(debug)}: not for use in the field")
    return Check("no debug build", not found, ", ".join(found[:3]) or f"no symbol {_TRACER}*")


def _bytes(elf: ElfFacts, wanted: Callable[[Section], bool]) -> int:
    return sum(section.bytes for section in elf.sections if section.flags & ALLOC and wanted(section))
