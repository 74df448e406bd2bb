"""Commands over a serial line: `run` and `verify` with --port, and the options that they share with the monitor."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rich_click as click

from colibri_build import cli_view
from colibri_build.build_folder import Built
from colibri_build.errors import ColibriError, VerifyError
from colibri_build.run.client import Client, GenerateOptions
from colibri_build.run.link import Link
from colibri_build.run.runner import runner_for
from colibri_build.run.serial_port import SerialPort
from colibri_build.run.status_line import MARK
from colibri_build.run.verify import verify_firmware, verify_to_json
from colibri_build.run.verify_serial import difference_lines, require_same_model, verify_board

port_help = "Serial port of a board: /dev/ttyUSB0, socket://HOST:PORT, rfc2217://HOST:PORT, unix:PATH ..."
port_option = click.option("--port", metavar="URL", help=port_help)
baud_option = click.option(
    "--baud", type=click.IntRange(min=50), metavar="N", help="Baud rate of --port. Default: the board profile's."
)
wait_ready_option = click.option(
    "--wait-ready",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="With --port: first listen so long for READY of a board that boots, without sending a byte. Default: do not.",
)


@dataclass(frozen=True)
class Place:
    """Where a board is: `baud` None is the board profile's; `wait_ready_s` as --wait-ready says."""

    port: str
    baud: int | None
    wait_ready_s: float


@contextmanager
def board_at(built: Built, place: Place) -> Iterator[Client]:
    """Open a session with the board that holds a build. Raises RunError, or VerifyError for another model."""
    baud = place.baud or built.board.console.baud
    with SerialPort.open(place.port, baud) as line, Client(Link(line)) as client:
        client.link.wait_ready(place.wait_ready_s)
        require_same_model(client.connect(), built.model)
        yield client


def verify_over_serial(built: Built, place: Place, device: str, emulate: bool, quiet: bool) -> Mapping[str, Any]:
    """`verify --port`: ask the board, then QEMU; show both and each difference. Returns the JSON record."""
    kind = "qemu-user" if device == "auto" else device
    runner = runner_for(built.board, kind) if emulate else None
    with cli_view.terminal_events(quiet=quiet) as events:
        events.stage(f"ask the golden prompts over {place.port}")
        with board_at(built, place) as client:
            board = verify_board(client, built.golden, on_progress=events.progress)
        emulated = None
        if runner is not None:
            events.stage(f"run the golden prompts on {runner}")
            emulated = verify_firmware(runner, built.elf, built.golden, threads=(1,), on_progress=events.progress)
    differences = difference_lines(board, emulated)
    if not quiet:
        console = cli_view.out_console()
        for report in filter(None, (board, emulated)):
            console.print(cli_view.verify_table(report))
        for line in differences:
            click.echo(line)
    return {
        "ok": board.ok and (emulated is None or emulated.ok),
        "board": verify_to_json(board),
        "qemu": verify_to_json(emulated) if emulated else None,
        "differences": differences,
    }


def require_chat(built: Built) -> None:
    """Raise ColibriError for a --raw where every prompt is raw."""
    if built.options.chat is None:
        raise ColibriError("--raw: this build has no chat form; prompts are raw", hint="leave --raw out")


def require_board_verified(record: Mapping[str, Any]) -> None:
    """Raise VerifyError if any answer differs."""
    if not record["ok"]:
        raise VerifyError(
            f"the board's answers are not the reference's ({len(record['differences'])} lines above)",
            hint="colibri-build inspect on the build, then flash it again",
        )


class _Usage(click.Command):
    """The firmware's options as far as they make sense over a serial line."""

    def __init__(self) -> None:
        super().__init__(
            "colibri_inference",
            params=[
                click.Option(["--prompt"]),
                click.Option(["--tokens"]),
                click.Option(["--selftest"], is_flag=True),
                click.Option(["--info"], is_flag=True),
                click.Option(["--max-tokens"], type=click.IntRange(1, 2**32 - 1)),
                click.Option(["--temperature"], type=click.FloatRange(0, 100), default=0.0),
                click.Option(["--top-p"], type=click.FloatRange(0, 1, min_open=True), default=1.0),
                click.Option(["--seed"], type=click.IntRange(0, 2**64 - 1), default=0),
                click.Option(["--ids"], is_flag=True),
                click.Option(["--raw"], is_flag=True),
            ],
            add_help_option=False,
        )


def run_over_serial(built: Built, place: Place, arguments: tuple[str, ...], timeout_s: float) -> int:
    """`run --port`: what the firmware's own options ask for, on the board. Returns the firmware's exit code."""
    wanted = _parsed(arguments)
    if wanted["raw"]:
        require_chat(built)
    with board_at(built, place) as client:
        if wanted["info"]:
            click.echo(json.dumps(client.info()))
            return 0
        status = client.selftest(timeout_s) if wanted["selftest"] else _generate(client, wanted, timeout_s)
    if "message" in status:
        click.echo(f"colibri_inference: {status['message']}", err=True)
    click.echo(MARK + json.dumps(status, separators=(",", ":")), err=True)
    return int(status["exit_code"])


def _parsed(arguments: tuple[str, ...]) -> dict[str, Any]:
    """The firmware's options by name. Raises ColibriError for those that are of no use over a serial line."""
    try:
        wanted = _Usage().make_context("colibri_inference", list(arguments)).params
    except click.UsageError as error:
        raise ColibriError(
            f"over a serial port: {error.format_message().rstrip('.')}",
            hint="--prompt, --tokens, --selftest or --info; --max-tokens, --temperature, --top-p, --seed, --ids, --raw",
        ) from None
    modes = [name for name in ("prompt", "tokens", "selftest", "info") if wanted[name] not in (None, False)]
    if len(modes) != 1:
        raise ColibriError("one of --prompt, --tokens, --selftest and --info is wanted", hint='-- --prompt "TEXT"')
    if wanted["raw"] and modes != ["prompt"]:
        raise ColibriError(f"--raw does not go with --{modes[0]}", hint="leave --raw out")
    wanted["ids_of_prompt"] = None if wanted["tokens"] is None else _ids(wanted["tokens"])
    return wanted


def _generate(client: Client, wanted: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
    """Stream an answer to standard output, as the firmware does; a line end follows it."""
    options = GenerateOptions(
        wanted["max_tokens"] or 0, wanted["temperature"], wanted["top_p"], wanted["seed"], wanted["raw"]
    )
    prompt = wanted["prompt"] if wanted["ids_of_prompt"] is None else wanted["ids_of_prompt"]
    status = client.generate(prompt, options, _writer(wanted["ids"]), timeout_s)
    if status["tokens"]:
        _write(b"\n")
    return status


def _writer(as_ids: bool) -> Callable[[int, int, bytes], None]:
    def write(index: int, token: int, text: bytes) -> None:
        _write(f"{',' if index else ''}{token}".encode() if as_ids else text)

    return write


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _ids(text: str) -> list[int]:
    try:
        ids = [int(word) for word in text.split(",")]
    except ValueError:
        ids = [-1]
    if any(not 0 <= token < 2**32 for token in ids):
        raise ColibriError(f"--tokens {text[:40]}: not a list of token ids", hint="--tokens 1,2,3")
    return ids
