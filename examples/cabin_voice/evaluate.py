"""Measure a saved model on the held-out set and write its figures and its model card.

    python -m cabin_voice.evaluate                 # writes figures.json and README.md into the model folder
    python -m cabin_voice.evaluate --split dev     # lists what went wrong in the validation set, writes nothing

The weights are those of the file, rounded to bf16; the arithmetic is fp32. Decoding is greedy, and a
sample is right only if the whole output is the expected JSON line, then the end token.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from .card import model_card
from .commands import END, HELDOUT_SEED, HERE, Sample, held_out_samples, validation_samples
from .export import load_model
from .model import Mixtral
from .tokenizer import load_tokenizer

LIMIT = 72
BATCH = 128


@torch.no_grad()
def decode(model: Mixtral, prompts: list[list[int]], end: int) -> list[list[int]]:
    """Decode prompts of one length greedily, up to the end token or the limit."""
    rows = torch.tensor(prompts)
    start = rows.shape[1]
    live = torch.arange(len(prompts))
    done: list[list[int]] = [[] for _ in prompts]
    for _ in range(LIMIT):
        hidden, _ = model(rows)
        token = model.lm_head(hidden[:, -1]).argmax(dim=-1)
        rows = torch.cat([rows, token.unsqueeze(1)], dim=1)
        going = token != end
        for i in (~going).nonzero().flatten().tolist():
            done[int(live[i])] = rows[i, start:].tolist()
        rows, live = rows[going], live[going]
        if len(live) == 0:
            break
    for i, row in zip(live.tolist(), rows, strict=True):
        done[i] = row[start:].tolist()
    return done


def answers(model: Mixtral, tokenizer: Tokenizer, samples: Sequence[Sample]) -> list[str]:
    """Return what the model writes after each prompt, with its end token as text."""
    end = tokenizer.token_to_id(END)
    ids = [tokenizer.encode(sample.prompt).ids for sample in samples]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    texts = [""] * len(ids)
    for _, same in groupby(order, key=lambda i: len(ids[i])):
        group = list(same)
        for at in range(0, len(group), BATCH):
            part = group[at : at + BATCH]
            for i, tokens in zip(part, decode(model, [ids[i] for i in part], end), strict=True):
                texts[i] = tokenizer.decode(tokens, skip_special_tokens=False)
    return texts


@torch.no_grad()
def expert_shares(model: Mixtral, tokenizer: Tokenizer, samples: Sequence[Sample]) -> list[list[float]]:
    """Count, for each layer, the share of the expert places that each expert got."""
    counts = [torch.zeros(model.shape.experts) for _ in range(model.shape.layers)]
    for sample in samples:
        ids = tokenizer.encode(f"{sample.prompt}\n{sample.expected}").ids
        _, routings = model(torch.tensor([ids]))
        for count, routing in zip(counts, routings, strict=True):
            count += torch.bincount(routing.chosen.flatten(), minlength=len(count))
    return [[round(share, 4) for share in (count / count.sum()).tolist()] for count in counts]


def group_of(sample: Sample) -> str:
    """Name the kind of command: the `act` of a single one."""
    meaning = json.loads(sample.expected)
    return str(meaning.get("act", "two commands" if "do" in meaning else "refusal"))


def score(samples: Sequence[Sample], texts: list[str]) -> tuple[dict[str, Any], list[tuple[Sample, str]]]:
    """Compare the outputs with what was expected, in all, by class and by act."""
    total: dict[str, Counter[str]] = defaultdict(Counter)
    right: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    for sample, text in zip(samples, texts, strict=True):
        good = text == f"\n{sample.expected}{END}"
        for table, key in (("class", sample.kind), ("act", group_of(sample)), ("all", "all")):
            total[table][key] += 1
            right[table][key] += good
        if not good:
            wrong.append((sample, text))
    figures = {
        table: {key: {"samples": n, "right": right[table][key]} for key, n in sorted(counts.items())}
        for table, counts in total.items()
    }
    return figures, wrong


def check_with_transformers(folder: Path, model: Mixtral, tokenizer: Tokenizer, samples: Sequence[Sample]) -> float:
    """Load the folder with transformers as anyone would; return the largest difference of a logit."""
    from transformers import AutoModelForCausalLM

    judge = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    worst = 0.0
    with torch.no_grad():
        for sample in samples:
            ids = torch.tensor([tokenizer.encode(f"{sample.prompt}\n{sample.expected}").ids])
            ours = model.lm_head(model(ids)[0])
            worst = max(worst, (judge(ids).logits - ours).abs().max().item())
    return worst


def main() -> None:
    """Evaluate a saved model."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, default=HERE / "model")
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load_model(args.model), load_tokenizer(args.model)
    samples = held_out_samples() if args.split == "test" else validation_samples()
    figures, wrong = score(samples, answers(model, tokenizer, samples))
    print(json.dumps({"all": figures["all"], "class": figures["class"]}, indent=1))
    if args.split == "dev":
        for sample, text in wrong:
            print(f"[{sample.kind}] {sample.prompt}\n  want {sample.expected}\n  got  {text.strip()}")
        return
    figures["heldout_seed"] = HELDOUT_SEED
    figures["expert_shares"] = expert_shares(model, tokenizer, samples[:500])
    figures["transformers_max_logit_difference"] = check_with_transformers(args.model, model, tokenizer, samples[:50])
    (args.model / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    (args.model / "README.md").write_text(model_card(args.model), encoding="utf-8")
    print("largest logit difference to transformers:", figures["transformers_max_logit_difference"])


if __name__ == "__main__":
    main()
