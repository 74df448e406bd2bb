"""Compares a firmware's answers with the reference's: token ids, logits hash, reason to stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from colibri_build.artifacts import Generation
from colibri_build.run.process import run_firmware
from colibri_build.run.runner import Runner


@dataclass(frozen=True)
class VerifyResult:
    """One golden prompt on one number of threads. `error` is the firmware's message if it refused the run."""

    prompt: str
    threads: int
    expected_ids: tuple[int, ...]
    got_ids: tuple[int, ...]
    expected_hash: str
    got_hash: str
    expected_stop: str
    got_stop: str
    prompt_tokens_equal: bool  # else the tokenizers differ
    error: str | None

    @property
    def ids_equal(self) -> bool:
        """Whether every chosen token is the reference's."""
        return self.expected_ids == self.got_ids

    @property
    def hash_equal(self) -> bool:
        """Whether every logit has the reference's bits."""
        return self.expected_hash == self.got_hash

    @property
    def stop_equal(self) -> bool:
        """Whether the answer ended for the same reason."""
        return self.expected_stop == self.got_stop

    @property
    def first_difference(self) -> int | None:
        """Position of the first token that differs or is missing on one side; None if the ids are equal."""
        if self.ids_equal:
            return None
        pairs = zip(self.expected_ids, self.got_ids, strict=False)
        shorter = min(len(self.expected_ids), len(self.got_ids))
        return next((i for i, (expected, got) in enumerate(pairs) if expected != got), shorter)

    @property
    def ok(self) -> bool:
        """Whether everything is equal."""
        same = self.ids_equal and self.hash_equal and self.stop_equal and self.prompt_tokens_equal
        return same and self.error is None


@dataclass(frozen=True)
class VerifyReport:
    """All golden prompts on all thread counts, on one runner."""

    runner: str
    results: tuple[VerifyResult, ...]

    @property
    def ok(self) -> bool:
        """Whether there was something to compare, and all of it is equal."""
        return bool(self.results) and all(result.ok for result in self.results)


def verify_firmware(
    runner: Runner,
    elf: Path,
    golden: Sequence[Generation],
    threads: Sequence[int] = (1, 2),
    timeout_s: float = 300.0,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> VerifyReport:
    """Run every golden prompt with every number of threads; `timeout_s` holds for each run.

    `on_progress` gets (what, done, total) before each run.
    Raises RunError or DeadlineError if the firmware does not run; an answer that differs is a result, not an error.
    """
    results: list[VerifyResult] = []
    for generation in golden:
        for n_threads in threads:
            if on_progress:
                on_progress("runs", len(results), len(golden) * len(threads))
            args = _arguments(generation, n_threads)
            transcript = run_firmware(runner, elf, args, timeout_s=timeout_s)
            results.append(compare(generation, transcript.status, n_threads))
    return VerifyReport(str(runner), tuple(results))


def most_tokens(golden: Generation) -> int:
    """How many tokens to ask for: one more than an answer that must end by itself."""
    return len(golden.ids) if golden.stop == "length" else len(golden.ids) + 1


def _arguments(golden: Generation, threads: int) -> list[str]:
    return [f"--prompt={golden.prompt}", f"--max-tokens={most_tokens(golden)}", f"--threads={threads}"]


def compare(golden: Generation, status: Mapping[str, Any], threads: int | None = None) -> VerifyResult:
    """Hold the status of a run against the reference's answer. `threads`: as asked for; None: what the status says."""
    error = None if status["status"] == "ok" else str(status.get("message", status["status"]))
    return VerifyResult(
        prompt=golden.prompt,
        threads=status["threads"] if threads is None else threads,
        expected_ids=golden.ids,
        got_ids=tuple(status["ids"]),
        expected_hash=golden.logits_hash,
        got_hash=status["logits_hash"],
        expected_stop=golden.stop,
        got_stop=status["stop"],
        prompt_tokens_equal=status["prompt_tokens"] == len(golden.prompt_ids),
        error=error,
    )


def verify_to_json(report: VerifyReport) -> dict[str, Any]:
    """Return the report with its verdicts, ready for json.dumps."""
    return {"ok": report.ok, "runner": report.runner, "results": [_result_to_json(row) for row in report.results]}


def _result_to_json(row: VerifyResult) -> dict[str, Any]:
    verdicts = {
        "ok": row.ok,
        "ids_equal": row.ids_equal,
        "hash_equal": row.hash_equal,
        "stop_equal": row.stop_equal,
        "first_difference": row.first_difference,
    }
    return {**asdict(row), **verdicts}
