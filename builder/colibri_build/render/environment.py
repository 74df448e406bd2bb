"""The one Jinja environment. Its delimiters leave every brace of C alone; a value that is missing is an error.

`${ value }` inserts, `%%` starts a line statement, `%#` starts a line comment. With Jinja's defaults the C initialiser
`{{1, 2}}` would silently become `(1, 2)`.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import TYPE_CHECKING

import jinja2

from colibri_build.errors import RenderError
from colibri_build.resources import data_dir

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@lru_cache(maxsize=1)
def make_environment() -> jinja2.Environment:
    """Environment over the `templates` folder. Block and comment delimiters are set to what no C file contains."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_dir("templates")),
        undefined=jinja2.StrictUndefined,
        variable_start_string="${",
        variable_end_string="}",
        line_statement_prefix="%%",
        line_comment_prefix="%#",
        block_start_string="<%%%",
        block_end_string="%%%>",
        comment_start_string="<%#%",
        comment_end_string="%#%>",
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,
    )


def render(template: str, context: DataclassInstance) -> str:
    """Fill `template` (its file name) from a frozen dataclass whose fields are the names that the template uses.

    Raises RenderError, naming template and value, for a name that the context lacks.
    """
    names = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    try:
        return make_environment().get_template(template).render(names)
    except jinja2.TemplateNotFound as error:
        raise RenderError(f"template {error.name} is missing", hint="reinstall colibri-build") from error
    except jinja2.TemplateError as error:
        raise RenderError(
            f"template {template}: {error.message}", hint="report this: it is a generator fault"
        ) from error
