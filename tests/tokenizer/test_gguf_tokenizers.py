"""The vocabulary of a GGUF file gives the ids of the tokenizer.json that its converter read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tokenizer_corpus import SENTENCES, corpus
from tokenizer_families import FAMILIES
from tokenizers import AddedToken, Tokenizer, processors

from colibri_build.checkpoint.gguf_tokenizer import read_chat, tokenizer_json
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.errors import CheckpointError, TokenizerError

Metadata = dict[str, Any]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BYTE_LEVEL = {
    "llama3": "llama-bpe",
    "qwen2": "qwen2",
    "o200k": "gpt-4o",
    "deepseek3": "deepseek-v3",
    "deepseek-coder": "deepseek-coder",
    "starcoder": "refact",
}
WHOLE = ("llama-bpe",)  # published with ignore_merges
TEXTS = [*SENTENCES, *(corpus()[start : start + 1500] for start in range(0, 60000, 1500))]


def _byte_level(tokenizer: Tokenizer, pre: str) -> Metadata:
    names = {id: token for token, id in tokenizer.get_vocab(with_added_tokens=True).items()}
    added = {id: token.special for id, token in tokenizer.get_added_tokens_decoder().items()}
    tokens = [names.get(id, f"[PAD{id}]") for id in range(max(names) + 4)]
    types = [
        (CONTROL if added[id] else USER_DEFINED) if id in added else NORMAL if id in names else UNUSED
        for id in range(len(tokens))
    ]
    merges = [" ".join(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]
    keys = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": types,
        "merges": merges,
        "add_bos_token": False,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def _characters(tokenizer: Tokenizer) -> Metadata:
    """SentencePiece gives the piece that is made first the best score; characters have the lowest ones."""
    model = json.loads(tokenizer.to_str())["model"]
    vocab: dict[str, int] = model["vocab"]
    tokens = sorted(vocab, key=lambda token: vocab[token])
    rank = {left + right: -float(number) for number, (left, right) in reversed(list(enumerate(model["merges"])))}
    scores = [rank.get(token, -1e6 - id) for id, token in enumerate(tokens)]
    types = [BYTE if token.startswith("<0x") else NORMAL for token in tokens]
    types[:3] = [UNKNOWN, CONTROL, CONTROL]
    keys = {
        "model": "llama", "pre": "default", "tokens": tokens, "scores": scores, "token_type": types,
        "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0, "add_bos_token": False,
    }  # fmt: skip
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def _library(metadata: Metadata) -> Tokenizer:
    """The library's tokenizer, after ours has been compiled of the same bytes."""
    data = tokenizer_json(metadata, "model.gguf")
    read_tokenizer_bytes(data, len(metadata["tokenizer.ggml.tokens"]))
    return Tokenizer.from_str(data.decode())


def _assert_same_ids(found: Tokenizer, expected: Tokenizer, texts: list[str] = TEXTS) -> None:
    for text in texts:
        assert found.encode(text).ids == expected.encode(text).ids, text[:80]


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_a_byte_level_vocabulary_splits_as_its_name_says(name: str) -> None:
    expected = FAMILIES[name]()
    pre = BYTE_LEVEL[name]
    root = json.loads(expected.to_str())
    root["model"]["ignore_merges"] = pre in WHOLE
    expected = Tokenizer.from_str(json.dumps(root))
    _assert_same_ids(_library(_byte_level(expected, pre)), expected)


@pytest.mark.parametrize("name, prefix", [("llama2", True), ("replace-only", False)])
def test_merges_of_a_sentencepiece_vocabulary_follow_from_its_scores(name: str, prefix: bool) -> None:
    expected = FAMILIES[name]()
    metadata = _characters(expected) | {"tokenizer.ggml.add_space_prefix": prefix}
    found = _library(metadata)
    _assert_same_ids(found, expected)
    for text in TEXTS[:20]:
        assert found.decode(found.encode(text).ids) == expected.decode(expected.encode(text).ids)


def test_of_two_pieces_that_a_vocabulary_can_make_the_better_score_is_made_first() -> None:
    """ "abc" is ab + c where "ab" has the better score, though the other way round its id is lower."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "bc", "ab", "abc", "a", "b", "c", "\u2581"]
    scores = [0.0] * 257 + [-2.0, -1.0, -9.0, -10.0, -11.0, -12.0, -13.0]
    types = [UNKNOWN, *([BYTE] * 256), *([NORMAL] * 7)]
    keys = {"model": "llama", "tokens": tokens, "scores": scores, "token_type": types, "add_bos_token": False}
    metadata = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    metadata |= {"tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.unknown_token_id": 0}
    assert _library(metadata).encode("abcb").tokens == ["abc", "b"]
    metadata["tokenizer.ggml.scores"][259] = -20.0  # type: ignore[index]
    assert _library(metadata).encode("cbcab").tokens == ["c", "bc", "ab"]


@pytest.mark.parametrize("where", ["behind", "in front"])
def test_added_tokens_are_found_in_the_text(where: str) -> None:
    """Special and plain ones, whose spelling may be that of other text."""
    expected = FAMILIES["qwen2"]()
    if where == "behind":
        expected.add_tokens([AddedToken("<think>", normalized=False), AddedToken("    ", normalized=False)])
        expected.add_special_tokens([AddedToken("<|call|>", special=True, normalized=False)])
    found = _library(_byte_level(expected, "qwen2"))
    texts = ["<|end|>x<|end|>", "a <think>b<|call|> c", "    x    ", "<|en d|>"]
    _assert_same_ids(found, expected, texts)


def test_the_beginning_of_sequence_is_added_where_the_file_says_so() -> None:
    expected = FAMILIES["llama2"]()
    expected.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    metadata = _characters(expected) | {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    _assert_same_ids(_library(metadata), expected, TEXTS[:5])
    del metadata["tokenizer.ggml.add_bos_token"]  # llama.cpp's default for this kind of vocabulary
    assert _library(metadata).encode("a").ids[0] == 1


def _valid() -> Metadata:
    return _byte_level(FAMILIES["qwen2"](), "qwen2")


@pytest.mark.parametrize(
    "changes, pattern",
    [
        ({"pre": "default"}, "\"tokenizer.ggml.pre\" = 'default' is not supported"),
        ({"pre": "tekken-9"}, "\"tokenizer.ggml.pre\" = 'tekken-9'"),
        ({"pre": ...}, '"tokenizer.ggml.pre" = None'),
        ({"pre": ["qwen2"]}, '"tokenizer.ggml.pre" ='),
        ({"model": "t5"}, "\"tokenizer.ggml.model\" = 't5'"),
        ({"model": ...}, "are no vocabulary"),
        ({"tokens": []}, "are no vocabulary"),
        ({"tokens": [1, 2]}, "are no vocabulary"),
        ({"token_type": [1]}, "is no list of"),
        ({"merges": ...}, '"tokenizer.ggml.merges" = None'),
        ({"merges": ["a"]}, "merge 0 is 'a', not two tokens"),
        ({"merges": ["xyz qqq"]}, "which model.vocab lacks"),
        ({"add_space_prefix": True}, '"tokenizer.ggml.add_space_prefix" = True'),
        ({"add_bos_token": True}, '"tokenizer.ggml.add_bos_token" = True'),
        ({"add_bos_token": 1}, '"tokenizer.ggml.add_bos_token" = 1'),
        ({"bos_token_id": 10**6, "add_bos_token": True}, '"tokenizer.ggml.bos_token_id" = 1000000'),
        ({"remove_extra_whitespaces": True}, 'unknown key "remove_extra_whitespaces"'),
        ({"escape_whitespaces": False}, 'unknown key "escape_whitespaces"'),
    ],
)
def test_what_would_give_other_ids_is_refused_by_its_key(changes: Metadata, pattern: str) -> None:
    changed = {**_valid(), **{f"tokenizer.ggml.{key}": value for key, value in changes.items()}}
    metadata = {key: value for key, value in changed.items() if value is not ...}
    with pytest.raises(TokenizerError, match=pattern) as caught:
        _library({"tokenizer.ggml.tokens": [], **metadata})
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "changes, pattern",
    [
        ({"scores": ...}, '"tokenizer.ggml.scores" is no list'),
        ({"scores": [1.0]}, '"tokenizer.ggml.scores" is no list'),
        ({"remove_extra_whitespaces": True}, '"tokenizer.ggml.remove_extra_whitespaces" = True'),
        ({"precompiled_charsmap": [1, 2]}, '"tokenizer.ggml.precompiled_charsmap"'),
        ({"pre": "gemma4"}, "\"tokenizer.ggml.pre\" = 'gemma4'"),
    ],
)
def test_a_sentencepiece_vocabulary_of_another_kind_is_refused(changes: Metadata, pattern: str) -> None:
    changed = _characters(FAMILIES["llama2"]()) | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    with pytest.raises(CheckpointError, match=pattern):
        _library({key: value for key, value in changed.items() if value is not ...})


def test_a_word_that_merges_do_not_make_is_refused_where_it_may_be_taken_whole() -> None:
    """The file does not say which; of llama-bpe it is known."""
    metadata = _byte_level(FAMILIES["o200k"](), "gpt-4o")
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    unused = metadata["tokenizer.ggml.token_type"].index(UNUSED)
    tokens[unused], metadata["tokenizer.ggml.token_type"][unused] = "qzxj", NORMAL
    with pytest.raises(TokenizerError, match=f"token {unused} 'qzxj' is not what its merges make"):
        _library(metadata)
    whole = _library(metadata | {"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.add_bos_token": False})
    assert whole.encode("qzxj").ids == [unused]


def test_two_tokens_of_one_text_are_refused() -> None:
    metadata = _valid()
    metadata["tokenizer.ggml.tokens"][40] = metadata["tokenizer.ggml.tokens"][41]
    with pytest.raises(TokenizerError, match="token 41 and 40 are both"):
        _library(metadata)


def test_the_chat_template_comes_with_the_texts_of_its_tokens() -> None:
    metadata = _characters(FAMILIES["llama2"]()) | {"tokenizer.chat_template": "{{ bos_token }}{{ messages }}"}
    chat = read_chat(metadata, "model.gguf")
    assert chat is not None
    assert chat.template == "{{ bos_token }}{{ messages }}"
    assert chat.tokens == {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    assert read_chat(_valid(), "model.gguf") is None


def test_a_role_whose_id_no_token_has_is_left_out_of_the_chat_template() -> None:
    """Converters write 4294967295 and the like for "no padding": the model must still build."""
    metadata = _characters(FAMILIES["llama2"]()) | {"tokenizer.chat_template": "{{ messages }}"}
    size = len(metadata["tokenizer.ggml.tokens"])
    metadata |= {"tokenizer.ggml.padding_token_id": 0xFFFFFFFF, "tokenizer.ggml.unknown_token_id": size}
    chat = read_chat(metadata, "model.gguf")
    assert chat is not None and chat.tokens == {"bos_token": "<s>", "eos_token": "</s>"}
