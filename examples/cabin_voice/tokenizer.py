"""The tokenizer of the example: byte-level BPE trained on generated text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from .commands import END, training_samples

PAD = "<|pad|>"
VOCAB = 768
SEED = 11


def _texts(count: int) -> Iterator[str]:
    """Yield training text without its digits, so that every digit stays a token of its own."""
    for sample in islice(training_samples(SEED), count):
        yield re.sub(r"\d", "", f"{sample.prompt}\n{sample.expected}")


def train_tokenizer(count: int = 40_000) -> Tokenizer:
    """Train on samples of the training distribution; the result depends on nothing else."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=[END, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(count), trainer)
    return tokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer of a saved model."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))
