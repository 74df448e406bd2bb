"""`build` and `plan`. What does the work is imported when there is some: a build without any takes a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click
from rich.text import Text

from colibri_build import cli_view
from colibri_build.build_report import report_from_json
from colibri_build.cli_options import (
    HELP,
    build_options,
    build_request,
    golden_prompts,
    json_option,
    plan_options,
    print_json,
    require_report,
)
from colibri_build.events import Events
from colibri_build.requests import BuildRequest, build_folder_of
from colibri_build.up_to_date import unchanged


@click.command(cls=click.RichCommand, context_settings=HELP)
@build_options
def build(**options: Any) -> None:
    """Build the firmware of MODEL for a board: quantize, plan, render, compile, inspect.

    MODEL is a checkpoint folder (config.json, safetensors, tokenizer.json) or a GGUF file, which is quantized first,
    or a model folder that colibri-quantize made. The result is DIR/colibri_inference, beside its C sources, its weights and a
    Makefile that rebuilds it without Python.

    \b
    Examples:
      colibri-build -b cortex-a53 --verify examples/cabin_voice/model
      colibri-build -b my-board.toml --toolchain zig -o out examples/cabin_voice/model
    """
    request = build_request(
        options,
        out=options["out"],
        toolchain=options["toolchain"],
        embed=options["embed"],
        prompts=golden_prompts(options["prompts"]),
        golden_tokens=options["golden_tokens"],
        pristine=options["pristine"],
        will_run=options["want_verify"],
    )
    as_json = options["as_json"]
    console = cli_view.out_console()
    with cli_view.terminal_events(verbose=options["verbose"], quiet=as_json) as events:
        record = _unchanged(request, events) or _built(request, events)
    out, report = Path(record["out"]), report_from_json(record["report"])
    if not as_json:
        console.print(cli_view.report_table(report))
    require_answers = None
    if report.ok and options["want_verify"]:
        record["verify"], require_answers = _verified(out, as_json)
    if as_json:
        print_json(record)
    require_report(report.ok)
    if require_answers is not None:
        require_answers()
    if not as_json:
        elf = out / report.elf
        console.print(Text(f"{elf}  {cli_view.human_bytes(elf.stat().st_size)}"), soft_wrap=True)


def _unchanged(request: BuildRequest, events: Events) -> dict[str, Any] | None:
    """The record of the last build, where this one would make the same."""
    record = None if request.pristine else unchanged(request, build_folder_of(request))
    if record is None:
        return None
    toolchain = record["toolchain"]
    because = f": {toolchain['why']}" if toolchain["why"] else ""
    events.stage(
        f"nothing changed since the last build ({record.pop('files')} files looked at); "
        f"it took {toolchain['name']} ({toolchain['version']}){because}"
    )
    return record


def _built(request: BuildRequest, events: Events) -> dict[str, Any]:
    """Build, and say what was built."""
    from colibri_build import pipeline

    return pipeline.build_record(pipeline.build(request, events))


def _verified(out: Path, as_json: bool) -> tuple[dict[str, Any], Callable[[], None]]:
    """Run the golden prompts; returns the verdict as JSON values, and what raises VerifyError for a bad one."""
    from colibri_build import pipeline
    from colibri_build.build_folder import open_build
    from colibri_build.run.verify import verify_to_json

    with cli_view.terminal_events(quiet=as_json) as events:
        _, verdict = pipeline.verify(open_build(out), events=events)
    if not as_json:
        cli_view.out_console().print(cli_view.verify_table(verdict))
    return verify_to_json(verdict), lambda: pipeline.require_verified(verdict)


@click.command(cls=click.RichCommand, context_settings=HELP)
@plan_options
@json_option
def plan(**options: Any) -> None:
    """Show what the firmware of MODEL needs and what the board has, before anything is compiled.

    \b
    Example:
      colibri-build plan -b cortex-a53 --ctx 128 examples/cabin_voice/model
    """
    from colibri_build import pipeline
    from colibri_build.plan.budget import check_fits, plan_to_json

    with cli_view.terminal_events(quiet=options["as_json"]) as events:
        _, board, budget = pipeline.plan_build(build_request(options), events)
    if options["as_json"]:
        print_json(plan_to_json(budget))
    else:
        cli_view.out_console().print(cli_view.plan_table(budget))
    check_fits(budget, board)
