"""Added tokens and post-processor of tokenizer.json."""

from __future__ import annotations

from collections.abc import Mapping

from colibri_build.artifacts import AddedToken
from colibri_build.checkpoint.tokenizer_json import (
    JsonObject,
    as_id,
    as_list,
    as_object,
    as_text,
    flag,
    flatten,
    malformed,
    unsupported,
)
from colibri_build.checkpoint.tokenizer_model import token_bytes
from colibri_build.errors import TokenizerError


def read_added(value: object, vocab: Mapping[str, int], vocab_size: int, byte_level: bool) -> tuple[AddedToken, ...]:
    """Read `added_tokens`; each must get the id that the `tokenizers` library would give it."""
    added: dict[str, AddedToken] = {}
    highest = -1
    for index, item in enumerate(as_list(value if value is not None else [], "added_tokens")):
        token = _read_added_token(as_object(item, f"added_tokens[{index}]"), f"added_tokens[{index}]", vocab_size)
        name = token.content.decode()
        if name in added:
            malformed(f"added token {name!a} appears twice")
        _check_id(token, name, vocab, max(len(vocab), highest + 1))
        if byte_level and name in vocab and token_bytes(name) not in (None, token.content):
            unsupported(f"added token {name!a}, which is also the byte-level spelling of other text,")
        highest = max(highest, token.id)
        added[name] = token
    return tuple(added.values())


def _read_added_token(item: JsonObject, where: str, vocab_size: int) -> AddedToken:
    content = as_text(item.get("content"), f"{where}.content")
    if not content:
        malformed(f"{where}.content is empty")
    if flag(item, "single_word", where, False):
        unsupported(f"single_word of added token {content!a}")
    lstrip, rstrip = (flag(item, key, where, False) for key in ("lstrip", "rstrip"))
    token_id = as_id(item.get("id"), f"the id of added token {content!a}", vocab_size)
    special = flag(item, "special", where, False)
    normalized = flag(item, "normalized", where, not special)
    return AddedToken(token_id, content.encode(), special, normalized, lstrip, rstrip)


def _check_id(token: AddedToken, name: str, vocab: Mapping[str, int], next_free: int) -> None:
    """The library ignores the id in the file: it takes the vocabulary's, or else the next free one."""
    given = vocab.get(name, next_free)
    if token.id != given:
        raise TokenizerError(
            f"tokenizer.json: added token {name!a} has id {token.id}, but the tokenizers library gives it {given}",
            hint="number added tokens from the end of model.vocab upwards without a gap",
        )


def read_post_processor(
    value: object, known: frozenset[int], vocab_size: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids that go before and after a single prompt. `known`: ids that a token has."""
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    templates = 0
    for name, holder in flatten(value, "post_processor", "processors"):
        if name == "ByteLevel":
            continue  # changes offsets only
        if name != "TemplateProcessing":
            unsupported(f"post_processor {name!a}")
        templates += 1
        if templates > 1:
            unsupported("post_processor with more than one TemplateProcessing")
        prefix, suffix = _read_template(holder, known, vocab_size)
    return prefix, suffix


def _read_template(
    holder: JsonObject, known: frozenset[int], vocab_size: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    special = as_object(holder.get("special_tokens"), "post_processor.special_tokens")
    sides: list[list[int]] = [[]]
    for item in as_list(holder.get("single"), "post_processor.single"):
        piece = as_object(item, "an item of post_processor.single")
        if "Sequence" in piece:
            if as_object(piece["Sequence"], "post_processor.single.Sequence").get("id") != "A":
                unsupported("post_processor.single with a sequence other than A")
            sides.append([])
            continue
        token = as_object(piece.get("SpecialToken"), "post_processor.single.SpecialToken")
        sides[-1].extend(_template_ids(as_text(token.get("id"), "post_processor token"), special, known, vocab_size))
    if len(sides) != 2:
        malformed(f"post_processor.single names the prompt {len(sides) - 1} times, not once")
    return tuple(sides[0]), tuple(sides[1])


def _template_ids(name: str, special: JsonObject, known: frozenset[int], vocab_size: int) -> list[int]:
    where = f"post_processor.special_tokens[{name!a}]"
    ids = [
        as_id(i, f"an id of {where}", vocab_size)
        for i in as_list(as_object(special.get(name), where).get("ids"), where)
    ]
    for token_id in ids:
        if token_id not in known:
            malformed(f"{where} names id {token_id}, which no token has")
    return ids
