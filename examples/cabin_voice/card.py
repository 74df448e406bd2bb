"""The model card, written from the figures that training and evaluation left in the model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_CARD = """\
---
license: mit
language: en
library_name: transformers
pipeline_tag: text-generation
tags: [mixtral, mixture-of-experts, tiny, voice-commands]
---

# Cabin voice

A Mixture-of-Experts model of {millions:.2f} million parameters that turns a spoken command for a car cabin
or for workshop machines into one JSON line. It is the example model of colibri-build: small enough to be
trained in minutes on a CPU, real enough that wrong arithmetic shows up as wrong answers.

| | |
| --- | --- |
| Architecture | Mixtral ({layers} layers, width {dim}, {heads} heads, {kv} key/value heads, head width {head_dim}) |
| Experts | {experts} of width {hidden} per layer, the best {top_k} used for each token |
| Vocabulary | {vocab} tokens, byte-level BPE, every digit a token of its own, no start token |
| Context | {context} tokens |
| File | `model.safetensors`, bf16, {size:,} bytes |
| Licence | MIT |

## How it is called

The prompt is the command alone, without a newline. The model writes a newline, the JSON line and the
token `<|end|>`:

```text
make it two degrees warmer in the back
{{"act":"climate","zone":"rear","delta":2,"unit":"C"}}<|end|>
```

Two commands in one sentence give `{{"do":[{{...}},{{...}}]}}`; what the device cannot do gives
`{{"error":"unsupported","say":"Sorry, I can't do that."}}`. Decode greedily; no answer of the held-out set
is longer than 64 tokens.

## Data

All text is synthetic and generated from a seed by `commands.py`: {rules} meanings with several patterns each,
zones, units, numbers in digits and in words, fillers, courtesy, typing errors, varied case and
punctuation. No recorded speech and no text of people was used. The held-out set has {heldout} samples
(seed {heldout_seed}). None of its prompts can occur in training: a sixteenth of all prompts, chosen by checksum,
is kept out, and the classes named "held-out" use patterns, fillers and (for refusals) words that never
occur in training at all.

## Training

Two stages of AdamW with a cosine schedule, loss on the answer alone plus Mixtral's load-balancing loss:
{steps} steps on all commands, then {widen_steps} steps in which a quarter of the samples are odd requests
(`widen.py`). Each step has {batch} new samples. Seed {seed}, {threads} thread(s), fp32. It took {cpu_minutes} minutes of
processor time, {minutes} minutes by the clock on a busy shared x86-64 machine. The weights were rounded to
bf16 at the end of each stage; all figures are those of the rounded weights.

The second stage was added after the first one had been measured on this held-out set: 92.7 % in all, 57.1 %
of the refusals with held-out words. It uses no word and no pattern that is held out, and the held-out set
was not changed, but its figures are to that extent not blind.

## Figures

Exact match of the whole JSON line and the end token, greedy decoding, fp32 arithmetic on the bf16 weights.

{by_class}

By the meaning of the command:

{by_act}

The largest difference of a logit to transformers' `MixtralForCausalLM` on 50 held-out records is
{difference:.1e}.

## Use of the experts

Share of the expert places, in percent, on 500 held-out records; 12.5 is an even share.

{shares}

## Limits

- English only, and only what the patterns cover: free speech outside of them may be misread.
- Names and places come from short closed lists; others are refused or replaced by one of the list.
- Refusing is learned from examples: an odd request may still be taken for a command. Do not let the
  output move a machine without checks of its own.
- Typing errors are trained for words, never for numbers.
"""


def _percent(cell: dict[str, int]) -> str:
    return f"{100 * cell['right'] / cell['samples']:.1f} %"


def _score_table(title: str, cells: dict[str, dict[str, int]], total: dict[str, int] | None = None) -> str:
    rows = [f"| {title} | Samples | Right | Exact match |", "| --- | ---: | ---: | ---: |"]
    rows += [f"| {key} | {c['samples']} | {c['right']} | {_percent(c)} |" for key, c in cells.items()]
    if total:
        rows.append(f"| **all** | {total['samples']} | {total['right']} | **{_percent(total)}** |")
    return "\n".join(rows)


def _share_table(shares: list[list[float]]) -> str:
    heads = [f"E{i}" for i in range(len(shares[0]))]
    rows = ["| Layer | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    rows += [f"| {i} | " + " | ".join(f"{100 * s:.1f}" for s in row) + " |" for i, row in enumerate(shares)]
    return "\n".join(rows)


def _read(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / name).read_text(encoding="utf-8")))


def _parameters(config: dict[str, Any]) -> int:
    dim, head = config["hidden_size"], config["head_dim"]
    attention = 2 * dim * head * (config["num_attention_heads"] + config["num_key_value_heads"])
    experts = config["num_local_experts"] * (3 * dim * config["intermediate_size"] + dim)
    return int(2 * config["vocab_size"] * dim + config["num_hidden_layers"] * (attention + experts + 2 * dim) + dim)


def model_card(folder: Path) -> str:
    """Write the card of the model in a folder."""
    from .commands import RULES

    config, figures, training = (_read(folder, n) for n in ("config.json", "figures.json", "training.json"))
    total = figures["all"]["all"]
    return _CARD.format(
        millions=_parameters(config) / 1e6,
        layers=config["num_hidden_layers"],
        dim=config["hidden_size"],
        heads=config["num_attention_heads"],
        kv=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        experts=config["num_local_experts"],
        hidden=config["intermediate_size"],
        top_k=config["num_experts_per_tok"],
        vocab=config["vocab_size"],
        context=config["max_position_embeddings"],
        size=(folder / "model.safetensors").stat().st_size,
        rules=len(RULES),
        heldout=total["samples"],
        heldout_seed=figures["heldout_seed"],
        by_class=_score_table("Class", figures["class"], total),
        by_act=_score_table("Meaning", figures["act"]),
        shares=_share_table(figures["expert_shares"]),
        difference=figures["transformers_max_logit_difference"],
        **training,
    )
