"""What is there: `boards`, `toolchains`, `doctor`."""

from __future__ import annotations

import sys

import rich_click as click

from colibri_build import cli_view
from colibri_build.cli_options import HELP, json_option, print_json
from colibri_build.target.board import list_boards
from colibri_build.target.doctor import diagnose
from colibri_build.target.toolchain_profile import list_toolchains


@click.command(cls=click.RichCommand, context_settings=HELP)
@json_option
def boards(as_json: bool) -> None:
    """List the boards.

    \b
    Example:
      colibri-build boards --json
    """
    summaries = list_boards()
    if as_json:
        print_json([vars(summary) for summary in summaries])
    else:
        cli_view.out_console().print(cli_view.boards_table(summaries))


@click.command(cls=click.RichCommand, context_settings=HELP)
@json_option
def toolchains(as_json: bool) -> None:
    """List the toolchains that --toolchain takes; colibri-build doctor says which are installed.

    \b
    Example:
      colibri-build toolchains
    """
    profiles = list_toolchains()
    if as_json:
        print_json([{"name": profile.name, "description": profile.description} for profile in profiles])
    else:
        cli_view.out_console().print(cli_view.toolchains_table(profiles))


@click.command(cls=click.RichCommand, context_settings=HELP)
@json_option
def doctor(as_json: bool) -> None:
    """Say what is missing on this machine, and the command that installs it.

    \b
    Example:
      colibri-build doctor
    """
    findings = diagnose()
    if as_json:
        print_json([vars(finding) for finding in findings])
    else:
        cli_view.out_console().print(cli_view.doctor_table(findings))
    sys.exit(0 if all(finding.ok for finding in findings) else 1)
