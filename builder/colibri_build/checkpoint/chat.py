"""The chat template of a checkpoint folder, and the texts of the tokens that it names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colibri_build.artifacts import ChatTemplate
from colibri_build.checkpoint.config_keys import read_json_object
from colibri_build.errors import CheckpointError

TEMPLATE_FILE, TOKENIZER_CONFIG = "chat_template.jinja", "tokenizer_config.json"
CHAT_FILES = (TEMPLATE_FILE, TOKENIZER_CONFIG)
_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def read_chat(folder: Path) -> ChatTemplate | None:
    """The template that transformers would use without a name: chat_template.jinja, else `chat_template` of
    tokenizer_config.json, of several the one called "default". None where there is none. Raises CheckpointError.
    """
    path = folder / TOKENIZER_CONFIG
    values = read_json_object(path) if path.is_file() else {}
    template = _template_file(folder / TEMPLATE_FILE)
    if template is None:
        template = chat_template(values.get("chat_template"), str(path))
    if template is None:
        return None
    _refuse_half_characters(template, f'{path}: "chat_template"')
    return ChatTemplate(template, token_texts(values, str(path)))


def chat_template(value: Any, where: str) -> str | None:
    """The default template of a `chat_template` as JSON has it: a text, or a list of {name, template}."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(_is_named(item) for item in value):
        raise CheckpointError(
            f'{where}: "chat_template" is neither a text nor a list of names and templates',
            hint="remove the key: without it the model has no chat template",
        )
    return next((str(item["template"]) for item in value if item["name"] == "default"), None)


def token_texts(values: Mapping[str, Any], where: str) -> dict[str, str]:
    """Texts of the special tokens that a tokenizer_config.json names, as strings or as {"content": ...}."""
    texts = {}
    for name in _TOKENS:
        value = values.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if text is None:
            continue
        if not isinstance(text, str):
            raise CheckpointError(f'{where}: "{name}" is no text', hint='write the token itself, as "<s>"')
        _refuse_half_characters(text, f'{where}: "{name}"')
        texts[name] = text
    return texts


def _refuse_half_characters(text: str, where: str) -> None:
    """JSON can write half of a surrogate pair, which no file in UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CheckpointError(
            f"{where} holds a lone surrogate: {text[error.start]!a}", hint="download the file again"
        ) from error


def _template_file(path: Path) -> str | None:
    if not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})", hint="download the file again") from error


def _is_named(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get("template"), str)
