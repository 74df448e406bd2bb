"""Checks of the instructions: the board's ISA, and no fused multiply-add."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from colibri_build.artifacts import Check
from colibri_build.elf.disassembly import Listing
from colibri_build.elf.isa import Rule, fused_rule, rules_for, unknown_rule
from colibri_build.target.board import Board

_SHOWN = 3  # findings named in a check's detail


@dataclass(frozen=True)
class Match:
    """An instruction that a rule found."""

    function: str
    rule: Rule
    line: str


def code_checks(objects: Listing, linked: Listing, board: Board, n_files: int) -> tuple[Check, ...]:
    """Judge our own `objects` without exception, and the `linked` binary with what the C library guards.

    Fused multiply-add is looked for in our objects alone: the C library's own arithmetic reaches no logit.
    """
    rules = rules_for(board)
    ours = objects.names()
    groups = ", ".join(rule.group for rule in rules)
    seen = f"{len(ours)} functions in {n_files} objects"
    in_binary = _matches(linked, rules)
    guarded = {match.function for match in in_binary if _is_guarded(match, ours)}
    return (
        _check(
            "objects hold only the board's instructions",
            _matches(objects, (*rules, unknown_rule())),
            f"{seen}: no {groups}",
        ),
        _check(
            "binary holds only the board's instructions",
            [match for match in in_binary if not _is_guarded(match, ours)],
            f"{len(linked.names())} functions; {len(guarded)} of the C library's hold newer ones behind a run-time check",
        ),
        _check("no fused multiply-add", _matches(objects, (fused_rule(board.arch),)), seen),
    )


def objects_missing(folder: Path) -> Check:
    """Verdict where there is nothing to disassemble: what was not looked at is not sound."""
    return Check("objects hold only the board's instructions", False, f"no object files in {folder.name}/: build again")


def _check(name: str, matches: Sequence[Match], detail: str) -> Check:
    if not matches:
        return Check(name, True, detail)
    found = [f"{match.function} has `{match.line}` ({match.rule.group})" for match in matches[:_SHOWN]]
    more = f" and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
    return Check(name, False, "; ".join(found) + more)


def _matches(listing: Listing, rules: Sequence[Rule]) -> list[Match]:
    """One entry a function and rule."""
    instructions = listing.instructions()
    text = "\n".join(instructions)
    hits = [(rule, _line_at(text, match.start())) for rule in rules for match in rule.pattern.finditer(text)]
    owners = listing.owners({form for _, line in hits for form in instructions[line]})
    found: dict[tuple[str, str], Match] = {}
    for rule, line in hits:
        for form in instructions[line]:
            for name in owners[form]:
                found.setdefault((name, rule.group), Match(name, rule, line))
    return sorted(found.values(), key=lambda match: (match.function, match.rule.group))


def _is_guarded(match: Match, ours: Set[str]) -> bool:
    guarded = match.rule.guarded
    return match.function not in ours and guarded is not None and guarded.fullmatch(match.function) is not None


def _line_at(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]
