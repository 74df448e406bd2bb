"""What is done with a finished build: `run`, `verify`, `inspect`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import rich_click as click

from colibri_build import cli_view, pipeline
from colibri_build.build_folder import is_as_inspected, open_build
from colibri_build.cli_options import HELP, PATH, THREADS, device_option, json_option, print_json, require_report
from colibri_build.cli_serial import (
    Place,
    baud_option,
    port_option,
    require_board_verified,
    require_chat,
    run_over_serial,
    verify_over_serial,
    wait_ready_option,
)
from colibri_build.elf.inspect import report_to_json
from colibri_build.errors import ColibriError
from colibri_build.run.process import run_firmware
from colibri_build.run.runner import runner_for
from colibri_build.run.verify import verify_to_json


@click.command(cls=click.RichCommand, context_settings=HELP)
@click.argument("build_dir", type=PATH)
@click.option(
    "--threads",
    multiple=True,
    type=THREADS,
    metavar="N",
    help="A number of threads to try; may be given several times. Default: 1 and 2.",
)
@device_option
@port_option
@baud_option
@wait_ready_option
@click.option("--no-qemu", is_flag=True, help="With --port: do not run the prompts under QEMU, too.")
@json_option
def verify(
    build_dir: Path,
    threads: tuple[int, ...],
    device: str,
    port: str | None,
    baud: int | None,
    wait_ready: float,
    no_qemu: bool,
    as_json: bool,
) -> None:
    """Run the golden prompts of a finished build and compare tokens and logits with the reference.

    With --port they run on a board whose firmware serves (--serve), and under QEMU, too; every difference between the
    three is a line.

    \b
    Examples:
      colibri-build verify build/cortex-a53/model
      colibri-build verify build/cortex-a53/model --port /dev/ttyUSB0
    """
    if port is not None:
        if threads:
            raise ColibriError("--threads with --port: the board chooses", hint="leave one of them out")
        record = verify_over_serial(open_build(build_dir), Place(port, baud, wait_ready), device, not no_qemu, as_json)
        if as_json:
            print_json(record)
        require_board_verified(record)
        return
    with cli_view.terminal_events(quiet=as_json) as events:
        built = open_build(build_dir)
        _, report = pipeline.verify(built, device, threads, events)
    as_inspected = is_as_inspected(built)
    if as_json:
        print_json({**verify_to_json(report), "as_inspected": as_inspected})
    else:
        cli_view.out_console().print(cli_view.verify_table(report))
    if not as_inspected:
        again = shlex.join(["colibri-build", "inspect", str(build_dir)])
        click.echo(f"note: {built.elf} changed since its inspection; look at it with: {again}", err=True)
    pipeline.require_verified(report)


@click.command(cls=click.RichCommand, context_settings=HELP)
@click.argument("build_dir", type=PATH)
@json_option
def inspect(build_dir: Path, as_json: bool) -> None:
    """Show the inspection of a finished build, made anew from the binary.

    \b
    Example:
      colibri-build inspect build/cortex-a53/model
    """
    with cli_view.terminal_events(quiet=as_json) as events:
        report = pipeline.inspect(build_dir, events)
    if as_json:
        print_json(report_to_json(report))
    else:
        cli_view.out_console().print(cli_view.report_table(report))
    require_report(report.ok)


@click.command(cls=click.RichCommand, context_settings={**HELP, "ignore_unknown_options": True})
@click.argument("build_dir", type=PATH)
@device_option
@port_option
@baud_option
@wait_ready_option
@click.option("--prompt", metavar="TEXT", help="Answer TEXT; the same as -- --prompt TEXT.")
@click.option("--raw", is_flag=True, help="Without the chat form of a build with --chat; the same as -- --raw.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="End the firmware after this time.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    build_dir: Path,
    device: str,
    port: str | None,
    baud: int | None,
    wait_ready: float,
    prompt: str | None,
    raw: bool,
    timeout: float,
    arguments: tuple[str, ...],
) -> None:
    """Run a finished build under QEMU or natively, or on a board with --port; what follows -- goes to the firmware.

    The exit code is the firmware's own (docs/firmware.md); colibri_inference --help lists its options.

    \b
    Examples:
      colibri-build run build/cortex-a53/model -- --prompt "open the window"
      colibri-build run build/cortex-a53/model --port /dev/ttyUSB0 -- --prompt "open the window" --max-tokens 40
    """
    built = open_build(build_dir)
    arguments = (*arguments, "--prompt", prompt) if prompt is not None else arguments
    if raw:
        require_chat(built)
        arguments = (*arguments, "--raw")
    if port is not None:
        sys.exit(run_over_serial(built, Place(port, baud, wait_ready), arguments, timeout))
    runner = runner_for(built.board, device)

    def through(stream: BinaryIO) -> Callable[[bytes], None]:
        def write(chunk: bytes) -> None:
            stream.write(chunk)
            stream.flush()

        return write

    transcript = run_firmware(
        runner,
        built.elf,
        arguments,
        stdin=sys.stdin.buffer if "--stdin" in arguments else None,
        timeout_s=timeout,
        on_stdout=through(sys.stdout.buffer),
        on_stderr=through(sys.stderr.buffer),
    )
    sys.exit(transcript.exit_code)
