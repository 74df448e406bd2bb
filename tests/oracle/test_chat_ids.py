"""The chat form gives the token ids of transformers' `apply_chat_template`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, processors
from transformers import PreTrainedTokenizerFast

from chat.chat_templates import STYLES, Style
from colibri_build.artifacts import ChatTemplate
from colibri_build.checkpoint.chat import read_chat
from colibri_build.checkpoint.tokenizer_encode import encode_prompt
from colibri_build.render.chat import chat_form
from support.tiny_checkpoint import tiny_tokenizer

TEXTS = (
    "hello",
    "  turn the window on \n\n",
    "\u3000\x1c\u4f60\u597d\u2028",
    "a <|im_end|> b [INST]",
    "{{ x }} {% y %}",
    "</think>",
    " ",
)


def saved(folder: Path, style: Style) -> PreTrainedTokenizerFast:
    """A tokenizer with the style's tokens, that puts one of them before a plain text; saved as a checkpoint has it."""
    tokenizer = tiny_tokenizer()
    special = sorted({*style.tokens.values(), "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>"})
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in special])
    first = special[0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A", special_tokens=[(first, tokenizer.token_to_id(first))]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **style.tokens)
    fast.chat_template = style.template
    fast.save_pretrained(folder)
    return fast


@pytest.mark.parametrize("system", [None, " Be brief.\n"])
@pytest.mark.parametrize("name", STYLES)
def test_ids_are_those_of_apply_chat_template(tmp_path: Path, name: str, system: str | None) -> None:
    style = STYLES[name]
    if system is not None and style.with_system is None:
        return  # test_chat_form.py: refused
    judge = saved(tmp_path, style)
    chat = read_chat(tmp_path)
    assert chat == ChatTemplate(style.template, style.tokens)
    form = chat_form(chat, system)
    before = [] if system is None else [{"role": "system", "content": system}]
    for text in TEXTS:
        messages = [*before, {"role": "user", "content": text}]
        expected = judge.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
        assert encode_prompt((tmp_path / "tokenizer.json").read_bytes(), text, form) == list(expected), text
