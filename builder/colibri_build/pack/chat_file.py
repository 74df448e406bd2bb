"""chat.json of a model folder: the checkpoint's chat template as it was."""

from __future__ import annotations

import json

from colibri_build.artifacts import ChatTemplate
from colibri_build.errors import PackError
from colibri_build.files import unique_keys

CHAT_FILE = "chat.json"


def chat_bytes(chat: ChatTemplate) -> bytes:
    """The file's bytes: a function of the values alone. Raises PackError for what is not Unicode text."""
    value = {"template": chat.template, "tokens": dict(chat.tokens)}
    try:
        return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError as error:
        raise PackError(f"the chat template is no Unicode text ({error.reason})", hint="correct it") from error


def read_chat_bytes(data: bytes, where: str) -> ChatTemplate:
    """The template from the file's bytes; `where` is the path for messages. Raises PackError."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique_keys)
        if set(value) != {"template", "tokens"}:
            raise TypeError("keys")
        template, tokens = value["template"], value["tokens"]
        if not all(isinstance(text, str) for text in (template, *tokens.values())):
            raise TypeError("values")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise PackError(
            f"{where}: no object with a text `template` and an object `tokens` of texts",
            hint="make the model folder again with colibri-quantize",
        ) from error
    return ChatTemplate(template, tokens)
