"""Train the cabin-voice model on a CPU and write it as an ordinary Mixtral folder.

    python -m cabin_voice.train --threads 2            # the committed model
    python -m cabin_voice.train --dev-share 0 --steps 1800   # a trial, to be judged on the validation set
    python -m cabin_voice.evaluate --split dev   # the validation set, for decisions

The number of steps is fixed by the arguments, never by the clock: the same seed, thread count and
library versions give the same file.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from .commands import END, HERE, Sample, training_samples
from .export import load_model, save_model
from .model import Mixtral, Shape, balance_loss
from .optimizer import optimizers_for
from .tokenizer import PAD, load_tokenizer, train_tokenizer

BUCKET = 16


@dataclass(frozen=True)
class Plan:
    """The settings of a training run."""

    seed: int = 1
    steps: int = 5500
    batch: int = 64
    warmup: int = 150
    peak: float = 3e-3
    floor: float = 3e-5
    decay: float = 0.1
    balance: float = 0.02
    dev_share: float = 0.1

    def rate(self, step: int) -> float:
        """Learning rate of a step: linear warm-up, then a cosine down to the floor."""
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.floor + (self.peak - self.floor) * 0.5 * (1 + math.cos(math.pi * done))


def encode(tokenizer: Tokenizer, sample: Sample) -> tuple[list[int], int]:
    """Tokens of a record, and how many of them are the prompt."""
    prompt = tokenizer.encode(sample.prompt).ids
    answer = tokenizer.encode("\n" + sample.expected).ids
    return [*prompt, *answer, tokenizer.token_to_id(END)], len(prompt)


def batches(tokenizer: Tokenizer, plan: Plan, samples: Iterator[Sample]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (tokens, targets): rows of like length; targets are -100 at the prompt and the padding."""
    pad = tokenizer.token_to_id(PAD)
    stream = (encode(tokenizer, sample) for sample in samples)
    shuffler = Random(plan.seed)
    while True:
        pool = sorted((next(stream) for _ in range(plan.batch * BUCKET)), key=lambda row: len(row[0]))
        groups = [pool[i : i + plan.batch] for i in range(0, len(pool), plan.batch)]
        shuffler.shuffle(groups)
        for group in groups:
            longest = max(len(ids) for ids, _ in group)
            tokens = torch.full((len(group), longest), pad)
            targets = torch.full((len(group), longest), -100)
            for i, (ids, prompt) in enumerate(group):
                tokens[i, : len(ids)] = torch.tensor(ids)
                targets[i, prompt - 1 : len(ids) - 1] = torch.tensor(ids[prompt:])
            yield tokens, targets


def loss_of(model: Mixtral, tokens: Tensor, targets: Tensor, pad: int, balance: float) -> tuple[Tensor, Tensor]:
    """Cross entropy of the answers, without and with the load-balancing term."""
    hidden, routings = model(tokens)
    wanted = targets != -100
    answer = functional.cross_entropy(model.lm_head(hidden[wanted]), targets[wanted])
    return answer, answer + balance * balance_loss(routings, (tokens != pad).flatten())


def fit(model: Mixtral, tokenizer: Tokenizer, plan: Plan, samples: Iterator[Sample]) -> tuple[float, float]:
    """Train; return the minutes it took, by the clock and of the processor."""
    pad = tokenizer.token_to_id(PAD)
    optimizers = optimizers_for(model, plan.peak, plan.decay)
    begin, begin_cpu = time.monotonic(), time.process_time()
    recent = 0.0
    for step, (tokens, targets) in zip(range(plan.steps), batches(tokenizer, plan, samples), strict=False):
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = plan.rate(step)
        answer, total = loss_of(model, tokens, targets, pad, plan.balance)
        model.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        recent += answer.item()
        if (step + 1) % 100 == 0:
            minutes = (time.monotonic() - begin) / 60
            print(f"step {step + 1:5d}  loss {recent / 100:.4f}  {minutes:.1f} min", flush=True)
            recent = 0.0
    return (time.monotonic() - begin) / 60, (time.process_time() - begin_cpu) / 60


def train(plan: Plan, folder: Path, resume: bool) -> None:
    """Train from nothing, or go on from the saved weights; save them with the facts of the run."""
    torch.manual_seed(plan.seed)
    tokenizer = load_tokenizer(folder) if resume else train_tokenizer()
    model = load_model(folder).train() if resume else Mixtral(Shape(vocab=tokenizer.get_vocab_size()))
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {plan.steps} steps", flush=True)
    minutes, cpu_minutes = fit(model, tokenizer, plan, training_samples(plan.seed, plan.dev_share))
    save_model(model, tokenizer, folder)
    path = folder / "training.json"
    run = asdict(plan) | {"threads": torch.get_num_threads()}
    run |= {"minutes": round(minutes, 1), "cpu_minutes": round(cpu_minutes, 1)}
    runs = json.loads(path.read_text(encoding="utf-8")) if resume else []
    path.write_text(json.dumps([*runs, run], indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Train and save a model."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "model")
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--steps", type=int, default=Plan.steps)
    parser.add_argument("--peak", type=float, default=Plan.peak, help="highest learning rate")
    parser.add_argument(
        "--dev-share", type=float, default=Plan.dev_share, help="share of samples in validation wording"
    )
    parser.add_argument("--batch", type=int, default=Plan.batch)
    parser.add_argument("--resume", action="store_true", help="go on from the saved weights")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    plan = Plan(seed=args.seed, steps=args.steps, peak=args.peak, dev_share=args.dev_share, batch=args.batch)
    train(plan, args.out, args.resume)


if __name__ == "__main__":
    main()
