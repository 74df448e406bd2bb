"""The command `report`: traces in, one page, JSON, Markdown or a Perfetto trace out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import rich_click as click
from rich.text import Text

from colibri_build import cli_view
from colibri_build.build_folder import BUILD_FILE, WEIGHTS_FOLDER, json_bytes, open_build
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.cli_options import PATH
from colibri_build.errors import ColibriError, TraceError
from colibri_build.files import write_whole
from colibri_build.pack.reader import read_model_folder
from colibri_build.report.build import make_report
from colibri_build.report.json_text import report_to_json
from colibri_build.report.markdown import losses_text, report_to_markdown
from colibri_build.report.model import Build, Report
from colibri_build.report.page import report_to_page
from colibri_build.report.perfetto import perfetto_trace
from colibri_build.trace.read import read_traces
from colibri_build.trace_events import Trace

FORMATS = ("html", "json", "md", "perfetto")
_DEFAULT_PAGE = Path("report.html")
_DIGEST_DIGITS = 16  # of the model's digest that a trace has


@click.command(cls=click.RichCommand)
@click.argument("traces", nargs=-1, required=True, type=PATH, metavar="TRACE...")
@click.option("-o", "--out", type=PATH, metavar="FILE", help="Default: report.html; other formats: standard output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Default: by the ending of FILE (.html, .json, .md), else html. perfetto: for ui.perfetto.dev.",
)
@click.option("--build", "build_dir", type=PATH, metavar="DIR", help="The build that the firmware came from.")
@click.option("--compare", "other", type=PATH, metavar="TRACE", help="Another trace of the same model.")
@click.option(
    "--first-token",
    type=click.IntRange(min=0),
    metavar="N",
    help="Where the page's time line begins. Default: it shows the last tokens.",
)
def report(
    traces: tuple[Path, ...],
    out: Path | None,
    form: str | None,
    build_dir: Path | None,
    other: Path | None,
    first_token: int | None,
) -> None:
    """Show what the traces of a debug firmware say: latency, experts, memory, and what was lost.

    Both encodings are read, also from the log of a console. The page needs no network and nothing beside it.

    \b
    Examples:
      colibri-build report trace.bin -o report.html
      colibri-build report new.bin --compare old.bin --build build/cortex-a53/model --format md
    """
    form = form or _format_of(out)
    trace = read_traces(traces)
    build = _checked_build(build_dir, trace) if build_dir else None
    made = make_report(trace, build, read_traces([other]) if other else None)
    data = _writers(made, trace, first_token)[form]()
    if out is None and form != "html":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        target = out or _DEFAULT_PAGE
        write_whole(target, data)
        cli_view.out_console().print(Text(f"{target}  {cli_view.human_bytes(len(data))}"), soft_wrap=True)
    for name, losses in _losses(made).items():
        click.echo(f"note: {name} is not whole: {losses}", err=True)


def _format_of(out: Path | None) -> str:
    ending = out.suffix.removeprefix(".") if out else "html"
    return ending if ending in ("json", "md") else "html"


def _writers(made: Report, trace: Trace, first_token: int | None) -> dict[str, Callable[[], bytes]]:
    return {
        "html": lambda: report_to_page(made, trace, first_token).encode(),
        "json": lambda: json_bytes(report_to_json(made)),
        "md": lambda: report_to_markdown(made).encode(),
        "perfetto": lambda: json.dumps(perfetto_trace(trace), separators=(",", ":"), sort_keys=True).encode() + b"\n",
    }


def _losses(made: Report) -> dict[str, str]:
    """What is lost, by the names of the files."""
    found = {", ".join(source.name for source in made.sources): losses_text(made.losses)}
    if made.comparison:
        found[", ".join(source.name for source in made.comparison.sources)] = losses_text(made.comparison.losses)
    return {name: losses for name, losses in found.items() if losses}


def _checked_build(build_dir: Path, trace: Trace) -> Build:
    """What the page says of the build. Raises TraceError if the trace is of another model."""
    built = open_build(build_dir)
    record = json.loads((build_dir / BUILD_FILE).read_bytes())
    digest = str(record.get("model", ""))[:_DIGEST_DIGITS]
    if digest != trace.info.digest:
        names = ", ".join(source.name for source in trace.sources)
        raise TraceError(
            f"{names} is of model {trace.info.digest}, the build {build_dir} of model {digest}",
            hint="name the build whose firmware wrote the trace, or leave --build out",
        )
    return Build(built.board.name, built.toolchain, built.options.context, _token_texts(build_dir / WEIGHTS_FOLDER))


def _token_texts(weights: Path) -> tuple[str, ...]:
    """Texts of the tokens, for the page's tooltips; none if the build's copy of the model is gone or damaged."""
    try:
        folder = read_model_folder(weights)
        tokenizer = read_tokenizer_bytes((weights / "tokenizer.json").read_bytes(), folder.config.vocab_size)
    except (ColibriError, OSError):
        return ()
    return tuple(token.decode("utf-8", "replace") for token in tokenizer.tokens)
