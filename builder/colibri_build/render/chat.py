"""A chat template as prefix, user's text and suffix: rendered at build time, tried with texts of many kinds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri_build.artifacts import ChatForm, ChatTemplate, ModelFolder
from colibri_build.errors import RenderError
from colibri_build.render import chat_process
from colibri_build.render.banner import banner
from colibri_build.render.c_data import c_string
from colibri_build.render.environment import render

TEMPLATE = "chat_form.c.j2"
_WALL_SECONDS = 60  # the process limits itself by the time that it computes
_SENTINELS = ("colibri 7 hummingbird", "wren 3 lark")  # texts that no template has
# What a template may treat in a way of its own: blanks around and between, lines, quotes, markup, letters, digits, length.
_TEXTS = (
    *_SENTINELS,
    " ",
    " one",
    "one ",
    "\t\n one \r\n ",
    "\u00a0\u3000\x1cone\u2028\x1f",
    "\u200bone\ufeff",
    "a\n\n\nb  c",
    "{{ messages }} {% if %} {# #}",
    "\"quoted\" 'it' \\n <b>&amp;</b>",
    "Gr\u00f6\u00dfe \u6f22\u5b57 \U0001f468\u200d\U0001f469",
    "ONE two",
    "one",
    "ONE",
    "123",
    "long " * 1000 + "end",
)
_WITHOUT = "build without --chat, and put the whole prompt together yourself"


def chat_form(chat: ChatTemplate, system: str | None = None) -> ChatForm:
    """Prefix and suffix that the template writes around a user's text, behind a system message if there is one.

    Raises RenderError for a template that fails, or whose result is anything else.
    """
    renderings = _render(chat, system)
    form = _split(*renderings[0])
    again = _split(*renderings[1])
    if form != again:
        raise _refusal("what it writes around the user's text depends on the text", _WITHOUT)
    wrong = {
        trim: [text for text, result in renderings if result != _joined(form, text, trim)] for trim in (False, True)
    }
    trim = min(wrong, key=lambda rule: len(wrong[rule]))
    if not wrong[trim]:
        return ChatForm(*form, trim)
    raise _refusal(
        f"it does not write the text {_shown(wrong[trim][0])} as it is between one beginning and one end, "
        "nor without the white space around it",
        _WITHOUT,
    )


def _joined(form: tuple[str, str], text: str, trim: bool) -> str:
    return form[0] + (text.strip() if trim else text) + form[1]


def _split(text: str, result: str) -> tuple[str, str]:
    """What is before and behind the text. Raises RenderError for what no C string can hold, or a text not there once."""
    if result.count(text) != 1:
        raise _refusal(f"it writes the user's text {result.count(text)} times, not once", _WITHOUT)
    if "\0" in result or any(0xD800 <= ord(char) < 0xE000 for char in result):
        raise _refusal("it writes a NUL or half a surrogate pair", _WITHOUT)
    before, _, behind = result.partition(text)
    return before, behind


def _render(chat: ChatTemplate, system: str | None) -> list[tuple[str, str]]:
    """(text, result) for texts of many kinds, made by a process that may be stopped."""
    request = {"template": chat.template, "tokens": dict(chat.tokens), "system": system, "texts": _TEXTS}
    answer = _run([sys.executable, "-P", str(Path(chat_process.__file__))], json.dumps(request))
    if "error" in answer:
        hint = _WITHOUT if system is None else f"--chat without --system; or {_WITHOUT}"
        raise _refusal(str(answer["error"]), hint)
    return [(text, result) for text, result in answer["renderings"]]


def _run(command: Sequence[str], request: str) -> dict[str, Any]:
    endless = {"error": f"it does not end within {chat_process.CPU_SECONDS} s, or takes too much memory"}
    try:
        done = subprocess.run(command, input=request.encode(), capture_output=True, timeout=_WALL_SECONDS)
    except subprocess.TimeoutExpired:
        return endless
    if done.returncode < 0:
        return endless
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"error": f"rendering failed: {done.stderr.decode(errors='replace')[-200:]}"}
    return answer


def _refusal(what: str, hint: str) -> RenderError:
    """One printable line."""
    line = " ".join("".join(char if char.isprintable() else " " for char in what).split())
    return RenderError(f"chat template: {line[:300]}", hint=hint)


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:40] + "...")


@dataclass(frozen=True)
class ChatFormContext:
    """Names of the template's values."""

    banner: str
    prefix: str
    suffix: str


def chat_form_source(folder: ModelFolder, form: ChatForm) -> str:
    """Text of chat_form.c."""
    prefix, suffix = c_string(form.prefix.encode()), c_string(form.suffix.encode())
    return render(TEMPLATE, ChatFormContext(banner(TEMPLATE, folder), prefix, suffix))
