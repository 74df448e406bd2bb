"""`colibri-quantize`, which is `colibri-build quantize`, too."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click
from rich.text import Text

from colibri_build import __version__, cli_view
from colibri_build.cli_options import HELP, PATH, json_option, print_json, quantize_choices, quantize_options
from colibri_build.model_source import quantize_checkpoint


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
        print_json({"out": str(folder.path), "report": asdict(report)})
        return
    console = cli_view.out_console()
    console.print(cli_view.quantize_table(report))
    if report.expert_tokens:
        console.print(cli_view.calibration_table(report))
    size = cli_view.human_bytes(sum(f.bytes for f in folder.files.values()))
    console.print(Text(f"{folder.path}  {size}"), soft_wrap=True)
