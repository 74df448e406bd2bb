"""A chat template becomes exactly what it writes, or is refused in one line; it can neither hang nor fill the machine."""

from __future__ import annotations

import pytest
from chat_templates import CHATML, STYLES, Style

from colibri_build.artifacts import ChatTemplate
from colibri_build.errors import RenderError
from colibri_build.render.chat import chat_form

styles = pytest.mark.parametrize("style", STYLES.values(), ids=STYLES.keys())


@styles
def test_prefix_and_suffix_are_what_the_template_writes(style: Style) -> None:
    """Written by hand in chat_templates.py: a wrong form would give every prompt in a form the model never saw."""
    form = chat_form(style.chat)
    assert (form.prefix + "TEXT" + form.suffix, form.trim) == (style.plain, style.trims)
    assert form.prefix == style.plain.partition("TEXT")[0]


@styles
def test_a_system_message_is_part_of_the_prefix_or_refused(style: Style) -> None:
    if style.with_system is not None:
        form = chat_form(style.chat, "SYS")
        assert form.prefix + "TEXT" + form.suffix == style.with_system
        return
    with pytest.raises(RenderError, match=r"^chat template: it refuses these messages: ") as caught:
        chat_form(style.chat, "SYS")
    assert "--chat without --system" in str(caught.value.hint)


USER = "{{ messages[-1].content }}"
REFUSED = {
    "endless-loop": ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}" + USER, "does not end"),
    "endless-output": ("{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}" + USER, "writes more than 1048576"),
    "memory": ("{% set x = 'x' * 99999999999 %}" + USER, "memory"),
    "constant-memory": ("{{ 'x' * 99999999999 }}" + USER, "memory"),
    "recursion": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}" + USER, "calls itself without end"),
    "attribute-access": ("{{ ''.__class__.__mro__[1].__subclasses__() }}" + USER, "'__class__' of 'str' object is unsafe"),
    "globals": ("{{ cycler.__init__.__globals__.os.system('id') }}" + USER, "is unsafe"),
    "change": ("{% set _ = messages.append(1) %}" + USER, "'append' of 'list' object is unsafe"),
    "missing-variable": ("{{ nothing.at_all }}" + USER, "'nothing' is undefined"),
    "missing-filter": ("{{ 1 | nothing }}" + USER, "line 1: No filter named 'nothing'"),
    "include": ("{% include 'etc/passwd' %}" + USER, "no loader"),
    "syntax": ("{% if %}\n" + USER, "line 1: "),
    "unclosed": ("a\nb\n{% for x in y %}" + USER, "line 3: "),
    "type": ("{{ 1 + 'a' }}" + USER, "TypeError"),
    "deep": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}" + USER, "calls itself without end"),
    "date": ("{{ strftime_now('%Y') }}" + USER, "depends on the date"),
    "no-user-text": ("hello", "writes the user's text 0 times"),
    "twice": (USER + USER, "writes the user's text 2 times"),
    "upper-case": ("{{ messages[-1].content | upper }}", "writes the user's text 0 times"),
    "left-trim": ("{{ messages[-1].content.lstrip() }}|", "does not write the text "),
    "other-trim": ("{{ messages[-1].content.strip(' ') }}", "does not write the text "),
    "replaced": ("{{ messages[-1].content.replace('[INST]', '') }}", "does not write the text "),
    "special-text": ("{% if messages[-1].content.startswith('/no') %}T{% endif %}" + USER, "does not write the text '/no'"),
    "last-of-many": (
        "{% if messages[-1].content in " + str([f"word {i:03}" for i in range(990)]) + "[989:] %}T{% endif %}" + USER,
        "does not write the text 'word 989'",
    ),
    "too-many": ("{% set words = " + str([f"word {i}" for i in range(1001)]) + " %}" + USER, "it has 1002 constants; at most"),
    "digits": ("{% if messages[-1].content.isdigit() %}T{% endif %}" + USER, "does not write the text '123'"),
    "letters": ("{% if messages[-1].content.isalpha() %}T{% endif %}" + USER, "does not write the text 'one'"),
    "capitals": ("{% if messages[-1].content.isupper() %}T{% endif %}" + USER, "does not write the text 'ONE'"),
    "equal-length": ("{% if messages[-1].content|length == 3777 %}T{% endif %}" + USER, "does not write the text 'xxx"),
    "short": ("{% if messages[-1].content|length < 2 %}T{% endif %}" + USER, "does not write the text ' '"),
    "long": ("{% if messages[-1].content|length > 4999 %}T{% endif %}" + USER, "does not write the text 'long "),
    "length": ("{{ messages[-1].content | length }}" + USER, "depends on the text"),
    "nul": ("\0" + USER, "NUL"),
    "many-lines": ("{{ raise_exception('one\n\ntwo\x1b[31m') }}" + USER, "it refuses these messages: one two [31m"),
}  # fmt: skip


@pytest.mark.parametrize("template,message", REFUSED.values(), ids=REFUSED.keys())
def test_a_template_that_cannot_be_compiled_is_refused_in_one_line(template: str, message: str) -> None:
    with pytest.raises(RenderError) as caught:
        chat_form(ChatTemplate(template, {}))
    assert caught.value.what.startswith("chat template: ")
    assert message in caught.value.what
    assert caught.value.what.isprintable() and len(caught.value.what) < 400
    assert caught.value.hint


def test_what_transformers_shows_a_template_is_there_and_nothing_else() -> None:
    """Templates ask `is defined`: another answer than transformers' would be another prompt."""
    names = ["messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token", "date_string"]
    template = "".join(f"{{{{ {name} is defined }}}},{{{{ {name} is none }}}};" for name in names) + USER
    form = chat_form(ChatTemplate(template, {"bos_token": "<s>"}))
    assert form.prefix == ("True,False;True,True;True,True;True,False;True,False;False,False;False,False;"), form.prefix


def test_json_is_written_as_transformers_does() -> None:
    form = chat_form(ChatTemplate("{{ {'b': '<é>', 'a': [1, none]} | tojson }}" + USER, {}))
    assert form.prefix == '{"b": "<é>", "a": [1, null]}'


def test_blocks_leave_no_lines_behind() -> None:
    form = chat_form(ChatTemplate("{% if true %}\nA\n{% endif %}\n" + USER + "\n", {}))
    assert (form.prefix, form.suffix) == ("A\n", "")


def test_a_long_system_message_is_kept_whole() -> None:
    system = 'Be brief. \u00e9 \\ " ?' * 1000
    assert f"system\n{system}<|im_end|>" in chat_form(ChatTemplate(CHATML, {}), system).prefix
