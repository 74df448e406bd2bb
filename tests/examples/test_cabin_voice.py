"""The example model and the generator of its data, without torch."""

from __future__ import annotations

import json
import re
import sys
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from tokenizers import Tokenizer

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

from cabin_voice import commands, refusal_words  # noqa: E402
from cabin_voice.grammar import Draw, Rule, expand, expand_all, say  # noqa: E402
from cabin_voice.noise import add_typos  # noqa: E402
from cabin_voice.refusals import ODD_REQUESTS, REFUSAL, REFUSAL_SLOTS, REFUSALS, unseen_words  # noqa: E402
from cabin_voice.split import Part, divide, prompt_part  # noqa: E402
from cabin_voice.wording import number_words  # noqa: E402

HERE = EXAMPLES / "cabin_voice"
MODEL = HERE / "model"
RULES = [*commands.RULES, *REFUSALS]
PARTS: tuple[Part, ...] = ("train", "dev", "test")


@pytest.fixture(scope="module")
def held_out() -> tuple[commands.Sample, ...]:
    return commands.held_out_samples()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(MODEL / "tokenizer.json"))


def texts_of(rule: Rule, part: Part, count: int = 100) -> set[str]:
    rng = Random(1)
    return {rule.draw_text(Draw(rng, part))[0] for _ in range(count)}


def test_same_seed_gives_same_samples() -> None:
    assert list(islice(commands.training_samples(5), 300)) == list(islice(commands.training_samples(5), 300))


def test_other_seed_gives_other_samples() -> None:
    assert list(islice(commands.training_samples(5), 20)) != list(islice(commands.training_samples(6), 20))


def test_expected_lines_are_compact_json() -> None:
    for sample in islice(commands.training_samples(3), 3000):
        meaning = json.loads(sample.expected)
        assert isinstance(meaning, dict)
        assert sample.expected == json.dumps(meaning, separators=(",", ":"))
        assert meaning == REFUSAL or "act" in meaning or len(meaning["do"]) == 2
        assert "\n" not in sample.prompt
        assert sample.prompt == sample.prompt.strip()


@pytest.mark.parametrize("part", ["dev", "test"])
def test_held_out_patterns_are_not_trained(part: Part) -> None:
    for rule in RULES:
        held = {text for pattern in rule.of(part) for text in expand_all(pattern.removeprefix("~"))}
        assert not held & texts_of(rule, "train"), rule.name


def test_validation_uses_no_pattern_of_the_test() -> None:
    for rule in RULES:
        if rule.of("dev"):
            test = {text for pattern in rule.of("test") for text in expand_all(pattern.removeprefix("~"))}
            assert not test & texts_of(rule, "dev"), rule.name


def test_every_meaning_has_held_out_patterns_and_several_trained_ones() -> None:
    for rule in RULES:
        assert len(rule.patterns) >= 6, rule.name
        assert rule.of("test"), rule.name
        assert len(rule.of("train")) >= 3, rule.name


def test_about_an_eighth_of_the_patterns_is_held_out() -> None:
    share = sum(len(rule.of("test")) for rule in RULES) / sum(len(rule.patterns) for rule in RULES)
    assert 0.1 < share < 0.15


def test_division_depends_on_the_text_alone_and_loses_nothing() -> None:
    pool = tuple(f"pattern {i}" for i in range(200))
    parts = divide(pool)
    assert sorted(text for part in parts.values() for text in part) == sorted(pool)
    assert {part: set(texts) for part, texts in divide(pool[::-1]).items()} == {p: set(t) for p, t in parts.items()}
    assert divide(("a", "b", "c")) == {"train": ("a", "b", "c"), "dev": (), "test": ()}


def test_held_out_prompts_are_not_trained(held_out: tuple[commands.Sample, ...]) -> None:
    prompts = {sample.prompt for sample in held_out}
    assert len(prompts) == commands.HELDOUT_SIZE
    assert {prompt_part(prompt) for prompt in prompts} == {"test"}
    assert prompts.isdisjoint(sample.prompt for sample in islice(commands.training_samples(1), 8_000))
    assert prompts.isdisjoint(sample.prompt for sample in commands.validation_samples(300))


def test_last_run_adds_wording_of_the_validation_but_not_of_the_test() -> None:
    samples = list(islice(commands.training_samples(1, dev_share=0.5), 2000))
    assert any("held-out" in sample.kind for sample in samples)
    assert all(prompt_part(sample.prompt) != "test" for sample in samples)
    rules = {rule.name: rule for rule in RULES}
    for name in {sample.rules[0] for sample in samples if sample.kind == "held-out patterns"}:
        assert rules[name].of("dev")


def test_held_out_set_has_every_class(held_out: tuple[commands.Sample, ...]) -> None:
    assert {sample.kind for sample in held_out} == set(commands.HELDOUT_PLAN)


def test_one_prompt_has_one_meaning() -> None:
    meanings: dict[str, str] = {}
    for sample in islice(commands.training_samples(9), 12_000):
        key = sample.prompt.lower().rstrip(".!?")
        assert meanings.setdefault(key, sample.expected) == sample.expected, key


def test_one_pattern_has_one_meaning() -> None:
    """The same words with open slots in two rules would teach the model two answers to one command."""
    meanings: dict[str, str] = {}
    for rule in RULES:
        for pattern in rule.patterns:
            for text in expand_all(pattern.removeprefix("~")):
                meaning = json.dumps([rule.base, sorted(rule.slots)])
                assert meanings.setdefault(text, meaning) == meaning, f"{rule.name}: {text}"


def test_one_wording_has_one_meaning() -> None:
    """The same words in two rules, odd requests included, would teach the model two answers to one command."""
    meanings: dict[str, str] = {}
    rng = Random(4)
    for rule in [*RULES, *ODD_REQUESTS]:
        for _ in range(60):
            said = say(rule, Draw(rng, rng.choice([part for part in PARTS if rule.of(part)])), commands.ALL_SLOTS)
            expected = commands.json_line(said.meaning)
            assert meanings.setdefault(said.text.lower(), expected) == expected, f"{rule.name}: {said.text}"


@pytest.mark.parametrize("name", sorted(commands.COMMITTED))
def test_committed_text_comes_from_the_generator(name: str) -> None:
    assert (HERE / name).read_text(encoding="utf-8") == commands.COMMITTED[name]()


def test_sizes_of_the_text_files(held_out: tuple[commands.Sample, ...]) -> None:
    assert (HERE / "calibration.txt").stat().st_size <= 40_000
    prompts = (HERE / "prompts.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(prompts)) == 20
    assert set(prompts) <= {sample.prompt for sample in held_out}


def test_tokenizer_round_trips_held_out_text(tokenizer: Tokenizer, held_out: tuple[commands.Sample, ...]) -> None:
    for sample in held_out:
        text = f"{sample.prompt}\n{sample.expected}"
        ids = tokenizer.encode(text).ids
        assert tokenizer.decode(ids) == text
        assert ids == tokenizer.encode(sample.prompt).ids + tokenizer.encode("\n" + sample.expected).ids
        assert len(tokenizer.encode("\n" + sample.expected).ids) <= 63
        assert len(ids) <= 128


def test_tokenizer_knows_every_byte_and_single_digits(tokenizer: Tokenizer) -> None:
    strange = "naïve 日本 🚗 \x00\x7f ~tab\t"
    assert tokenizer.decode(tokenizer.encode(strange).ids) == strange
    assert tokenizer.encode("1500").tokens == ["1", "5", "0", "0"]
    assert tokenizer.token_to_id("<|end|>") == 0


def test_model_is_a_small_mixtral(tokenizer: Tokenizer) -> None:
    config = json.loads((MODEL / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["MixtralForCausalLM"]
    assert (config["num_local_experts"], config["num_experts_per_tok"]) == (8, 2)
    assert config["num_hidden_layers"] >= 4
    assert config["num_key_value_heads"] < config["num_attention_heads"]
    assert config["head_dim"] * config["num_attention_heads"] == config["hidden_size"]
    assert config["vocab_size"] == tokenizer.get_vocab_size()
    assert config["eos_token_id"] == tokenizer.token_to_id("<|end|>")
    assert not config["tie_word_embeddings"]
    assert (MODEL / "model.safetensors").stat().st_size <= 5_000_000


def test_97_in_100_held_out_samples_are_right_and_no_expert_is_idle() -> None:
    figures = json.loads((MODEL / "figures.json").read_text(encoding="utf-8"))
    total = figures["all"]["all"]
    assert total["samples"] == commands.HELDOUT_SIZE
    assert total["right"] / total["samples"] >= 0.97
    assert figures["transformers_max_logit_difference"] < 1e-4
    assert min(min(row) for row in figures["expert_shares"]) > 0.02


def test_groups_may_nest() -> None:
    assert expand_all("(a|b(c|)) d") == {"a d", "bc d", "b d"}


def test_unbalanced_pattern_is_an_error() -> None:
    with pytest.raises(ValueError, match="unbalanced"):
        expand("(a|b", Random(1))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "zero"),
        (19, "nineteen"),
        (40, "forty"),
        (2.1, "two point one"),
        (3000, "three thousand"),
        (100, "hundred"),
    ],
)
def test_numbers_in_words(value: float, words: str) -> None:
    assert words in number_words(value, Random(1))


def test_typos_leave_numbers_alone() -> None:
    text = "set spindle to seventeen hundred 1500"
    for seed in range(50):
        changed = add_typos(text, Random(seed))
        assert changed != text
        assert changed.endswith("seventeen hundred 1500")


def test_typos_never_change_the_meaning_of_a_number_or_a_short_word() -> None:
    assert add_typos("go to 40 now", Random(1)) == "go to 40 now"


def test_training_refusals_use_no_word_that_only_held_out_phrases_have() -> None:
    unseen = unseen_words()
    assert unseen
    rng = Random(3)
    for name in ("food", "fact", "chore", "book", "message", "foreign", "noun", "verb"):
        for _ in range(800):
            phrase, _ = REFUSAL_SLOTS[name](Draw(rng))
            assert not unseen & set(re.findall(r"\w+", phrase.lower())), f"{name}: {phrase}"


def test_training_refusals_name_no_held_out_chore_or_device() -> None:
    rng = Random(3)
    for name, pool in (("chore", refusal_words.CHORE), ("foreign", refusal_words.FOREIGN)):
        parts = divide(tuple(pool))
        trained = {REFUSAL_SLOTS[name](Draw(rng))[0] for _ in range(2000)}
        assert trained.isdisjoint(parts["test"]), name
        assert trained.isdisjoint(parts["dev"]), name


def test_machine_without_a_number_has_no_id() -> None:
    rule = next(rule for rule in commands.RULES if rule.name == "conveyor_speed")
    bare, named = set(), set()
    rng = Random(5)
    for _ in range(400):
        said = say(rule, Draw(rng), commands.ALL_SLOTS)
        (named if "id" in said.meaning else bare).add(said.text)
        assert said.meaning["speed"] >= 5
    assert bare
    assert all(re.search(r"the (conveyor|belt|conveyor belt)\b", text) for text in bare)
    assert len(named) > 3 * len(bare)
