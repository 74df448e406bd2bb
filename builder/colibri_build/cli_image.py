"""The commands that bring a firmware to a board: image, flash."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click
from rich.console import Group
from rich.table import Table
from rich.text import Text

from colibri_build import cli_view, pipeline
from colibri_build.cli_options import PATH, json_option
from colibri_build.errors import FlashError, ImageError
from colibri_build.image.flash import OTHER, FlashEvents, FlashOptions, FlashResult
from colibri_build.image.layout import BOOT, MIB, SLOTS, slot_label
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


class _Steps(FlashEvents):
    """Steps and a bar in MiB on stderr; the question on the terminal."""

    def __init__(self, events: cli_view.TerminalEvents, yes: bool) -> None:
        self._events, self._yes, self._step = events, yes, ""
        self.last_state = ""

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar; a new step has a line of its own, where nobody sees bars, too."""
        if what != self._step:
            self._step = what
            self._events.stage(f"{what} ({cli_view.human_bytes(total)})")
        self._events.progress(f"{what}, MiB", done // MIB, max(total // MIB, 1))

    def confirm(self, question: str) -> None:
        """Ask on a terminal; elsewhere --yes has to be there."""
        if self._yes:
            return
        self._events.end_bar()
        if not sys.stdin.isatty():
            raise FlashError(f"{question} Nobody can answer here", hint="--yes")
        if not click.confirm(question[:1].upper() + question[1:], err=True):
            raise FlashError("not confirmed: nothing was written", hint="--yes answers beforehand")

    def state(self, text: str) -> None:
        """Keep it for Ctrl-C."""
        self.last_state = text


@click.command()
@click.argument("image_dir", type=PATH)
@click.option("--device", type=PATH, required=True, metavar="DEV", help="The disk, as /dev/sdb, or a file for one.")
@click.option(
    "--slot",
    type=click.Choice([*SLOTS, OTHER]),
    help="Write this slot only and make it the active one; other is the one that is not active.",
)
@click.option(
    "-b", "--board", metavar="BOARD", help="The board that the device belongs to. Default: what it says itself."
)
@click.option(
    "--force", is_flag=True, help="Also disks that are not removable, the active slot, another board's device."
)
@click.option("--yes", is_flag=True, help="Do not ask before a disk is overwritten.")
@json_option
def flash(image_dir: Path, device: Path, **options: Any) -> None:
    """Write the image of IMAGE_DIR to a disk, or update one of its firmware slots, and read everything back.

    The whole image goes to a new card or eMMC. --slot other updates a device in use: the new firmware is written beside
    the active one, compared, and only then made active, by one sector; a cut before that changes nothing. Mounted disks
    and boot areas are refused. A file as device is treated as a disk (truncate -s 1G disk.img).

    \b
    Examples:
      colibri-build flash build/cortex-a53/model/image --device /dev/sdb
      colibri-build flash build/cortex-a53/model/image --device /dev/sdb --slot other --yes
    """
    wanted = FlashOptions(options["slot"], options["force"], options["board"])
    result = _flash(image_dir, device, wanted, quiet=options["as_json"], yes=options["yes"])
    if not pipeline.is_latest(image_dir, result):
        again = shlex.join(["colibri-build", "image", str(image_dir.absolute().parent)])
        click.echo(
            f"note: the firmware was built anew since this image was made; take it along with: {again}", err=True
        )
    if options["as_json"]:
        click.echo(json.dumps(asdict(result), indent=1, sort_keys=True))
        return
    what = f"slot {result.slot}" if result.slot else "the whole image"
    size = cli_view.human_bytes(result.written_bytes)
    click.echo(f"{result.device}: {what} written and read back ({size}); slot {result.active} is active")


def _flash(image_dir: Path, device: Path, wanted: FlashOptions, *, quiet: bool, yes: bool) -> FlashResult:
    """Flash, and say what state the device is in if somebody stops it."""
    with cli_view.terminal_events(quiet=quiet) as events:
        steps = _Steps(events, yes)
        try:
            return pipeline.flash(image_dir, device, wanted, steps)
        except (KeyboardInterrupt, SystemExit):
            events.end_bar()
            click.echo(f"stopped: {steps.last_state}", err=True)
            raise
