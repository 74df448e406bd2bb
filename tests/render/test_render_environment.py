"""Templates: C braces survive, a missing value is an error, and no logic hides in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from colibri_build.errors import RenderError
from colibri_build.render.environment import make_environment, render
from colibri_build.resources import data_dir

TEMPLATES = sorted(data_dir("templates").glob("*.j2"))


@dataclass(frozen=True)
class Lacking:
    nothing: int = 0


def test_braces_percent_signs_and_hashes_of_c_pass_unchanged() -> None:
    text = "int a[2][2] = {{1, 2}, {3, 4}};\n#if A % B\n{% x %} {# y #} <% %> %d 100%\n#endif\n"
    assert make_environment().from_string(text).render() == text


def test_values_statements_and_comments_are_recognised() -> None:
    template = "%# a note\n%% for v in values\n{ ${ v } },\n%% endfor\nend\n"
    assert make_environment().from_string(template).render(values=[1, 2]).lstrip() == "{ 1 },\n{ 2 },\nend\n"


def test_a_missing_value_is_an_error_that_names_template_and_value() -> None:
    with pytest.raises(RenderError, match=r"board_config\.h\.j2.*'banner' is undefined"):
        render("board_config.h.j2", Lacking())


def test_a_missing_template_is_an_error() -> None:
    with pytest.raises(RenderError, match="no_such"):
        render("no_such.j2", Lacking())


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_are_short_and_hold_no_logic(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    statements = re.findall(r"^%%\s*(\w+)", text, re.MULTILINE)
    assert set(statements) <= {"for", "endfor", "if", "else", "endif"}
    assert statements.count("if") <= 1
    for value in re.findall(r"\$\{(.*?)\}", text):
        assert re.fullmatch(r" [a-z_0-9]+(\.[a-z_0-9]+)? ", value), f"{value}: values arrive formatted"
