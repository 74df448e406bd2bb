"""The command line: parse, call the pipeline, print, exit. Nothing else prints or exits."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import rich_click as click

from colibri_build import __version__
from colibri_build.cli_options import HELP, set_help_style
from colibri_build.errors import ColibriError

set_help_style()

_FILES = {  # verb -> the file of its command, which is imported when the command is asked for
    **dict.fromkeys(("build", "plan"), "cli_build"),
    **dict.fromkeys(("verify", "inspect", "run"), "cli_built"),
    **dict.fromkeys(("boards", "toolchains", "doctor"), "cli_lists"),
    **dict.fromkeys(("image", "flash"), "cli_image"),
    "quantize": "cli_quantize",
    "report": "cli_report",
    "initramfs": "cli_initramfs",
    "emulate": "cli_emulate",
    "monitor": "cli_monitor",
}


class _Commands(MutableMapping[str, click.Command]):
    """The commands by verb. Importing all of them takes longer than most of them run."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, verb: str) -> click.Command:
        if verb not in self._loaded:
            self._loaded[verb] = getattr(import_module(f"colibri_build.{_FILES[verb]}"), verb)
        return self._loaded[verb]

    def __contains__(self, verb: object) -> bool:
        return verb in _FILES

    def __setitem__(self, verb: str, command: click.Command) -> None:
        self._loaded[verb] = command

    def __delitem__(self, verb: str) -> None:
        del self._loaded[verb]

    def __iter__(self) -> Iterator[str]:
        return iter(_FILES)

    def __len__(self) -> int:
        return len(_FILES)


class DefaultBuild(click.RichGroup):
    """A group whose first word may be a verb; without one the words are those of `build`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = _Commands()  # only now: the library's own constructor looks at every command

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
    _run(cli.commands["quantize"], "colibri-quantize")


def monitor_main() -> None:
    """`colibri-monitor`."""
    _run(cli.commands["monitor"], "colibri-monitor")
