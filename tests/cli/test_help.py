"""The help of every command: there, in plain words, and with examples that hold."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import rich_click as click

from colibri_build import cli
from support.command_line import Run

ROOT = Path(__file__).parents[2]
VERBS = sorted(cli.cli.commands)


def examples(command: click.Command) -> list[str]:
    lines = [line.strip() for line in (command.help or "").splitlines()]
    return [line for line in lines if line.startswith(("colibri-build ", "colibri-quantize "))]


ALL_EXAMPLES = [example for command in (cli.cli, *cli.cli.commands.values()) for example in examples(command)]


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_help_with_an_example(run: Run, verb: str) -> None:
    code, out, err = run(verb, "--help")
    assert (code, err) == (0, "")
    assert "Example" in out
    assert examples(cli.cli.commands[verb])
    assert all(option.help for option in cli.cli.commands[verb].params if isinstance(option, click.Option))
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 100


@pytest.mark.parametrize("example", ALL_EXAMPLES)
def test_an_example_is_a_command_line_that_the_program_takes(example: str) -> None:
    program, *words = shlex.split(example)
    if program == "colibri-quantize":
        cli.cli.commands["quantize"].make_context(program, words)
        return
    group = cli.cli.make_context(program, words)
    _, command, rest = cli.cli.resolve_command(group, [*group._protected_args, *group.args])
    assert command is not None
    context = command.make_context(command.name, rest, parent=group)
    model = context.params.get("model")
    assert model is None or (ROOT / model / "config.json").exists()


def test_the_example_of_plan_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = examples(cli.cli.commands["plan"])
    assert run(*shlex.split(example)[1:])[0] == 0


@pytest.mark.parametrize("verb", ["boards", "toolchains", "doctor"])
def test_lists_are_json_for_machines_and_tables_for_people(run: Run, verb: str) -> None:
    code, out, err = run(verb, "--json")
    assert (code, err) == (0, "")
    names = [entry["name"] for entry in json.loads(out)]
    code, out, err = run(verb)
    assert (code, err) == (0, "")
    assert all(name in out for name in names)
    assert all(line == line.rstrip() for line in out.splitlines()), "blanks that a copy of the output keeps"
    assert max(map(len, out.splitlines())) <= 100


def test_without_arguments_the_help_is_shown(run: Run) -> None:
    code, out, err = run()
    assert code == 2
    assert "Usage: colibri-build" in out + err


def test_both_programs_tell_their_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("--version")[1] == "colibri-build, version 0.1.0\n"
    assert run("quantize", "--version")[1] == "colibri-quantize, version 0.1.0\n"
