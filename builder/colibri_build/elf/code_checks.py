"""Checks of the instructions: the board's ISA, and no fused multiply-add."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from pathlib import Path

from colibri_build.artifacts import Check
from colibri_build.elf.disassembly import Function
from colibri_build.elf.isa import Rule, fused_rule, rules_for, unknown_rule
from colibri_build.target.board import Board

_SHOWN = 3  # findings named in a check's detail


def code_checks(
    objects: Sequence[Function], linked: Sequence[Function], board: Board, n_files: int
) -> tuple[Check, ...]:
    """Judge our own `objects` without exception, and the `linked` binary with what the C library guards.

    Fused multiply-add is looked for in our objects alone: the C library's own arithmetic reaches no logit.
    """
    rules = rules_for(board)
    ours = {function.name for function in objects}
    groups = ", ".join(rule.group for rule in rules)
    return (
        _check(
            "objects hold only the board's instructions",
            _findings(objects, (*rules, unknown_rule())),
            f"{len(objects)} functions in {n_files} objects: no {groups}",
        ),
        _check(
            "binary holds only the board's instructions",
            _findings(linked, rules, ours),
            _binary_detail(linked, rules, ours, board),
        ),
        _check(
            "no fused multiply-add",
            _findings(objects, (fused_rule(board.arch),)),
            f"{len(objects)} functions in {n_files} objects",
        ),
    )


def objects_missing(folder: Path) -> Check:
    """Verdict where there is nothing to disassemble: what was not looked at is not sound."""
    return Check("objects hold only the board's instructions", False, f"no object files in {folder.name}/: build again")


def _check(name: str, findings: Sequence[str], detail: str) -> Check:
    if not findings:
        return Check(name, True, detail)
    more = f" and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return Check(name, False, "; ".join(findings[:_SHOWN]) + more)


def _findings(functions: Iterable[Function], rules: Sequence[Rule], strict: Set[str] | None = None) -> list[str]:
    """One line a function and group. Outside `strict` (None: everything is strict) guarded functions may pass."""
    found: list[str] = []
    for function in functions:
        for rule in rules:
            match = rule.pattern.search(function.code)
            if match and not (strict is not None and _is_guarded(function.name, rule, strict)):
                found.append(f"{function.name} has `{_line_at(function.code, match.start())}` ({rule.group})")
    return found


def _is_guarded(name: str, rule: Rule, ours: Set[str]) -> bool:
    return name not in ours and rule.guarded is not None and rule.guarded.fullmatch(name) is not None


def _binary_detail(linked: Sequence[Function], rules: Sequence[Rule], ours: Set[str], board: Board) -> str:
    """How many library functions hold newer instructions behind a run-time check."""
    behind = {
        function.name
        for function in linked
        for rule in rules
        if _is_guarded(function.name, rule, ours) and rule.pattern.search(function.code)
    }
    return f"{len(linked)} functions; {len(behind)} of the C library's choose newer instructions at run time"


def _line_at(code: str, start: int) -> str:
    end = code.find("\n", start)
    return code[start : end if end >= 0 else len(code)]
