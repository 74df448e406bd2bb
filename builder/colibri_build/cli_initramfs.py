"""The command that makes the initramfs of an image with a kernel."""

from __future__ import annotations

import json
from pathlib import Path

import rich_click as click
from rich.text import Text

from colibri_build import cli_view, pipeline
from colibri_build.cli_options import PATH, json_option
from colibri_build.target.kernel import fetched_folder


@click.command()
@click.option(
    "-b", "--board", required=True, metavar="BOARD", help="A name that colibri-build boards lists, or a .toml file."
)
@click.option("-o", "--out", type=PATH, required=True, metavar="FILE", help="The initramfs.")
@click.option("--toolchain", default="auto", show_default=True, metavar="NAME", help="Compiler of the first stage.")
@click.option(
    "--modules",
    type=PATH,
    metavar="DIR",
    help="Folder with *.ko and their list, the file modules. Default: of the kernel that scripts/fetch_kernel.sh got.",
)
@click.option("--no-modules", is_flag=True, help="For a kernel that has eMMC, GPT and squashfs built in.")
@json_option
def initramfs(board: str, out: Path, toolchain: str, modules: Path | None, no_modules: bool, as_json: bool) -> None:
    """Make the initramfs that takes a kernel to the firmware of the active slot.

    It holds a first stage of some 700 KiB and the kernel's modules; docs/system-emulation.md says what it does. The
    same modules and compiler give the same bytes.

    \b
    Examples:
      colibri-build initramfs -b cortex-a53 -o build/initrd
      colibri-build image --kernel vmlinuz --initrd build/initrd build/cortex-a53/model
    """
    names = pipeline.initramfs(board, toolchain, None if no_modules else modules or fetched_folder(), out)
    size = out.stat().st_size
    if as_json:
        click.echo(json.dumps({"out": str(out), "bytes": size, "modules": names}, indent=1, sort_keys=True))
        return
    text = Text(f"{out}  {cli_view.human_bytes(size)}, {len(names)} modules")
    cli_view.out_console().print(text, soft_wrap=True)
