"""A tokenizer.json that we would get wrong is refused in one clear line; every spelling that means the same is taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizer_corpus import KINDS, plain, with_template
from tokenizers import Tokenizer, models, pre_tokenizers

from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes, read_tokenizer_file
from colibri_build.checkpoint.tokenizer_encode import encode_text
from colibri_build.errors import TokenizerError

Json = dict[str, Any]
Edit = Callable[[Json], object]
VOCAB = 1600
BYTE_A = plain().token_to_id("a")


def edited(edit: Edit, tokenizer: Tokenizer | None = None) -> bytes:
    root = json.loads((tokenizer or plain()).to_str())
    edit(root)
    return json.dumps(root).encode()


def refusal(data: bytes, vocab_size: int = VOCAB) -> str:
    with pytest.raises(TokenizerError) as caught:
        read_tokenizer_bytes(data, vocab_size)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value.what.removeprefix("tokenizer.json: ")


def put(path: str, value: object) -> Edit:
    """Set root[a][b].. = value; numbers index lists."""

    def edit(root: Json) -> None:
        *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        holder: Any = root
        for key in parents:
            holder = holder[key]
        holder[last] = value

    return edit


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
TEMPLATE: Json = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
}
SEQUENCE_A = {"Sequence": {"id": "A", "type_id": 0}}

UNSUPPORTED: list[tuple[Edit, str]] = [
    (put("version", "2.0"), "version '2.0'"),
    (put("normalizer", {"type": "NFKC"}), "normalizer 'NFKC'"),
    (put("normalizer", {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}), "normalizer 'Lowercase'"),
    (put("pre_tokenizer", None), "pre_tokenizer 'null'"),
    (put("pre_tokenizer", {"type": "Metaspace"}), "pre_tokenizer 'Metaspace'"),
    (
        put("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, BYTE_LEVEL]}),
        "pre_tokenizer 'Whitespace + ByteLevel'",
    ),
    (
        put(
            "pre_tokenizer",
            {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, BYTE_LEVEL | {"add_prefix_space": True}]},
        ),
        "pre_tokenizer 'Digits + ByteLevel' with add_prefix_space true",
    ),
    (put("decoder", None), "decoder 'null'"),
    (put("decoder", {"type": "Metaspace"}), "decoder 'Metaspace'"),
    (put("model/type", "Unigram"), "model type 'Unigram'"),
    (put("model/dropout", 0.1), "model.dropout 0.1 (encoding by chance)"),
    (put("model/continuing_subword_prefix", "##"), "model.continuing_subword_prefix '##'"),
    (put("model/end_of_word_suffix", "</w>"), "model.end_of_word_suffix '</w>'"),
    (put("added_tokens/1/single_word", True), "single_word of added token '<|pad|>'"),
    (put("post_processor", {"type": "BertProcessing"}), "post_processor 'BertProcessing'"),
    (
        put("post_processor", {"type": "Sequence", "processors": [TEMPLATE, TEMPLATE]}),
        "post_processor with more than one TemplateProcessing",
    ),
    (
        put("post_processor", TEMPLATE | {"single": [{"Sequence": {"id": "B", "type_id": 0}}]}),
        "post_processor.single with a sequence other than A",
    ),
]


@pytest.mark.parametrize("edit,message", UNSUPPORTED, ids=[message for _, message in UNSUPPORTED])
def test_a_feature_that_would_change_ids_is_refused_by_its_name(edit: Edit, message: str) -> None:
    assert refusal(edited(edit)) == f"{message} is not supported"


@pytest.mark.parametrize("key,value", [("unk_token", "a"), ("byte_fallback", True)])
def test_tokens_for_unknown_bytes_are_refused_only_where_a_byte_lacks_a_token(key: str, value: object) -> None:
    shown = f"model.{key} 'a'" if key == "unk_token" else f"model.{key}"
    sparse = KINDS["missing_bytes"]()
    message = f"{shown} with no token for byte 0x00 is not supported"
    assert refusal(edited(put(f"model/{key}", value), sparse)) == message
    assert read_tokenizer_bytes(edited(put(f"model/{key}", value)), VOCAB).tokens


MALFORMED: list[tuple[Edit, str]] = [
    (put("model", []), "model must be an object, found an array"),
    (put("model/vocab", None), "model.vocab must be an object, found null"),
    (put("model/vocab", {}), "model.vocab is empty"),
    (put("model/vocab/a", "7"), "the id of token 'a' must be an integer, found a string"),
    (put("model/vocab/a", True), "the id of token 'a' must be an integer, found a boolean"),
    (put("model/vocab/a", 7.5), "the id of token 'a' must be an integer, found the number 7.5"),
    (put("model/vocab/a", 0), "id 0 belongs to both '<|end|>' and 'a'"),
    (put("model/vocab/a", 1600), "the id of token 'a' is 1600, the model has ids 0 to 1599"),
    (put("model/vocab/a", -1), "the id of token 'a' is -1, the model has ids 0 to 1599"),
    (put("model/vocab/ ", 1500), f"ids {plain().token_to_id('Ġ')} and 1500 both stand for the bytes b' '"),
    (put("model/vocab/\ud800", 1500), r"a key of model.vocab holds a lone surrogate: '\ud800'"),
    (put("model/merges", {}), "model.merges must be an array, found an object"),
    (put("model/merges/3", "a"), "merge 3 is 'a', not two tokens"),
    (put("model/merges/3", "a b c"), "merge 3 is 'a b c', not two tokens"),
    (put("model/merges/3", ["a", 1]), "merge 3 is ['a', 1], not two tokens"),
    (put("model/merges/3", 9), "merge 3 must be an array, found the number 9"),
    (put("model/merges/3", ["a", "!?"]), "merge 3 ('a', '!?') needs token '!?', which model.vocab lacks"),
    (put("model/merges/3", "a \u0120"), r"merge 3 ('a', '\u0120') needs token 'a\u0120', which model.vocab lacks"),
    (put("model/ignore_merges", 1), "model.ignore_merges must be true or false, found the number 1"),
    (put("added_tokens", {}), "added_tokens must be an array, found an object"),
    (put("added_tokens/0", 3), "added_tokens[0] must be an object, found the number 3"),
    (put("added_tokens/0/content", ""), "added_tokens[0].content is empty"),
    (put("added_tokens/0/content", None), "added_tokens[0].content must be a string, found null"),
    (put("added_tokens/1/content", "<|end|>"), "added token '<|end|>' appears twice"),
    (put("added_tokens/1/id", 9000), "the id of added token '<|pad|>' is 9000, the model has ids 0 to 1599"),
    (
        put("added_tokens/1/id", 7),
        "added token '<|pad|>' has id 7, but the tokenizers library gives it 1",
    ),
    (
        put("added_tokens/1", {"id": 1550, "content": "<new>"}),
        "added token '<new>' has id 1550, but the tokenizers library gives it 1500",
    ),
    (put("pre_tokenizer", 1), "pre_tokenizer must be an object, found the number 1"),
    (put("pre_tokenizer", {}), "pre_tokenizer.type must be a string, found null"),
    (
        put("post_processor", TEMPLATE | {"single": []}),
        "post_processor.single names the prompt 0 times, not once",
    ),
    (
        put("post_processor", TEMPLATE | {"single": [SEQUENCE_A, SEQUENCE_A]}),
        "post_processor.single names the prompt 2 times, not once",
    ),
    (
        put("post_processor", TEMPLATE | {"special_tokens": {}}),
        "post_processor.special_tokens['<s>'] must be an object, found null",
    ),
    (
        put("post_processor", TEMPLATE | {"special_tokens": {"<s>": {"ids": [1590]}}}),
        "post_processor.special_tokens['<s>'] names id 1590, which no token has",
    ),
]


@pytest.mark.parametrize("edit,message", MALFORMED, ids=[ascii(message) for _, message in MALFORMED])
def test_a_damaged_file_is_refused_in_one_line_that_says_where(edit: Edit, message: str) -> None:
    assert plain().get_vocab_size() == 1500
    assert refusal(edited(edit)) == message


def test_bytes_that_are_no_json_are_refused_at_every_truncation() -> None:
    data = plain().to_str().encode()
    assert refusal(b"") == "not JSON at line 1, column 1 (0 bytes): Expecting value"
    assert refusal(b"[1]") == "the file must be an object, found an array"
    assert refusal(b"\xff{}") == "not UTF-8 at byte 0 of 3"
    assert refusal(b"[" * 100_000) == "not JSON (100000 bytes): RecursionError"
    assert refusal(b'{"a": 1' + b"0" * 5000 + b"}") == "not JSON (5008 bytes): ValueError"
    assert refusal(b'{"model": 1, "model": 2}') == "key 'model' appears twice in one object"
    for cut in range(0, len(data) - 3, len(data) // 50):
        assert refusal(data[:cut]).startswith("not ")


def test_a_vocabulary_larger_than_the_model_is_refused_and_holes_are_empty() -> None:
    data = plain().to_str().encode()
    assert refusal(data, 1400).endswith("the model has ids 0 to 1399")
    assert read_tokenizer_bytes(data, 1600).tokens[1500:] == (b"",) * 100


def test_a_folder_without_tokenizer_json_says_what_it_has_instead(tmp_path: Path) -> None:
    folder = tmp_path / "my model é"
    folder.mkdir()
    with pytest.raises(TokenizerError, match=r"^my model é: no tokenizer\.json; try: load it with transformers"):
        read_tokenizer_file(folder)
    (folder / "tokenizer.model").write_bytes(b"\x0a")
    with pytest.raises(TokenizerError, match=r"^my model é: no tokenizer\.json, only tokenizer\.model; try: "):
        read_tokenizer_file(folder)
    (folder / "tokenizer.json").mkdir()
    with pytest.raises(TokenizerError, match=r"^my model é/tokenizer\.json: Is a directory; try: "):
        read_tokenizer_file(folder)


def test_both_spellings_of_merges_and_old_files_without_a_model_type_mean_the_same() -> None:
    def old(root: Json) -> None:
        root["model"]["merges"] = ["#version: 0.2", *(" ".join(merge) for merge in root["model"]["merges"])]
        del root["model"]["type"]
        root["pre_tokenizer"] = {
            "type": "Sequence",
            "pretokenizers": [{"type": "Sequence", "pretokenizers": [BYTE_LEVEL]}],
        }
        root["normalizer"] = {"type": "Sequence", "normalizers": []}

    new = read_tokenizer_bytes(plain().to_str().encode(), VOCAB)
    assert new.merges == read_tokenizer_bytes(edited(old), VOCAB).merges


def test_of_a_merge_listed_twice_the_later_rank_counts_as_in_the_library() -> None:
    names = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "bc"]
    vocab = {name: i for i, name in enumerate(names)}
    tokenizer = plain()
    tokenizer.model = models.BPE(vocab=vocab, merges=[("a", "b"), ("b", "c"), ("a", "b")])
    a, b, c, ab, bc = (vocab[name] for name in ("a", "b", "c", "ab", "bc"))
    data = json.loads(tokenizer.to_str())
    data["model"]["merges"] = [["a", "b"], ["b", "c"], ["a", "b"]]
    data["added_tokens"] = []
    text = json.dumps(data)
    assert Tokenizer.from_str(text).encode("abc").ids == [a, bc]
    assert read_tokenizer_bytes(text.encode(), VOCAB).merges == ((b, c, bc), (a, b, ab))


def test_the_artifact_holds_what_the_library_says() -> None:
    library = with_template()
    ours = read_tokenizer_bytes(library.to_str().encode(), VOCAB)
    ids = library.get_vocab()
    assert ours.prefix_ids == (ids["<s>"], ids["<s>"])
    assert ours.suffix_ids == (ids["</s>"],)
    assert ours.add_prefix_space
    assert not ours.ignore_merges
    assert {token.id: token.content.decode() for token in ours.added} == {
        i: token.content for i, token in library.get_added_tokens_decoder().items()
    }
    assert ours.json_bytes == library.to_str().encode()


def test_truncation_and_padding_in_the_file_do_not_shorten_the_expected_ids() -> None:
    library = plain()
    library.enable_truncation(3)
    library.enable_padding(length=50)
    tokenizer = read_tokenizer_bytes(library.to_str().encode(), VOCAB)
    text = "a text of more than three tokens"
    assert encode_text(tokenizer, text) == plain().encode(text).ids
