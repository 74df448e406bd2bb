"""The command line: parse, call the pipeline, print, exit. Nothing else prints or exits."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import rich_click as click
from rich.text import Text

from colibri_build import __version__, cli_view, pipeline
from colibri_build.build_folder import is_as_inspected, open_build
from colibri_build.cli_emulate import emulate
from colibri_build.cli_image import flash, image
from colibri_build.cli_initramfs import initramfs
from colibri_build.cli_monitor import monitor
from colibri_build.cli_options import (
    PATH,
    THREADS,
    build_options,
    build_request,
    device_option,
    golden_prompts,
    json_option,
    plan_options,
    quantize_choices,
    quantize_options,
    set_help_style,
)
from colibri_build.cli_report import report
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
from colibri_build.errors import ColibriError, InspectError
from colibri_build.model_source import quantize_checkpoint
from colibri_build.plan.budget import check_fits, plan_to_json
from colibri_build.run.process import run_firmware
from colibri_build.run.runner import runner_for
from colibri_build.run.verify import verify_to_json
from colibri_build.target.board import list_boards
from colibri_build.target.doctor import diagnose
from colibri_build.target.toolchain_profile import list_toolchains

HELP = {"help_option_names": ["-h", "--help"]}
set_help_style()


class DefaultBuild(click.RichGroup):
    """A group whose first word may be a verb; without one the words are those of `build`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `build` first unless a verb or a help option is there. Raises UsageError for a mistyped verb."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help", "--version"):
            meant = get_close_matches(args[0], self.commands, n=1)
            if meant and not args[0].startswith("-") and not Path(args[0]).exists():
                raise click.UsageError(f"No such command or model '{args[0]}'. Did you mean '{meant[0]}'?", ctx)
            args = ["build", *args]
        return super().parse_args(ctx, args)


@click.group(cls=DefaultBuild, context_settings=HELP, no_args_is_help=True)
@click.version_option(__version__, prog_name="colibri-build")
def cli() -> None:
    """Compile a Mixture-of-Experts language model into one static firmware binary.

    Without a command it builds: colibri-build -b BOARD MODEL is colibri-build build -b BOARD MODEL.

    \b
    Examples:
      colibri-build -b cortex-a53 --verify examples/cabin_voice/model
      colibri-build plan -b tda4vm examples/cabin_voice/model
      colibri-build run build/cortex-a53/model -- --prompt "open the window"
    """


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=1, sort_keys=True))


@cli.command()
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
        result = pipeline.build(request, events)
    record: dict[str, Any] = {"out": str(result.out), "plan": plan_to_json(result.plan)}
    record["toolchain"] = {name: getattr(result.toolchain, name) for name in ("name", "version", "why")}
    record["report"] = report_to_json(result.report)
    if not as_json:
        console.print(cli_view.report_table(result.report))
    verdict = None
    if result.report.ok and options["want_verify"]:
        with cli_view.terminal_events(quiet=as_json) as events:
            _, verdict = pipeline.verify(open_build(result.out), events=events)
        record["verify"] = verify_to_json(verdict)
        if not as_json:
            console.print(cli_view.verify_table(verdict))
    if as_json:
        _print_json(record)
    _require_report(result.report.ok)
    if verdict is not None:
        pipeline.require_verified(verdict)
    if not as_json:
        elf = result.firmware.elf
        console.print(Text(f"{elf}  {cli_view.human_bytes(elf.stat().st_size)}"), soft_wrap=True)


def _require_report(ok: bool) -> None:
    if not ok:
        raise InspectError(
            "the binary breaks a promise (see the lines marked FAILED)",
            hint="build with --pristine, or with another --toolchain",
        )


@cli.command()
@plan_options
@json_option
def plan(**options: Any) -> None:
    """Show what the firmware of MODEL needs and what the board has, before anything is compiled.

    \b
    Example:
      colibri-build plan -b cortex-a53 --ctx 128 examples/cabin_voice/model
    """
    with cli_view.terminal_events(quiet=options["as_json"]) as events:
        _, board, budget = pipeline.plan_build(build_request(options), events)
    if options["as_json"]:
        _print_json(plan_to_json(budget))
    else:
        cli_view.out_console().print(cli_view.plan_table(budget))
    check_fits(budget, board)


@cli.command()
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
            _print_json(record)
        require_board_verified(record)
        return
    with cli_view.terminal_events(quiet=as_json) as events:
        built = open_build(build_dir)
        _, report = pipeline.verify(built, device, threads, events)
    as_inspected = is_as_inspected(built)
    if as_json:
        _print_json({**verify_to_json(report), "as_inspected": as_inspected})
    else:
        cli_view.out_console().print(cli_view.verify_table(report))
    if not as_inspected:
        again = shlex.join(["colibri-build", "inspect", str(build_dir)])
        click.echo(f"note: {built.elf} changed since its inspection; look at it with: {again}", err=True)
    pipeline.require_verified(report)


@cli.command()
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
        _print_json(report_to_json(report))
    else:
        cli_view.out_console().print(cli_view.report_table(report))
    _require_report(report.ok)


@cli.command(context_settings={"ignore_unknown_options": True})
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


@cli.command()
@json_option
def boards(as_json: bool) -> None:
    """List the boards.

    \b
    Example:
      colibri-build boards --json
    """
    summaries = list_boards()
    if as_json:
        _print_json([vars(summary) for summary in summaries])
    else:
        cli_view.out_console().print(cli_view.boards_table(summaries))


@cli.command()
@json_option
def toolchains(as_json: bool) -> None:
    """List the toolchains that --toolchain takes; colibri-build doctor says which are installed.

    \b
    Example:
      colibri-build toolchains
    """
    profiles = list_toolchains()
    if as_json:
        _print_json([{"name": profile.name, "description": profile.description} for profile in profiles])
    else:
        cli_view.out_console().print(cli_view.toolchains_table(profiles))


@cli.command()
@json_option
def doctor(as_json: bool) -> None:
    """Say what is missing on this machine, and the command that installs it.

    \b
    Example:
      colibri-build doctor
    """
    findings = diagnose()
    if as_json:
        _print_json([vars(finding) for finding in findings])
    else:
        cli_view.out_console().print(cli_view.doctor_table(findings))
    sys.exit(0 if all(finding.ok for finding in findings) else 1)


@click.command(cls=click.RichCommand, context_settings=HELP)
@click.version_option(__version__, prog_name="colibri-quantize")
@click.argument("checkpoint", type=PATH)
@click.argument("out", type=PATH)
@quantize_options
@json_option
def quantize(checkpoint: Path, out: Path, **options: Any) -> None:
    """Quantize CHECKPOINT, a Hugging Face folder, to the model folder OUT.

    \b
    Example:
      colibri-quantize --method awq --calibration calibration.txt checkpoint/ model/
    """
    as_json = options["as_json"]
    with cli_view.terminal_events(quiet=as_json) as events:
        folder, report = quantize_checkpoint(checkpoint, out, quantize_choices(options), events)
    if as_json:
        _print_json({"out": str(folder.path), "report": asdict(report)})
        return
    console = cli_view.out_console()
    console.print(cli_view.quantize_table(report))
    if report.expert_tokens:
        console.print(cli_view.calibration_table(report))
    size = cli_view.human_bytes(sum(f.bytes for f in folder.files.values()))
    console.print(Text(f"{folder.path}  {size}"), soft_wrap=True)


cli.add_command(quantize)
cli.add_command(report)
cli.add_command(initramfs)
cli.add_command(image)
cli.add_command(flash)
cli.add_command(emulate)
cli.add_command(monitor)


def _run(command: click.Command, name: str) -> None:
    """Run a command; a user's mistake is one line on stderr and a documented exit code, never a traceback."""
    try:
        code = command.main(prog_name=name, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except ColibriError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:
        click.echo(f"error: {error}; try: check the path, its permissions and the free space", err=True)
        sys.exit(ColibriError.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None


def main() -> None:
    """`colibri-build`. Ctrl-C is the caller's business (`__main__`)."""
    _run(cli, "colibri-build")


def quantize_main() -> None:
    """`colibri-quantize`."""
    _run(quantize, "colibri-quantize")


def monitor_main() -> None:
    """`colibri-monitor`."""
    _run(monitor, "colibri-monitor")
