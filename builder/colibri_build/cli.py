"""The command line: parse, call the pipeline, print, exit. Nothing else prints or exits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from colibri_build import __version__, cli_view, pipeline
from colibri_build.artifacts import Format, Kind
from colibri_build.elf.inspect import report_to_json
from colibri_build.errors import ColibriError, InspectError
from colibri_build.plan.budget import check_fits, plan_to_json
from colibri_build.run.process import run_firmware
from colibri_build.run.runner import runner_for
from colibri_build.run.verify import verify_to_json
from colibri_build.target.board import list_boards
from colibri_build.target.doctor import diagnose
from colibri_build.target.toolchain_profile import list_toolchains

CTRL_C = 130
HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
click.rich_click.TEXT_MARKUP = "markdown"


class DefaultBuild(click.RichGroup):
    """A group whose first word may be a verb; without one the words are those of `build`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `build` first unless a verb or a help option is there."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help", "--version"):
            args = ["build", *args]
        return super().parse_args(ctx, args)


@click.group(cls=DefaultBuild, context_settings=HELP, no_args_is_help=True)
@click.version_option(__version__, prog_name="colibri-build")
def cli() -> None:
    """Compile a Mixture-of-Experts language model into one static firmware binary.

    `colibri-build -b cortex-a53 model/` builds; a verb in the first place does one thing more.

    Examples:

        colibri-build -b cortex-a53 --verify examples/cabin_voice/model

        colibri-build plan -b tda4vm model/

        colibri-build run build/cortex-a53/model -- --prompt "turn on the lights"
    """


def _quantize_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a checkpoint is quantized."""
    options = (
        click.option(
            "--method", type=click.Choice(["rtn", "awq"]), help="Default: awq with a calibration text, else rtn."
        ),
        click.option("--bits", type=click.Choice(["4", "8"]), default="4", show_default=True, help="Of the experts."),
        click.option(
            "--group-size",
            type=click.Choice(["128", "64", "32"]),
            default="128",
            show_default=True,
            help="Inputs that share a scale.",
        ),
        click.option(
            "--calibration", type=click.Path(path_type=Path), help="Text for AWQ, blank line between records."
        ),
        click.option(
            "--format",
            "formats",
            multiple=True,
            metavar="KIND=FORMAT",
            help="Format of a tensor kind, such as `attention=w4` or `lm_head=f16`. May be given again.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _build_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that a plan depends on."""
    options = (
        click.argument("model", type=click.Path(path_type=Path)),
        click.option("-b", "--board", required=True, help="A name from `colibri-build boards`, or a .toml file."),
        click.option("--ctx", "context", type=click.IntRange(min=1), help="Positions; the board's default otherwise."),
        click.option("--threads", "max_threads", type=click.IntRange(1, 64), help="Most threads at run time."),
        click.option("--activations", type=click.Choice(["16", "8"]), default="16", show_default=True, help="Bits."),
        _quantize_options,
    )
    for option in reversed(options):
        function = option(function)
    return function


def _formats(pairs: tuple[str, ...]) -> dict[Kind, Format]:
    formats = {}
    for pair in pairs:
        kind, _, name = pair.partition("=")
        try:
            formats[Kind(kind)] = Format(name)
        except ValueError:
            kinds, names = ", ".join(Kind), ", ".join(Format)
            raise ColibriError(f"--format {pair}: not KIND=FORMAT", hint=f"kinds {kinds}; formats {names}") from None
    return formats


def _choices(options: dict[str, Any]) -> pipeline.QuantizeChoices:
    return pipeline.QuantizeChoices(
        method=options["method"] or ("awq" if options["calibration"] else "rtn"),
        bits=int(options["bits"]),
        group_size=int(options["group_size"]),
        calibration=options["calibration"],
        formats=_formats(options["formats"]),
    )


def _request(options: dict[str, Any], **more: Any) -> pipeline.BuildRequest:
    return pipeline.BuildRequest(
        model=options["model"],
        board=options["board"],
        context=options["context"],
        max_threads=options["max_threads"],
        activation_bits=int(options["activations"]),
        quantize=_choices(options),
        **more,
    )


def _prompts(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return pipeline.DEFAULT_PROMPTS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ColibriError(f"cannot read the golden prompts {path}: {error}", hint="one a line, UTF-8") from error
    prompts = tuple(line for line in lines if line)
    if not prompts:
        raise ColibriError(f"{path} holds no prompt", hint="write one prompt a line")
    return prompts


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=1, sort_keys=True))


@cli.command()
@_build_options
@click.option("-o", "-d", "--out", "--build-dir", "out", type=click.Path(path_type=Path), help="Folder to build in.")
@click.option("--toolchain", default="auto", show_default=True, help="A name from `toolchains`, or prefix:PREFIX-.")
@click.option("--embed", type=click.Choice(["incbin", "xxd"]), default="incbin", show_default=True, help="Weights.")
@click.option("--prompts", type=click.Path(path_type=Path), help="Golden prompts, one a line.")
@click.option(
    "--golden-tokens", type=click.IntRange(1), default=pipeline.GOLDEN_TOKENS, show_default=True, help="Of each."
)
@click.option("--verify", "want_verify", is_flag=True, help="Run the golden prompts and compare with the reference.")
@click.option("-p", "--pristine", is_flag=True, help="Remove the build folder first.")
@click.option("-v", "--verbose", is_flag=True, help="Show the commands that are run.")
@click.option("--json", "as_json", is_flag=True, help="Print plan, report and verdict as JSON.")
def build(**options: Any) -> None:
    """Build the firmware of MODEL for a board: quantize, plan, render, compile, inspect.

    MODEL is a checkpoint folder (config.json, safetensors, tokenizer.json) or a model folder of `colibri-quantize`.
    The result is `build/BOARD/MODEL/colibri_inference`, with a Makefile that rebuilds it without Python.

    Example:

        colibri-build -b cortex-a53 --verify examples/cabin_voice/model
    """
    request = _request(
        options,
        out=options["out"],
        toolchain=options["toolchain"],
        embed=options["embed"],
        prompts=_prompts(options["prompts"]),
        golden_tokens=options["golden_tokens"],
        pristine=options["pristine"],
    )
    as_json, console = options["as_json"], cli_view.out_console()
    with cli_view.terminal_events(verbose=options["verbose"], quiet=as_json) as events:
        result = pipeline.build(request, events)
    record: dict[str, Any] = {"out": str(result.out), "plan": plan_to_json(result.plan)}
    record["report"] = report_to_json(result.report)
    if not as_json:
        console.print(cli_view.plan_table(result.plan), cli_view.report_table(result.report), sep="\n")
    _require_report(result.report.ok)
    report = None
    if options["want_verify"]:
        _, report = pipeline.verify(pipeline.open_build(result.out))
        record["verify"] = verify_to_json(report)
        if not as_json:
            console.print(cli_view.verify_table(report))
    if as_json:
        _print_json(record)
    else:
        console.print(f"{result.firmware.elf}  {cli_view.human_bytes(result.firmware.elf.stat().st_size)}")
    if report is not None:
        pipeline.require_verified(report)


def _require_report(ok: bool) -> None:
    if not ok:
        raise InspectError(
            "the binary breaks a promise (see the lines marked FAILED)",
            hint="build with --pristine, or with another --toolchain",
        )


@cli.command()
@_build_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(**options: Any) -> None:
    """Show what the firmware of MODEL needs and what the board has, before anything is compiled.

    Example:

        colibri-build plan -b cortex-a53 --ctx 512 examples/cabin_voice/model
    """
    with cli_view.terminal_events(quiet=options["as_json"]) as events:
        _, board, budget = pipeline.plan_build(_request(options), events)
    if options["as_json"]:
        _print_json(plan_to_json(budget))
    else:
        cli_view.out_console().print(cli_view.plan_table(budget))
    check_fits(budget, board)


@cli.command()
@click.argument("build_dir", type=click.Path(path_type=Path))
@click.option("--threads", multiple=True, type=click.IntRange(1, 64), help="Thread counts to try; 1 and 2 otherwise.")
@click.option("--device", type=click.Choice(["auto", "native", "qemu-user"]), default="auto", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(build_dir: Path, threads: tuple[int, ...], device: str, as_json: bool) -> None:
    """Run the golden prompts of a finished build and compare tokens and logits with the reference.

    Example:

        colibri-build verify build/cortex-a53/model
    """
    _, report = pipeline.verify(pipeline.open_build(build_dir), device, threads or (1, 2))
    if as_json:
        _print_json(verify_to_json(report))
    else:
        cli_view.out_console().print(cli_view.verify_table(report))
    pipeline.require_verified(report)


@cli.command()
@click.argument("build_dir", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(build_dir: Path, as_json: bool) -> None:
    """Show the inspection of a finished build, made anew from the binary.

    Example:

        colibri-build inspect build/cortex-a53/model
    """
    report = pipeline.inspect(build_dir)
    if as_json:
        _print_json(report_to_json(report))
    else:
        cli_view.out_console().print(cli_view.report_table(report))
    _require_report(report.ok)


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("build_dir", type=click.Path(path_type=Path))
@click.option("--device", type=click.Choice(["auto", "native", "qemu-user"]), default="auto", show_default=True)
@click.option("--timeout", type=click.FloatRange(min=0.1), default=600.0, show_default=True, help="Seconds.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(build_dir: Path, device: str, timeout: float, arguments: tuple[str, ...]) -> None:
    """Run a finished build under QEMU or natively; what follows `--` goes to the firmware.

    Example:

        colibri-build run build/cortex-a53/model -- --prompt "open the window" --max-tokens 40
    """
    built = pipeline.open_build(build_dir)
    runner = runner_for(built.board, device)

    def show(chunk: bytes) -> None:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()

    stdin = sys.stdin.buffer if "--stdin" in arguments else None
    transcript = run_firmware(runner, built.elf, arguments, stdin=stdin, timeout_s=timeout, on_stdout=show)
    click.echo(transcript.stderr, err=True, nl=False)
    sys.exit(transcript.exit_code)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def boards(as_json: bool) -> None:
    """List the boards."""
    summaries = list_boards()
    if as_json:
        _print_json([vars(summary) for summary in summaries])
    else:
        cli_view.out_console().print(cli_view.boards_table(summaries))


@cli.command()
def toolchains() -> None:
    """List the toolchains that `--toolchain` takes."""
    for toolchain in list_toolchains():
        click.echo(f"{toolchain.name:<14} {toolchain.description}")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Say what is missing on this machine, and the command that installs it."""
    findings = diagnose()
    if as_json:
        _print_json([vars(finding) for finding in findings])
    else:
        cli_view.out_console().print(cli_view.doctor_table(findings))
    sys.exit(0 if all(finding.ok for finding in findings) else 1)


@click.command(cls=click.RichCommand, context_settings=HELP)
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@_quantize_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def quantize(checkpoint: Path, out: Path, **options: Any) -> None:
    """Quantize CHECKPOINT to the model folder OUT.

    Example:

        colibri-quantize --method awq --calibration calibration.txt checkpoint/ model/
    """
    as_json = options["as_json"]
    with cli_view.terminal_events(quiet=as_json) as events:
        folder, report = pipeline.quantize_checkpoint(checkpoint, out, _choices(options), events)
    if as_json:
        _print_json({"out": str(folder.path), "report": asdict(report)})
        return
    console = cli_view.out_console()
    console.print(cli_view.quantize_table(report))
    if report.expert_tokens:
        console.print(cli_view.calibration_table(report))
    console.print(f"{folder.path}  {cli_view.human_bytes(sum(f.bytes for f in folder.files.values()))}")


cli.add_command(quantize)


def _run(command: click.Command) -> None:
    """Run a command; a user's mistake is one line on stderr and a documented exit code, never a traceback."""
    try:
        code = command.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except ColibriError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        click.echo(f"error: {error}; try: check the path, its permissions and the free space", err=True)
        sys.exit(ColibriError.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(CTRL_C)


def main() -> None:
    """Entry point of `colibri-build`."""
    _run(cli)


def quantize_main() -> None:
    """Entry point of `colibri-quantize`."""
    _run(quantize)
