"""What the commands show to people: tables and progress. Data comes in, rich renderables go out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from colibri_build.events import Events

if TYPE_CHECKING:  # a command shows few of these, and imports what makes them
    from colibri_build.artifacts import BuildPlan, BuildReport
    from colibri_build.quantize.report import QuantizeReport
    from colibri_build.run.verify import VerifyReport, VerifyResult
    from colibri_build.target.board import BoardSummary
    from colibri_build.target.doctor import Finding
    from colibri_build.target.toolchain_profile import ToolchainProfile

PIPE_COLUMNS = 100  # fits a page, a mail, a README
_SHOWN_PROMPT = 90  # characters of a golden prompt


def out_console() -> Console:
    """Console for results. In a pipe or a file, the tables are 100 columns wide."""
    return Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS, highlight=False)


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
    """Stages and bars on stderr, bars only on a terminal; the plan on stdout. With `verbose`, every command."""

    def __init__(self, verbose: bool, quiet: bool) -> None:
        self._console, self._verbose, self._quiet = err_console(), verbose, quiet
        self._bar: tuple[Progress, TaskID] | None = None

    def stage(self, text: str) -> None:
        """Print the stage's name."""
        self.end_bar()
        if not self._quiet:
            self._console.print(Text(f"== {text}", style="bold"), soft_wrap=True)

    def note(self, text: str) -> None:
        """Print it on a line of its own."""
        self.end_bar()
        if not self._quiet:
            self._console.print(Text(f"note: {text}"), soft_wrap=True)

    def planned(self, plan: BuildPlan) -> None:
        """Print the budget before it is spent."""
        self.end_bar()
        if not self._quiet:
            out_console().print(plan_table(plan))

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar of the current stage."""
        if not self._console.is_terminal:
            return
        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            # Results on stdout stay there: no rerouting through this console.
            bar = Progress(*columns, console=self._console, transient=True, redirect_stdout=False)
            bar.start()
            self._bar = bar, bar.add_task(what, total=total)
        bar, task = self._bar
        bar.update(task, description=what, completed=done, total=total)

    def command(self, argv: Sequence[str]) -> None:
        """Print the command with -v."""
        if self._verbose:
            self._console.print(Text(shlex.join(argv), style="dim"), soft_wrap=True)

    def end_bar(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar[0].stop()
        self._bar = None


@contextmanager
def terminal_events(*, verbose: bool = False, quiet: bool = False) -> Iterator[TerminalEvents]:
    """Events for one command. The bars vanish at its end."""
    events = TerminalEvents(verbose, quiet)
    try:
        yield events
    finally:
        events.end_bar()


def _table(*columns: tuple[str, str]) -> Table:
    """Return a table with (heading, "left" or "right") columns."""
    table = Table(header_style="bold")
    for heading, justify in columns:
        table.add_column(heading, justify="right" if justify == "right" else "left", overflow="fold")
    return table


def _titled(title: str, table: Table) -> Group:
    """A table below its title; rich's own title would be padded with blanks, which copies of the output keep."""
    return Group(Text(title, style="bold"), table)


def plan_table(plan: BuildPlan) -> Group:
    """The budget: each region with its sum, then what the board has."""
    title = f"Plan: {plan.model} on {plan.board}, context {plan.options.context}"
    table = _table(("region", "left"), ("flash", "right"), ("RAM", "right"), ("sum", "left"))
    for region in plan.regions:
        sizes = human_bytes(region.flash_bytes), human_bytes(region.ram_bytes)
        table.add_row(region.name, *sizes, Text(region.sum))
    table.add_section()
    table.add_row("total", human_bytes(plan.flash_bytes), human_bytes(plan.ram_bytes), "")
    table.add_row("board's budget", human_bytes(plan.flash_budget_bytes), human_bytes(plan.ram_budget_bytes), "")
    if plan.bound_tokens_per_s is not None:
        bound = f"read bandwidth / {human_bytes(plan.active_weight_bytes)} of weights a token: a bound, no forecast"
        table.add_row("at most", "", "", f"{plan.bound_tokens_per_s:.0f} tokens/s ({bound})")
    return _titled(title, table)


def report_table(report: BuildReport) -> Group:
    """The promises about the binary, one a line."""
    table = _table(("check", "left"), ("", "left"), ("found", "left"))
    for check in report.checks:
        verdict = Text("ok", style="green") if check.ok else Text("FAILED", style="bold red")
        table.add_row(check.name, verdict, Text(check.detail))
    return _titled(f"Inspection: {report.elf}", table)


def verify_table(report: VerifyReport) -> Group:
    """One line a golden prompt; numbers of threads that gave different answers have lines of their own."""
    table = _table()
    table.add_column("prompt", overflow="fold", min_width=11)
    table.add_column("threads")
    table.add_column("tokens", justify="right")
    table.add_column("ids", overflow="fold")
    for heading in ("logits hash", "reference"):
        table.add_column(heading, no_wrap=True)
    answers: dict[VerifyResult, list[int]] = {}
    for row in report.results:
        answers.setdefault(replace(row, threads=0), []).append(row.threads)
    for row, threads in answers.items():
        table.add_row(
            Text(_shortened(row.prompt)),
            ", ".join(map(str, threads)),
            str(len(row.got_ids)),
            _ids_verdict(row),
            Text(row.got_hash, style="green" if row.hash_equal else "bold red"),
            row.expected_hash,
        )
    return _titled(f"Verify on {report.runner}", table)


def _shortened(prompt: str) -> str:
    return prompt if len(prompt) <= _SHOWN_PROMPT else prompt[: _SHOWN_PROMPT - 3] + "..."


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


def quantize_table(report: QuantizeReport) -> Group:
    """Error of each tensor kind."""
    table = _table(
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
    lines = [Text(f"{row.line()}.") for row in report.taken_over]
    return Group(_titled("Quantization", table), *lines)


def calibration_table(report: QuantizeReport) -> Group:
    """What AWQ saw and won: calibration tokens by expert, output error of each layer's searches before and after."""
    title = f"AWQ: {report.calibration_tokens} calibration tokens; experts with too few are rounded to nearest"
    table = _table(("layer", "right"), ("tokens by expert", "left"), ("error rtn -> awq", "right"))
    for layer, tokens in enumerate(report.expert_tokens):
        gains = [gain for gain in report.gains if gain.folded_into.startswith(f"layers.{layer}.")]
        before, after = sum(gain.loss_rtn for gain in gains), sum(gain.loss_final for gain in gains)
        table.add_row(str(layer), " ".join(map(str, tokens)), f"{after / before - 1:+.0%}" if before else "-")
    for fallback in report.fallbacks:
        text = f"{fallback.expert}: {fallback.tokens} tokens, {fallback.needed} needed: rounded to nearest"
        table.add_row("", text, "")
    return _titled(title, table)


def boards_table(boards: Sequence[BoardSummary]) -> Group:
    """The boards that are known."""
    table = _table(("name", "left"), ("cpu", "left"), ("RAM budget", "right"), ("description", "left"))
    for board in boards:
        table.add_row(board.name, board.cpu, f"{board.ram_budget_mib} MiB", board.description)
    return _titled("Boards", table)


def toolchains_table(toolchains: Sequence[ToolchainProfile]) -> Group:
    """The toolchains that are known."""
    table = _table(("name", "left"), ("description", "left"))
    for toolchain in toolchains:
        table.add_row(toolchain.name, Text(toolchain.description))
    return _titled("Toolchains", table)


def doctor_table(findings: Sequence[Finding]) -> Group:
    """What this machine has, and the command that installs what it lacks."""
    table = _table(("part", "left"), ("", "left"), ("found", "left"), ("install with", "left"))
    for finding in findings:
        verdict = Text("ok", style="green") if finding.ok else Text("missing", style="bold red")
        table.add_row(finding.name, verdict, Text(finding.detail), Text("" if finding.ok else finding.fix))
    return _titled("Doctor", table)
