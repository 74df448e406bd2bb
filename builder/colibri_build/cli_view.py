"""What the commands show to people: tables and progress. Data comes in, rich renderables go out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from colibri_build.artifacts import BuildPlan, BuildReport
from colibri_build.pipeline import Events
from colibri_build.quantize.report import QuantizeReport
from colibri_build.run.verify import VerifyReport, VerifyResult
from colibri_build.target.board import BoardSummary
from colibri_build.target.doctor import Finding


def out_console() -> Console:
    """Console for results. A pipe gets the width that the tables need."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def err_console() -> Console:
    """Console for progress and errors."""
    return Console(stderr=True, highlight=False)


def human_bytes(count: int) -> str:
    """Bytes in KiB or MiB as a person reads them."""
    if count < 1024:
        return f"{count} B"
    if count < 1024 * 1024:
        return f"{count / 1024:.1f} KiB"
    return f"{count / 1024 / 1024:.2f} MiB"


class TerminalEvents(Events):
    """Stages and bars on stderr; bars only on a terminal. With `verbose`, every command as it is run."""

    def __init__(self, console: Console, progress: Progress | None, verbose: bool, quiet: bool) -> None:
        self._console, self._progress, self._verbose, self._quiet = console, progress, verbose, quiet
        self._task: TaskID | None = None

    def stage(self, text: str) -> None:
        """Print the stage's name."""
        self._end_task()
        if not self._quiet:
            self._console.print(Text(f"== {text}", style="bold"))

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar of the current stage."""
        if self._progress is None:
            return
        if self._task is None:
            self._task = self._progress.add_task(what, total=total)
        self._progress.update(self._task, description=what, completed=done, total=total)

    def command(self, argv: Sequence[str]) -> None:
        """Print the command with -v."""
        if self._verbose:
            self._console.print(Text(shlex.join(argv), style="dim"), soft_wrap=True)

    def _end_task(self) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
        self._task = None


@contextmanager
def terminal_events(*, verbose: bool = False, quiet: bool = False) -> Iterator[TerminalEvents]:
    """Events for one command. The bars vanish at its end."""
    console = err_console()
    if not console.is_terminal:
        yield TerminalEvents(console, None, verbose, quiet)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield TerminalEvents(console, progress, verbose, quiet)


def _table(title: str, *columns: tuple[str, str]) -> Table:
    """Return a table with (heading, "left" or "right") columns."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for heading, justify in columns:
        table.add_column(heading, justify="right" if justify == "right" else "left", overflow="fold")
    return table


def plan_table(plan: BuildPlan) -> Table:
    """The budget: each region with its sum, then what the board has."""
    title = f"Plan: {plan.model} on {plan.board}, context {plan.options.context}"
    table = _table(title, ("region", "left"), ("flash", "right"), ("RAM", "right"), ("sum", "left"))
    for region in plan.regions:
        sizes = human_bytes(region.flash_bytes), human_bytes(region.ram_bytes)
        table.add_row(region.name, *sizes, Text(region.sum))
    table.add_section()
    table.add_row("total", human_bytes(plan.flash_bytes), human_bytes(plan.ram_bytes), "")
    table.add_row("board's budget", human_bytes(plan.flash_budget_bytes), human_bytes(plan.ram_budget_bytes), "")
    if plan.bound_tokens_per_s is not None:
        bound = f"read bandwidth / {human_bytes(plan.active_weight_bytes)} of weights a token: a bound, no forecast"
        table.add_row("at most", "", "", f"{plan.bound_tokens_per_s:.0f} tokens/s ({bound})")
    return table


def report_table(report: BuildReport) -> Table:
    """The promises about the binary, one a line."""
    table = _table(f"Inspection: {report.elf}", ("check", "left"), ("", "left"), ("found", "left"))
    for check in report.checks:
        verdict = Text("ok", style="green") if check.ok else Text("FAILED", style="bold red")
        table.add_row(check.name, verdict, Text(check.detail))
    return table


def verify_table(report: VerifyReport) -> Table:
    """One line a golden prompt and thread count."""
    table = _table(
        f"Verify: firmware against the reference, {report.runner}",
        ("prompt", "left"),
        ("threads", "right"),
        ("tokens", "right"),
        ("ids", "left"),
        ("logits hash", "left"),
        ("reference", "left"),
    )
    for row in report.results:
        style = "green" if row.hash_equal else "bold red"
        table.add_row(
            Text(row.prompt[:48]),
            str(row.threads),
            str(len(row.got_ids)),
            _ids_verdict(row),
            Text(row.got_hash, style=style),
            row.expected_hash,
        )
    return table


def _ids_verdict(row: VerifyResult) -> Text:
    """How an answer's tokens compare: where they part, or what the firmware said instead of answering."""
    if row.error is not None:
        return Text(f"REFUSED: {row.error}", style="bold red")
    if not row.prompt_tokens_equal:
        return Text("OTHER PROMPT TOKENS", style="bold red")
    if not row.ids_equal:
        return Text(f"DIFFERENT from token {row.first_difference}", style="bold red")
    if not row.stop_equal:
        return Text(f"stopped by {row.got_stop}, not {row.expected_stop}", style="bold red")
    return Text("equal", style="green")


def quantize_table(report: QuantizeReport) -> Table:
    """Error of each tensor kind."""
    table = _table(
        "Quantization",
        ("kind", "left"),
        ("format", "left"),
        ("tensors", "right"),
        ("size", "right"),
        ("relative RMS error", "right"),
        ("largest error", "right"),
    )
    for row in report.kinds:
        table.add_row(
            str(row.kind),
            str(row.format),
            str(row.tensors),
            human_bytes(row.bytes),
            f"{row.relative_rms_error:.2e}",
            f"{row.max_abs_error:.2e}",
        )
    return table


def calibration_table(report: QuantizeReport) -> Table:
    """What AWQ saw and won: calibration tokens by expert, output error of each layer's searches before and after."""
    title = f"AWQ: {report.calibration_tokens} calibration tokens; experts with too few are rounded to nearest"
    table = _table(title, ("layer", "right"), ("tokens by expert", "left"), ("error rtn -> awq", "right"))
    for layer, tokens in enumerate(report.expert_tokens):
        gains = [gain for gain in report.gains if gain.folded_into.startswith(f"layers.{layer}.")]
        before, after = sum(gain.loss_rtn for gain in gains), sum(gain.loss_final for gain in gains)
        table.add_row(str(layer), " ".join(map(str, tokens)), f"{after / before - 1:+.0%}" if before else "-")
    for fallback in report.fallbacks:
        text = f"{fallback.expert}: {fallback.tokens} tokens, {fallback.needed} needed: rounded to nearest"
        table.add_row("", text, "")
    return table


def boards_table(boards: Sequence[BoardSummary]) -> Table:
    """The boards that are known."""
    table = _table("Boards", ("name", "left"), ("cpu", "left"), ("RAM budget", "right"), ("description", "left"))
    for board in boards:
        table.add_row(board.name, board.cpu, f"{board.ram_budget_mib} MiB", board.description)
    return table


def doctor_table(findings: Sequence[Finding]) -> Table:
    """What this machine has, and the command that installs what it lacks."""
    table = _table("Doctor", ("part", "left"), ("", "left"), ("found", "left"), ("install with", "left"))
    for finding in findings:
        verdict = Text("ok", style="green") if finding.ok else Text("missing", style="bold red")
        table.add_row(finding.name, verdict, Text(finding.detail), Text("" if finding.ok else finding.fix))
    return table
