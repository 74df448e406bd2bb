"""Seeded generator of spoken commands and the JSON lines that they mean.

    python -m cabin_voice.commands --seed 1 --count 20            # look at training samples
    python -m cabin_voice.commands --write                        # write the committed text files

A training record is the command, a newline, the JSON line and the token `<|end|>`. The user types the
command alone: the model writes the newline, the JSON line and the end. Which patterns and words belong to
training, to validation and to the test is decided by split.py.
"""

from __future__ import annotations

import argparse
import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from .cabin_rules import CABIN
from .drive_rules import DRIVING
from .grammar import Draw, Rule, Said, say
from .machine_rules import MACHINES
from .machine_wording import MORE as MACHINE_WORDING
from .media_rules import MEDIA
from .media_wording import MORE as MEDIA_WORDING
from .noise import add_fillers, add_typos, drop_articles, finish, join
from .opening_rules import OPENINGS_AND_LIGHTS
from .refusals import ODD_REQUESTS, REFUSAL, REFUSAL_SLOTS, REFUSALS
from .slots import SLOTS
from .split import Part, prompt_part
from .travel_rules import TRAVEL
from .travel_wording import MORE as TRAVEL_WORDING

HERE = Path(__file__).resolve().parent
_MORE = {**MEDIA_WORDING, **TRAVEL_WORDING, **MACHINE_WORDING}
RULES: list[Rule] = [
    replace(rule, text=f"{rule.text}\n{_MORE.get(rule.name, '')}")
    for rule in [*CABIN, *OPENINGS_AND_LIGHTS, *MEDIA, *TRAVEL, *DRIVING, *MACHINES]
]
ALL_SLOTS = {**SLOTS, **REFUSAL_SLOTS}
END = "<|end|>"
HELDOUT_SEED = 73_303
DEV_SEED = 9_091
HELDOUT_SIZE = 3000
# The share of each class in the held-out set.
HELDOUT_PLAN = {
    "seen patterns": 0.2,
    "held-out patterns": 0.3,
    "typos": 0.1,
    "two commands": 0.15,
    "two commands, held-out patterns": 0.1,
    "refusals": 0.05,
    "refusals, held-out": 0.1,
}
# The share of each class in training; odd requests are refusals for training alone.
TRAINING_PLAN = {"seen patterns": 0.33, "typos": 0.15, "two commands": 0.27, "refusals": 0.11, "odd requests": 0.14}


@dataclass(frozen=True)
class Sample:
    """One prompt, the JSON line expected for it, its class and the rules it came from."""

    prompt: str
    expected: str
    kind: str
    rules: tuple[str, ...]


def json_line(meaning: Any) -> str:
    """Write JSON in the compact form that the model learns."""
    return json.dumps(meaning, separators=(",", ":"), ensure_ascii=False)


class Chooser:
    """Picks rules by weight, of those that have patterns in a part."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules

    @cache  # noqa: B019 - the choosers live as long as the module
    def _of(self, part: Part) -> tuple[list[Rule], list[float]]:
        rules = [rule for rule in self.rules if rule.of(part)]
        return rules, list(accumulate(rule.weight for rule in rules))

    def pick(self, draw: Draw) -> Rule:
        """Pick a rule."""
        rules, weights = self._of(draw.part)
        return rules[bisect(weights, draw.rng.random() * weights[-1])]


_SUPPORTED, _REFUSED, _ODD = Chooser(RULES), Chooser(REFUSALS), Chooser(ODD_REQUESTS)


def _say_one(draw: Draw, chooser: Chooser = _SUPPORTED) -> tuple[str, Said]:
    said = say(chooser.pick(draw), draw, ALL_SLOTS)
    return add_fillers(said.text, said.imperative, draw), said


def _single(draw: Draw, kind: str) -> Sample:
    text, said = _say_one(draw)
    return Sample(text, json_line(said.meaning), kind, (said.rule,))


def _pair(draw: Draw, kind: str) -> Sample:
    first_text, first = _say_one(draw)
    second_text, second = _say_one(draw)
    while second.meaning["act"] == first.meaning["act"]:
        second_text, second = _say_one(draw)
    expected = json_line({"do": [first.meaning, second.meaning]})
    return Sample(join(first_text, second_text, draw), expected, kind, (first.rule, second.rule))


def _refusal(draw: Draw, kind: str) -> Sample:
    text, said = _say_one(draw, _ODD if kind == "odd requests" else _REFUSED)
    return Sample(text, json_line(REFUSAL), kind, (said.rule,))


def make_sample(kind: str, rng: Random, part: Part = "train") -> Sample:
    """Draw one sample of a class; only those named held-out use the wording of another part than training."""
    draw = Draw(rng, part if "held-out" in kind else "train")
    make = _pair if kind.startswith("two") else _refusal if kind.startswith(("refusals", "odd")) else _single
    sample = make(draw, kind)
    prompt = sample.prompt
    if kind == "typos":
        prompt = add_typos(prompt, rng)
        if prompt == sample.prompt:
            return make_sample(kind, rng, part)
    return Sample(finish(prompt, rng), sample.expected, kind, sample.rules)


def training_samples(seed: int, dev_share: float = 0.0) -> Iterator[Sample]:
    """Yield training samples without end; none of them is in the held-out set.

    None is in the validation set either, unless a share of its wording is asked for: for a last run, when all
    decisions have been made.
    """
    rng = Random(seed)
    kinds, shares = list(TRAINING_PLAN), list(TRAINING_PLAN.values())
    dev_kinds = [kind for kind in HELDOUT_PLAN if "held-out" in kind]
    while True:
        from_dev = dev_share > 0 and rng.random() < dev_share
        sample = make_sample(rng.choice(dev_kinds) if from_dev else rng.choices(kinds, shares)[0], rng, "dev")
        prompt = sample.prompt
        if sample.kind in ("two commands", "refusals") and rng.random() < 0.12:
            prompt = add_typos(prompt, rng)
        if rng.random() < 0.04:
            prompt = drop_articles(prompt)
        if prompt_part(prompt) == "train" or (from_dev and prompt_part(prompt) == "dev"):
            yield Sample(prompt, sample.expected, sample.kind, sample.rules)


@cache
def held_out_samples(seed: int = HELDOUT_SEED, size: int = HELDOUT_SIZE) -> tuple[Sample, ...]:
    """Draw the held-out set: distinct prompts, all of them kept out of training."""
    return _kept_samples("test", seed, size)


def validation_samples(size: int = 1000) -> tuple[Sample, ...]:
    """Draw the set for decisions during development; its wording is in neither training nor test."""
    return _kept_samples("dev", DEV_SEED, size)


def _kept_samples(part: Part, seed: int, size: int) -> tuple[Sample, ...]:
    rng = Random(seed)
    kinds, shares = list(HELDOUT_PLAN), list(HELDOUT_PLAN.values())
    samples: dict[str, Sample] = {}
    while len(samples) < size:
        sample = make_sample(rng.choices(kinds, shares)[0], rng, part)
        if prompt_part(sample.prompt) == part:
            samples.setdefault(sample.prompt, sample)
    return tuple(samples.values())


def calibration_text(count: int = 256, seed: int = 7) -> str:
    """Join records of the training distribution with blank lines between them."""
    stream = training_samples(seed)
    records = (next(stream) for _ in range(count))
    return "\n\n".join(f"{sample.prompt}\n{sample.expected}" for sample in records) + "\n"


def golden_prompts(count: int = 20) -> str:
    """Choose held-out prompts of every class and of different rules, without stammering, one a line."""
    chosen: list[str] = []
    used: set[str] = set()
    per_kind: Counter[str] = Counter()
    for sample in held_out_samples():
        most = 2 if sample.kind.startswith("refusals") else 4
        fluent = not re.search(r"\b(um|uh|er|hmm)\b", sample.prompt, re.IGNORECASE)
        if fluent and not used.intersection(sample.rules) and per_kind[sample.kind] < most and len(chosen) < count:
            chosen.append(sample.prompt)
            used.update(sample.rules)
            per_kind[sample.kind] += 1
    return "\n".join(chosen) + "\n"


def heldout_jsonl(count: int = 500) -> str:
    """Write the first held-out samples as JSON lines."""
    rows = ({"prompt": s.prompt, "expected": s.expected} for s in held_out_samples()[:count])
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


COMMITTED = {
    "calibration.txt": calibration_text,
    "prompts.txt": golden_prompts,
    "heldout.jsonl": heldout_jsonl,
}


def main() -> None:
    """Show samples, or write the text files that are committed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--held-out", action="store_true", help="show the held-out set instead")
    parser.add_argument("--write", action="store_true", help="write the committed text files")
    args = parser.parse_args()
    if args.write:
        for name, make in COMMITTED.items():
            (HERE / name).write_text(make(), encoding="utf-8")
        return
    stream = iter(held_out_samples()) if args.held_out else training_samples(args.seed)
    for _, sample in zip(range(args.count), stream, strict=False):
        print(f"[{sample.kind}] {sample.prompt}\n    {sample.expected}")


if __name__ == "__main__":
    main()
