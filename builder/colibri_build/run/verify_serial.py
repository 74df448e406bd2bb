"""Compares a board's answers over a serial line with the reference's, and with those of an emulated run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from colibri_build.artifacts import Generation
from colibri_build.errors import VerifyError
from colibri_build.run.client import DEFAULT_TIMEOUT_S, Client, GenerateOptions
from colibri_build.run.link import Peer
from colibri_build.run.verify import VerifyReport, VerifyResult, compare, most_tokens

_DIGEST_DIGITS = 16  # that a board tells when a session opens


def require_same_model(peer: Peer, model: str) -> None:
    """Raise VerifyError unless the board holds the model of a build. `model`: its digest."""
    if peer.digest != model[:_DIGEST_DIGITS]:
        raise VerifyError(
            f"the board holds model {peer.digest}, the build is {model[:_DIGEST_DIGITS]}",
            hint="flash this build, or name the build that is on the board",
        )


def verify_board(
    client: Client,
    golden: Sequence[Generation],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> VerifyReport:
    """Ask the board every golden prompt; `timeout_s` holds for each.

    `on_progress` gets (what, done, total) before each. Raises RunError or DeadlineError if the line or the board fails; an
    answer that differs is a result, not an error.
    """
    results: list[VerifyResult] = []
    for generation in golden:
        if on_progress:
            on_progress("prompts", len(results), len(golden))
        options = GenerateOptions(max_tokens=most_tokens(generation))
        results.append(compare(generation, client.generate(generation.prompt, options, timeout_s=timeout_s)))
    return VerifyReport(client.link.port.name, tuple(results))


def difference_lines(board: VerifyReport, emulated: VerifyReport | None) -> list[str]:
    """Return a line for each value in which the board differs from the reference, or from the emulated run.

    Empty if all agree. Both reports are of the same golden prompts in the same order, one result each.
    """
    others: Sequence[VerifyResult | None] = emulated.results if emulated else [None] * len(board.results)
    lines: list[str] = []
    for number, (row, other) in enumerate(zip(board.results, others, strict=True), start=1):
        found = list(_differences(row, other))
        if found:
            lines += [f"prompt {number}: {row.prompt!r}", *(f"  {line}" for line in found)]
    return lines


def _differences(row: VerifyResult, other: VerifyResult | None) -> Iterator[str]:
    if row.error is not None:
        yield f"the board refused it: {row.error}"
        return
    if not row.prompt_tokens_equal:
        yield "the board made other tokens of the prompt than the reference"
    emulated_ids = other.got_ids if other else row.expected_ids
    for index, ids in enumerate(zip_longest(row.expected_ids, emulated_ids, row.got_ids, fillvalue="none")):
        yield from _line(f"token {index}", ids, other is not None)
    stops = row.expected_stop, other.got_stop if other else row.expected_stop, row.got_stop
    yield from _line("stop", stops, other is not None)
    hashes = row.expected_hash, other.got_hash if other else row.expected_hash, row.got_hash
    yield from _line("logits hash", hashes, other is not None)


def _line(what: str, values: tuple[object, object, object], has_emulated: bool) -> Iterator[str]:
    """One line for (reference, emulated, board) unless they are equal."""
    reference, emulated, board = values
    if len(set(values)) > 1:
        middle = f"QEMU {emulated!s:<18}" if has_emulated else ""
        yield f"{what:<12} reference {reference!s:<18}{middle}board {board}"
