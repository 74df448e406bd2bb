"""A program of its own that renders a chat template, because a template may loop, or fill memory, without end.

One JSON object in: `template`, `tokens`, `system` (or null), `texts`. One out: `renderings`, a list of [text, result], for
`texts` and for texts made of the template's own constants, which it may compare the user's text, or its length, with; or
`error`, one line. Templates see what transformers shows them: messages, tools, documents, add_generation_prompt, the tokens.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import ext, nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

CPU_SECONDS = 3  # a usual template takes some hundredths
MEMORY_BYTES = 1 << 30
MOST_BYTES = 1 << 20  # of one result
_MOST_CONSTANTS = 1000  # strings and whole numbers of one template, each tried within CPU_SECONDS
_LONGEST_TRIED = 5000  # characters of a text that is as long as a whole number of the template says
_DATES = (datetime(2001, 2, 3, 4, 5, 6), datetime(2032, 11, 28, 17, 44, 59))


class RefusedError(Exception):
    """What the user has to know, in one line."""


class Generation(ext.Extension):
    """{% generation %} ... {% endgeneration %}: marks for training, of no effect on the text."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the body in a scope of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def _raise_exception(message: object) -> None:
    raise RefusedError(f"it refuses these messages: {message}")


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment() -> jinja2.Environment:
    """The environment in which transformers renders chat templates."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    return environment


class Renderer:
    """One template and what it is shown beside the user's text."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._environment = make_environment()
        self._template = self._environment.from_string(request["template"])
        self._source, self._texts = request["template"], request["texts"]
        self._tokens = request["tokens"]
        system = request["system"]
        self._before = [] if system is None else [{"role": "system", "content": system}]

    def renderings(self) -> list[tuple[str, str]]:
        """Every text with its result. Raises RefusedError, or whatever the template raises."""
        texts = [*self._texts, *self._own_texts()]
        for text in texts[:2]:
            if self._render(text, _DATES[0]) != self._render(text, _DATES[1]):
                raise RefusedError("its result depends on the date, or on chance")
        return [(text, self._render(text, _DATES[0])) for text in texts]

    def _render(self, text: str, date: datetime) -> str:
        messages = [*self._before, {"role": "user", "content": text}]
        pieces, size = [], 0
        for piece in self._template.generate(
            messages=messages,
            tools=None,
            documents=None,
            add_generation_prompt=True,
            strftime_now=date.strftime,
            **self._tokens,
        ):
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise RefusedError(f"it writes more than {MOST_BYTES} characters")
        return "".join(pieces)

    def _own_texts(self) -> Iterator[str]:
        """Texts in which the template's strings stand alone, first, last and in the middle; texts as long as its numbers.

        Raises RefusedError for more constants than are tried: one that is left out may be the one that matters.
        """
        tree = self._environment.parse(self._source)
        constants = {node.value for node in tree.find_all(nodes.Const) if type(node.value) in (str, int)}
        if len(constants) > _MOST_CONSTANTS:
            raise RefusedError(f"it has {len(constants)} constants; at most {_MOST_CONSTANTS} are tried")
        for constant in sorted(value for value in constants if isinstance(value, str) and value):
            yield from (constant, f"{constant} x", f"x {constant}", f"x {constant} x")
        numbers = {value for value in constants if isinstance(value, int)}
        lengths = {length for number in numbers for length in (number - 1, number, number + 1)}
        yield from ("x" * length for length in sorted(lengths) if 0 < length <= _LONGEST_TRIED)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"renderings": Renderer(request).renderings()}
    except RefusedError as error:
        return {"error": str(error)}
    except jinja2.TemplateSyntaxError as error:
        return {"error": f"line {error.lineno}: {error.message}"}
    except MemoryError:
        return {"error": f"it takes more than {MEMORY_BYTES >> 20} MiB of memory"}
    except RecursionError:
        return {"error": "it calls itself without end"}
    except Exception as error:  # a template may raise anything
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    _limit()
    answer = _answer(json.load(sys.stdin))
    json.dump(answer, sys.stdout)
