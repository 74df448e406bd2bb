"""What all vocabularies of GGUF files have: tokens, their types, special ids, and typed access to the other keys."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.errors import CheckpointError, TokenizerError

Json = dict[str, Any]
_PREFIX = "tokenizer.ggml."
# What says nothing about how text becomes ids: what generation does, and other tokens' roles in prompts.
_BENIGN = """
eot_token_id eom_token_id seperator_token_id mask_token_id fim_pre_token_id fim_suf_token_id fim_mid_token_id
fim_pad_token_id fim_rep_token_id fim_sep_token_id prefix_token_id suffix_token_id middle_token_id add_sep_token
token_type_count bos_token_id eos_token_id unknown_token_id padding_token_id
""".split()
_BENIGN_PREFIXES = ("tokenizer.chat_template",)


class TokenType(enum.IntEnum):
    """What a token is for."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_SPECIAL = (TokenType.UNKNOWN, TokenType.CONTROL)
ADDED = (*_SPECIAL, TokenType.USER_DEFINED)  # matched in the text before it is split


@dataclass(frozen=True)
class Vocabulary:
    """`tokens` and `types` by id. `keys` gives the other keys below tokenizer.ggml, without that prefix."""

    kind: str
    where: str
    tokens: list[str]
    types: list[int]
    keys: ConfigKeys

    def of_type(self, *types: TokenType) -> dict[str, int]:
        """Token -> id of the tokens of some types, in order of id."""
        return {
            token: id for id, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True)) if kind in types
        }

    def id_of(self, role: str) -> int | None:
        """The id of "bos", "eos", "unknown" or "padding"; None where the file names none."""
        value = self.keys.take(f"{role}_token_id")
        if value is None:
            return None
        if type(value) is not int or not 0 <= value < len(self.tokens):
            raise self.refused(f"{role}_token_id", value, f"an id below {len(self.tokens)}")
        return value

    def text_if_any(self, role: str) -> str | None:
        """The token of a role; None also where its id is none of the vocabulary's."""
        value = self.keys.take(f"{role}_token_id")
        return self.tokens[value] if type(value) is int and 0 <= value < len(self.tokens) else None

    def text_of(self, role: str) -> str | None:
        """The token of a role."""
        id = self.id_of(role)
        return None if id is None else self.tokens[id]

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.keys.take(key, default)
        if not isinstance(value, bool):
            raise self.refused(key, value, "true or false")
        return value

    def texts(self, key: str) -> list[str] | None:
        """A list of texts, or None."""
        value = self.keys.take(key)
        if value is None:
            return None
        if not _all_of(str, value):
            raise TokenizerError(f'{self.where}: "{_PREFIX}{key}" is no list of texts', hint="convert the model again")
        return list(value)

    def added_tokens(self) -> list[Json]:
        """Of a tokenizer.json. A file does not say which of them were matched in normalized text: none is."""
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        special = self.of_type(*_SPECIAL)
        return [
            {"id": id, "content": token, **flags, "special": token in special}
            for token, id in self.of_type(*ADDED).items()
        ]

    def template(self, add_bos: bool, add_eos: bool) -> Json | None:
        """post_processor that puts the beginning and the end of sequence around a text. Defaults are llama.cpp's."""
        sides = (("bos", self.flag("add_bos_token", add_bos)), ("eos", self.flag("add_eos_token", add_eos)))
        tokens = {role: self.text_of(role) for role, wanted in sides if wanted}
        for role, text in tokens.items():
            if text is None:
                raise self.refused(f"add_{role}_token", True, f"false without {role}_token_id")
        pieces = {role: {"SpecialToken": {"id": text, "type_id": 0}} for role, text in tokens.items()}
        sequence = {"Sequence": {"id": "A", "type_id": 0}}
        single = [piece for piece in (pieces.get("bos"), sequence, pieces.get("eos")) if piece]
        special = {text: {"id": text, "ids": [self.id_of(role)], "tokens": [text]} for role, text in tokens.items()}
        if not tokens:
            return None
        return {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": special}

    def refused(self, key: str, value: object, supported: str) -> TokenizerError:
        """The error for a value that is not supported."""
        return TokenizerError(
            f'{self.where}: "{_PREFIX}{key}" = {ascii(value)[:60]} is not supported', hint=f"supported: {supported}"
        )

    def finish(self) -> None:
        """Refuse the first key that nobody took."""
        try:
            self.keys.finish(_BENIGN)
        except CheckpointError as error:
            raise TokenizerError(error.what, hint=error.hint) from None


def read_vocabulary(metadata: Mapping[str, Any], where: str) -> Vocabulary:
    """Tokens with their types, checked. Raises TokenizerError."""
    own = {
        key.removeprefix(_PREFIX): value
        for key, value in metadata.items()
        if key.startswith("tokenizer.") and not key.startswith(_BENIGN_PREFIXES)
    }
    keys = ConfigKeys(own, f"{where}: {_PREFIX}*")
    kind, tokens = keys.take("model"), keys.take("tokens")
    types = keys.take("token_type")
    if not isinstance(kind, str) or not _all_of(str, tokens) or not tokens:
        raise TokenizerError(
            f'{where}: "{_PREFIX}model" and "{_PREFIX}tokens" are no vocabulary', hint="take a file with a tokenizer"
        )
    types = [int(TokenType.NORMAL)] * len(tokens) if types is None else types
    if not _all_of(int, types) or len(types) != len(tokens) or not set(types) <= set(TokenType):
        raise TokenizerError(
            f'{where}: "{_PREFIX}token_type" is no list of {len(tokens)} types 1..6', hint="convert the model again"
        )
    _refuse_duplicates(tokens, types, where)
    return Vocabulary(kind, where, tokens, types, keys)


def _refuse_duplicates(tokens: list[str], types: list[int], where: str) -> None:
    seen: dict[str, int] = {}
    for id, (token, kind) in enumerate(zip(tokens, types, strict=True)):
        if kind == TokenType.UNUSED:
            continue
        if not token or seen.setdefault(token, id) != id:
            other = f"and {seen[token]} are both" if token else "is"
            raise TokenizerError(
                f"{where}: token {id} {other} {ascii(token)[:60]}", hint="a token needs a text of its own"
            )


def _all_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in value)
