"""What the user may choose for a quantization, and the checks of these choices."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from colibri_build.artifacts import Format, Kind, ModelConfig
from colibri_build.errors import QuantizeError
from colibri_build.layout import GROUP_SIZES

METHODS = ("rtn", "awq")
BITS = (4, 8)


@dataclass(frozen=True)
class QuantizeOptions:
    """Choices of one quantization.

    `formats` overrides the policy by tensor kind. `calibration_ids` (AWQ only) are token-id sequences of at most
    max_context tokens each; empty ones are skipped. `min_expert_tokens`: an expert that saw fewer calibration tokens
    is rounded to nearest; None: the group size, below which a group's second moments are singular and the search
    would take some errors for free.
    """

    method: str = "awq"
    bits: int = 4
    group_size: int = 128
    formats: Mapping[Kind, Format] = field(default_factory=dict)
    calibration_ids: Sequence[Sequence[int]] = ()
    min_expert_tokens: int | None = None

    @property
    def expert_token_threshold(self) -> int:
        """Calibration tokens below which an expert falls back to round-to-nearest."""
        return self.group_size if self.min_expert_tokens is None else self.min_expert_tokens


def calibration_from_text(text: str, encode: Callable[[str], Sequence[int]], max_length: int) -> list[list[int]]:
    """One sequence for each paragraph (blank lines part them); one of more than `max_length` tokens becomes several."""
    sequences: list[list[int]] = []
    for paragraph in re.split(r"\n[ \t\r]*\n", text):
        ids = list(encode(paragraph.strip("\r\n"))) if paragraph.strip() else []
        sequences.extend(ids[start : start + max_length] for start in range(0, len(ids), max_length))
    return sequences


def calibration_digest(sequences: Sequence[Sequence[int]]) -> str:
    """SHA-256 over the lengths and ids (int32, little-endian) of the sequences."""
    digest = hashlib.sha256()
    for sequence in sequences:
        digest.update(np.asarray([len(sequence), *sequence], "<i4").tobytes())
    return digest.hexdigest()


def check_options(options: QuantizeOptions, config: ModelConfig) -> None:
    """Raise QuantizeError, naming the option, for a choice that cannot be carried out."""
    _check_choice("method", options.method, METHODS)
    _check_choice("bits", options.bits, BITS)
    _check_choice("group size", options.group_size, GROUP_SIZES)
    if options.expert_token_threshold < 1:
        raise QuantizeError(f"min_expert_tokens {options.min_expert_tokens} is below 1", hint="give at least 1")
    if options.method == "awq":
        check_calibration(options.calibration_ids, config)


def _check_choice(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        raise QuantizeError(f"{name} {value!r} is unknown", hint=f"choose one of {', '.join(map(str, allowed))}")


def check_calibration(sequences: Sequence[Sequence[int]], config: ModelConfig) -> None:
    """Raise QuantizeError unless there is at least one token, each in the vocabulary, each sequence in context."""
    if not any(len(sequence) for sequence in sequences):
        raise QuantizeError(
            "method awq needs calibration text, and there is none",
            hint="--calibration FILE with text like the model's prompts and answers, or --method rtn",
        )
    for number, sequence in enumerate(sequences):
        if len(sequence) > config.max_context:
            raise QuantizeError(
                f"calibration sequence {number} has {len(sequence)} tokens, above the model's context of "
                f"{config.max_context}",
                hint="split it",
            )
        for position, token in enumerate(sequence):
            if not 0 <= token < config.vocab_size:
                raise QuantizeError(
                    f"calibration sequence {number} has token {token} at position {position}, outside the vocabulary "
                    f"of {config.vocab_size}",
                    hint="encode the text with this model's own tokenizer",
                )
