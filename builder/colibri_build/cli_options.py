"""Options of the commands, and what they become: decorators in, requests of the pipeline out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click
from rich_click.utils import OptionGroupDict

from colibri_build.errors import ColibriError, InspectError
from colibri_build.files import read_text
from colibri_build.kinds import DEBUG_NAMES, Format, Kind
from colibri_build.requests import DEFAULT_PROMPTS, BuildRequest, QuantizeChoices

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
PATH = click.Path(path_type=Path)
THREADS = click.IntRange(1, 64)
HELP = {"help_option_names": ["-h", "--help"]}
PREFILL_BATCH = click.IntRange(1, 64)

_PLAN_GROUP: OptionGroupDict = {
    "name": "What is built",
    "options": ["--board", "--ctx", "--threads", "--prefill-batch", "--activations", "--chat", "--system", "--debug"],
}
_QUANTIZE_GROUP: OptionGroupDict = {
    "name": "How a checkpoint is quantized",
    "options": ["--method", "--bits", "--group-size", "--calibration", "--format", "--restart"],
}
_BUILD_GROUP: OptionGroupDict = {
    "name": "How it is built",
    "options": ["--out", "--toolchain", "--embed", "--pristine"],
}
_VERIFY_GROUP: OptionGroupDict = {"name": "How it is proven", "options": ["--verify", "--prompts", "--golden-tokens"]}
_OTHER_GROUP: OptionGroupDict = {"name": "Other", "options": ["--verbose", "--json", "--version", "--help"]}


def set_help_style() -> None:
    """Make the help of every command look alike."""
    style = click.rich_click
    style.TEXT_MARKUP = "ansi"  # backticks and brackets are what they are
    style.TEXT_PARAGRAPH_LINEBREAKS = "\n\n"
    style.PADDING_HELPTEXT_FIRST_LINE = (0, 0, 1, 0)
    style.MAX_WIDTH = 100
    style.OPTION_GROUPS = {
        "colibri-build build": [_PLAN_GROUP, _BUILD_GROUP, _VERIFY_GROUP, _QUANTIZE_GROUP, _OTHER_GROUP],
        "colibri-build plan": [_PLAN_GROUP, _QUANTIZE_GROUP, _OTHER_GROUP],
    }
    style.COMMAND_GROUPS = {
        "colibri-build": [
            {"name": "Make a firmware", "commands": ["build", "quantize", "plan"]},
            {"name": "Look at a finished build", "commands": ["run", "verify", "inspect", "report"]},
            {"name": "Bring it to a board", "commands": ["image", "flash", "initramfs", "monitor"]},
            {"name": "What is there", "commands": ["boards", "toolchains", "doctor"]},
        ]
    }


def _all(*decorators: Decorator) -> Decorator:
    """Return one decorator for several, in the order of the help."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output, and nothing else.")

device_option = click.option(
    "--device",
    type=click.Choice(["auto", "native", "qemu-user"]),
    default="auto",
    show_default=True,
    help="How to run it; auto is native where board and machine allow it, else QEMU.",
)

quantize_options = _all(
    click.option(
        "--method",
        type=click.Choice(["rtn", "awq"]),
        help="Default: awq if --calibration is given, else rtn. rtn needs memory for about the largest tensor in float32; awq "
        "for 14 times a layer's largest matrix, for each thread up to 4 M weights (docs/quantization.md).",
    ),
    click.option(
        "--bits", type=click.Choice(["4", "8"]), default="4", show_default=True, help="Bits of an expert's weight."
    ),
    click.option(
        "--group-size",
        type=click.Choice(["128", "64", "32"]),
        help="Weights that share a scale. Default: 128, or what a quantized checkpoint's own groups allow.",
    ),
    click.option("--calibration", type=PATH, metavar="FILE", help="Text for AWQ; a blank line separates two records."),
    click.option(
        "--format",
        "formats",
        multiple=True,
        metavar="KIND=FORMAT",
        help="Format of one kind of tensor, as attention=w4 or lm_head=f16. May be given several times.",
    ),
    click.option(
        "--restart",
        is_flag=True,
        help="Discard what an interrupted run left. Default: go on with it where checkpoint, options and program are the same.",
    ),
)

plan_options = _all(
    click.argument("model", type=PATH),
    click.option(
        "-b", "--board", required=True, metavar="BOARD", help="A name that colibri-build boards lists, or a .toml file."
    ),
    click.option(
        "--ctx",
        "context",
        type=click.IntRange(min=1),
        metavar="N",
        help="Positions for prompt and answer. Default: the board's.",
    ),
    click.option(
        "--threads",
        "max_threads",
        type=THREADS,
        metavar="N",
        help="Most threads at run time. Default: the CPU's cores.",
    ),
    click.option(
        "--prefill-batch",
        type=PREFILL_BATCH,
        metavar="N",
        help="Most prompt tokens that are computed together: faster, the same answers, more RAM. Default: 4 to 32, what "
        "takes 3 % of the weights.",
    ),
    click.option(
        "--activations", type=click.Choice(["16", "8"]), default="16", show_default=True, help="Bits of an activation."
    ),
    click.option(
        "--chat", is_flag=True, help="Put every prompt into the form of the model's chat template (docs/chat.md)."
    ),
    click.option("--system", metavar="TEXT", help="With --chat: a system message before the prompt."),
    click.option(
        "--debug",
        metavar="NAMES",
        default="",
        help="What the firmware records while it computes: of routing, memory and timing, with commas between. "
        "Default: nothing; not one byte of it is in the binary.",
    ),
    quantize_options,
)

build_options = _all(
    plan_options,
    click.option(
        "-o",
        "-d",
        "--out",
        "--build-dir",
        "out",
        type=PATH,
        metavar="DIR",
        help="Folder to build in. Default: build/BOARD/MODEL.",
    ),
    click.option(
        "--toolchain",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="A name that colibri-build toolchains lists, or prefix:PREFIX, as prefix:aarch64-none-linux-gnu-.",
    ),
    click.option(
        "--embed",
        type=click.Choice(["incbin", "xxd"]),
        default="incbin",
        show_default=True,
        help="How the weights get into the binary; xxd (C arrays) is for small models.",
    ),
    click.option("-p", "--pristine", is_flag=True, help="First remove what an earlier build left in DIR."),
    click.option(
        "--verify", "want_verify", is_flag=True, help="Run the golden prompts and compare with the reference."
    ),
    click.option("--prompts", type=PATH, metavar="FILE", help="Golden prompts, one a line. Default: three built-in."),
    click.option(
        "--golden-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Most tokens of each golden answer. Default: 32, fewer where the reference would need many minutes.",
    ),
    click.option("-v", "--verbose", is_flag=True, help="Show the commands that are run."),
    json_option,
)


def quantize_choices(options: dict[str, Any]) -> QuantizeChoices:
    """What `quantize_options` say. Raises ColibriError for a --format that is none."""
    return QuantizeChoices(
        method=options["method"] or ("awq" if options["calibration"] else "rtn"),
        bits=int(options["bits"]),
        group_size=int(options["group_size"]) if options["group_size"] else None,
        calibration=options["calibration"],
        formats=_formats(options["formats"]),
        restart=options["restart"],
    )


def build_request(options: dict[str, Any], **more: Any) -> BuildRequest:
    """What `plan_options` say; `more` are other fields of the request."""
    return BuildRequest(
        model=options["model"],
        board=options["board"],
        context=options["context"],
        max_threads=options["max_threads"],
        prefill_batch=options["prefill_batch"],
        activation_bits=int(options["activations"]),
        debug=debug_names(options["debug"]),
        chat=options["chat"],
        system=options["system"],
        quantize=quantize_choices(options),
        **more,
    )


def debug_names(text: str) -> tuple[str, ...]:
    """What --debug says, sorted. Raises ColibriError for a name that is none."""
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in DEBUG_NAMES:
            raise ColibriError(
                f"--debug {text}: {name!r} is nothing to record", hint=f"--debug {','.join(DEBUG_NAMES)}"
            )
    return tuple(sorted(set(names)))


def golden_prompts(path: Path | None) -> tuple[str, ...]:
    """The lines of a file that are not empty, or the built-in prompts. Raises ColibriError."""
    if path is None:
        return DEFAULT_PROMPTS
    prompts = tuple(line for line in read_text(path, "file of golden prompts").splitlines() if line.strip())
    if not prompts:
        raise ColibriError(f"{path} holds no prompt", hint="write one prompt a line")
    if any("\0" in prompt for prompt in prompts):
        raise ColibriError(f"{path} holds a NUL character", hint="remove it: no command line can carry it")
    return prompts


def _formats(pairs: tuple[str, ...]) -> dict[Kind, Format]:
    formats = {}
    for pair in pairs:
        kind, _, name = pair.partition("=")
        try:
            formats[Kind(kind)] = Format(name)
        except ValueError:
            kinds, names = ", ".join(Kind), ", ".join(Format)
            raise ColibriError(
                f"--format {pair}: not KIND=FORMAT", hint=f"a kind of {kinds}; a format of {names}"
            ) from None
    return formats


def print_json(value: Any) -> None:
    """What --json prints."""
    click.echo(json.dumps(value, indent=1, sort_keys=True))


def require_report(ok: bool) -> None:
    """Raise InspectError unless every check of an inspection was `ok`."""
    if not ok:
        raise InspectError(
            "the binary breaks a promise (see the lines marked FAILED)",
            hint="build with --pristine, or with another --toolchain",
        )
