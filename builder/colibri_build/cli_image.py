"""The commands that bring a firmware to a board: image, flash."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click
from rich.console import Group
from rich.table import Table
from rich.text import Text

from colibri_build import cli_view, pipeline
from colibri_build.cli_options import PATH, json_option
from colibri_build.errors import ImageError
from colibri_build.image.layout import BOOT, slot_label
from colibri_build.image.make import ImageOptions, Kernel
from colibri_build.image.manifest import IMAGE_FILE, Manifest

verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show the commands that are run.")


@click.command()
@click.argument("build_dir", type=PATH)
@click.option("-o", "--out", type=PATH, metavar="DIR", help="Folder of the image. Default: BUILD_DIR/image.")
@click.option(
    "--slot-size",
    type=click.IntRange(min=1),
    metavar="MIB",
    help="Size of one firmware slot. Default: a quarter more than the firmware.",
)
@click.option(
    "--image-size",
    type=click.IntRange(min=1),
    metavar="MIB",
    help="Size of the whole image. Default: the sum of its parts.",
)
@click.option("--fill-both", is_flag=True, help="Put the firmware into slot b, too; else b stays empty.")
@click.option("--kernel", type=PATH, metavar="FILE", help="Linux kernel, for a board without a system of its own.")
@click.option("--initrd", type=PATH, metavar="FILE", help="Initial RAM disk for --kernel.")
@click.option("--dtb", type=PATH, metavar="FILE", help="Device tree for --kernel.")
@click.option(
    "--cmdline", metavar="TEXT", help="More kernel arguments; those after -- go to the firmware instead of --serve."
)
@verbose_option
@json_option
def image(build_dir: Path, out: Path | None, **options: Any) -> None:
    """Make a disk image of a finished build: GPT, boot partition, two firmware slots.

    The folder gets colibri.img, its block map, firmware.squashfs for the update of one slot, manifest.json and
    SHA256SUMS. The same build gives the same bytes. No root is needed.

    \b
    Examples:
      colibri-build image build/cortex-a53/model
      colibri-build image --kernel vmlinuz --initrd initrd.img -o out build/cortex-a53/model
    """
    wanted = ImageOptions(options["slot_size"], options["image_size"], _kernel(options), options["fill_both"])
    with cli_view.terminal_events(verbose=options["verbose"], quiet=options["as_json"]) as events:
        folder, manifest = pipeline.image(build_dir, out, wanted, events)
    if options["as_json"]:
        click.echo(json.dumps({"out": str(folder), "manifest": asdict(manifest)}, indent=1, sort_keys=True))
        return
    console = cli_view.out_console()
    console.print(_image_table(manifest))
    size = cli_view.human_bytes(manifest.image_bytes)
    console.print(Text(f"{folder / IMAGE_FILE}  {size}"), soft_wrap=True)


def _kernel(options: dict[str, Any]) -> Kernel | None:
    if options["kernel"] is None:
        for name in ("initrd", "dtb", "cmdline"):
            if options[name] is not None:
                raise ImageError(f"--{name} without --kernel", hint=f"--kernel FILE, or leave --{name} out")
        return None
    if options["initrd"] is None:
        raise ImageError("--kernel without --initrd: nothing would mount the slot", hint="--initrd FILE")
    return Kernel(options["kernel"], options["initrd"], options["dtb"], options["cmdline"] or "")


def _image_table(manifest: Manifest) -> Group:
    """The partitions, and what is in them."""
    table = Table(header_style="bold")
    for heading, justify in (("partition", "left"), ("offset", "right"), ("size", "right"), ("holds", "left")):
        table.add_column(heading, justify="right" if justify == "right" else "left", overflow="fold")
    slot = f"firmware.squashfs, {cli_view.human_bytes(manifest.slot_image.bytes)}"
    holds = {slot_label(name): slot for name in manifest.used}
    holds[BOOT] = ", ".join(file.name for file in manifest.boot_files)
    for region in manifest.partitions:
        offset, size = (cli_view.human_bytes(count) for count in (region.offset, region.bytes))
        table.add_row(region.name, offset, size, Text(holds.get(region.name, "nothing")))
    title = f"Image: {manifest.firmware.board}, {cli_view.human_bytes(manifest.mapped_bytes)} to write"
    return Group(Text(title, style="bold"), table)
