"""Seeded text of many kinds, and library tokenizers of every shape that the reader accepts."""

from __future__ import annotations

import random
from functools import cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

SENTENCES = (
    "The quick brown fox can't jump; they've said it'll rain, and she'd go where I'm not: it's John's. DON'T 'Tis",
    "def main(argv: list[str]) -> int:\n    return sum(x ** 2 for x in range(0x1F))  # 3.14e-10\n\n\n\tif (a != b) {\r\n",
    "Größe, Übermut, naïve façade, cœur, señor ¿qué?, Łódź, Đà Nẵng, İstanbul, ﬁn de siècle",
    "Быстрая лиса 1234 прыгнула — через ленивую собаку… Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία",
    "快速的棕色狐狸跳过懒狗。いろはにほへと ちりぬるを カタカナ ﾊﾝｶｸ 敏捷的棕毛狐狸，第１２３号",
    "다람쥐 헌 쳇바퀴에 타고파 אבגדה עִבְרִית العربية ٠١٢٣٤ پارسی हिन्दी में १२३ বাংলা ไทย๑๒๓ မြန်မာ",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇨🇴 ❤️ 🤷🏿‍♀️ ☃ ① Ⅷ ½ ² ₃ 𝟘 𝔘𝔫𝔦 𓀀 𐍈 🀄",
    "tabs\tand   runs    of  spaces \u00a0nbsp\u2003em\u3000ideographic\u200bzero\ufeffbom\u0085nel\u2028line \u180e \x1c\x1f",
    "nul\x00 bell\x07 esc\x1b[0m del\x7f e\u0301 o\u0308\u0323 \u202ertl\u202c \U000e0041 \ue000 \U0010ffff \ufffe",
    "'s't're've'm'll'd 'S ''s x's1's 's's  's\n's ' 'r 'l 'v're' '\u017f don’t",
)


def _random_char(rng: random.Random) -> str:
    """One code point from a random plane-0 or plane-1 block, ASCII favoured."""
    while True:
        point = rng.choice(
            (rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000), rng.randrange(0x1F000, 0x20000))
        )
        if not 0xD800 <= point < 0xE000:
            return chr(point)


@cache
def corpus() -> str:
    """About 300 KB: sentences cut, joined and disturbed."""
    rng = random.Random(20)
    parts: list[str] = []
    for _ in range(3000):
        sentence = rng.choice(SENTENCES)
        start = rng.randrange(len(sentence))
        parts.append(sentence[start : start + rng.randrange(1, 80)])
        parts.append(rng.choice((" ", "\n", "", "  ", "\t", "0", "'", " " * rng.randrange(1, 40))))
        parts.append("".join(_random_char(rng) for _ in range(rng.randrange(6))))
    return "".join(parts)


def _byte_level(model: models.BPE, add_prefix_space: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@cache
def _trained() -> Tokenizer:
    tokenizer = _byte_level(models.BPE())
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<|end|>", "<|pad|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*SENTENCES * 3, corpus()], trainer)
    return tokenizer


def plain() -> Tokenizer:
    """Trained, as the example model's: two special tokens, nothing else."""
    return Tokenizer.from_str(_trained().to_str())


def with_template() -> Tokenizer:
    """add_prefix_space, ids around the prompt, and added tokens of both kinds that overlap in nasty ways."""
    tokenizer = plain()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.add_special_tokens(["<s>", "</s>", "<|", "<|en", "|>", "ñandú", "👍"])
    tokenizer.add_tokens(
        [
            AddedToken("<|end|>x", normalized=True),
            AddedToken("nd", normalized=True),
            AddedToken("  ", normalized=True),
            AddedToken(" quick ", normalized=False),
            AddedToken("\n\n", normalized=False),
            AddedToken("ckbr", normalized=True),
        ]
    )
    ids = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<s> <s> $A </s>", special_tokens=ids),
        ]
    )
    return tokenizer


def with_whole_words() -> Tokenizer:
    """ignore_merges, several merges for one token, ranks that do not follow the ids; pre-tokenizer Split + ByteLevel."""
    rng = random.Random(4)
    names = sorted(pre_tokenizers.ByteLevel.alphabet())
    rng.shuffle(names)
    letters = [*"abcdefĠ", "Ã", "©"]
    pool = list(letters)
    for _ in range(600):
        name = rng.choice(pool) + rng.choice(pool if rng.random() < 0.4 else letters)
        if name not in names and len(name) < 9:
            names.append(name)
            pool.append(name)
    known = set(names)
    pairs = [(n[:k], n[k:]) for n in names for k in range(1, len(n)) if n[:k] in known and n[k:] in known]
    rng.shuffle(pairs)
    kept = pairs[: len(pairs) * 3 // 4]
    tokenizer = _byte_level(models.BPE(vocab={n: i for i, n in enumerate(names)}, merges=kept, ignore_merges=True))
    expression = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(expression), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def with_prefixed_words() -> Tokenizer:
    """ignore_merges and add_prefix_space together; an added token that spells what the prefix space makes."""
    tokenizer = with_whole_words()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.add_tokens([AddedToken(" bb", normalized=False), AddedToken(" ", normalized=True)])
    return tokenizer


def with_missing_bytes() -> Tokenizer:
    """A vocabulary without most bytes: the library leaves them out of the text."""
    names = [*"abcde", "Ġ", "ab", "abc", "Ġa", "cab"]
    merges = [("a", "b"), ("ab", "c"), ("Ġ", "a"), ("c", "ab")]
    return _byte_level(models.BPE(vocab={n: i for i, n in enumerate(names)}, merges=merges), add_prefix_space=True)


KINDS = {
    "plain": plain,
    "template": with_template,
    "whole_words": with_whole_words,
    "prefixed_words": with_prefixed_words,
    "missing_bytes": with_missing_bytes,
}
