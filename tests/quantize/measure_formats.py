"""Print the tables of docs/quantization.md: what each format, group size and method costs in bytes and in answers.

    python tests/quantize/measure_formats.py examples/cabin_voice/model examples/cabin_voice/calibration.txt \
        examples/cabin_voice/heldout.jsonl

Held-out lines are {"prompt": ..., "expected": ...}. Teacher-forced: every position is predicted from the true text
before it. An answer counts as exact if each of its tokens, the end included, is predicted: greedy decoding would then
write it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from colibri_build.artifacts import Format, Kind, Model
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.quantize import QuantizeOptions, calibration_from_text, quantize_model
from colibri_build.quantize.float_forward import forward
from colibri_build.quantize.kl import compare_logits, dequantized

A, E, H, X = Kind.ATTENTION, Kind.EMBEDDING, Kind.LM_HEAD, Kind.EXPERT
W4, W8, F16 = Format.W4, Format.W8, Format.F16
FORMAT_VARIANTS: list[tuple[str, dict[Kind, Format]]] = [
    ("defaults", {}),
    ("attention w4", {A: W4}),
    ("lm_head f16", {H: F16}),
    ("embedding f16", {E: F16}),
    ("embedding and lm_head f16", {E: F16, H: F16}),
    ("experts w8", {X: W8}),
]


class HeldOut(NamedTuple):
    sequences: list[list[int]]
    answers: list[slice]  # positions that predict the answer, over all sequences end to end
    tokens: np.ndarray  # the token that follows each position


def read_held_out(path: Path, tokenizer: Tokenizer, end: int, limit: int) -> HeldOut:
    sequences, answers, following, start = [], [], [], 0
    for line in path.read_text(encoding="utf-8").splitlines()[:limit]:
        record = json.loads(line)
        prompt = tokenizer.encode(record["prompt"]).ids
        ids = [*prompt, *tokenizer.encode("\n" + record["expected"]).ids, end]
        sequences.append(ids[:-1])
        following += ids[1:]
        answers.append(slice(start + len(prompt) - 1, start + len(ids) - 1))
        start += len(ids) - 1
    return HeldOut(sequences, answers, np.asarray(following))


class Bench:
    def __init__(self, model: Model, held_out: HeldOut, calibration: list[list[int]]) -> None:
        self.model, self.held_out, self.calibration = model, held_out, calibration
        self.wanted = forward(model.config, model.tensors, held_out.sequences)

    def exact(self, logits: np.ndarray) -> float:
        right = logits.argmax(axis=-1) == self.held_out.tokens
        return 100 * float(np.mean([right[answer].all() for answer in self.held_out.answers]))

    def row(self, label: str, method: str, group_size: int, formats: dict[Kind, Format]) -> None:
        options = QuantizeOptions(method, 4, group_size, formats, self.calibration)
        start = time.monotonic()
        quantized, report = quantize_model(self.model, options)
        seconds = time.monotonic() - start
        got = forward(quantized.config, dequantized(quantized), self.held_out.sequences)
        kl = compare_logits(self.wanted, got)
        size, top1 = f"{report.bytes:,}", 100 * kl.top1_equal / kl.tokens
        divergence = f"{kl.mean_kl:.1e} | {kl.median_kl:.1e} | {kl.p99_kl:.1e}"
        answers = f"{top1:.2f} % | {self.exact(got):.1f} %"
        print(
            f"| {label} | {method} | {group_size} | {size} | {divergence} | {answers} | {seconds:.1f} s |", flush=True
        )


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("calibration", type=Path)
    parser.add_argument("held_out", type=Path)
    parser.add_argument("--limit", type=int, default=500, help="held-out records")
    return parser


def read_inputs(args: argparse.Namespace) -> tuple[Model, HeldOut, list[list[int]]]:
    """The model, the held-out records, and the calibration sequences, each closed by the end token."""
    model = read_checkpoint(args.checkpoint)
    tokenizer = Tokenizer.from_file(str(args.checkpoint / "tokenizer.json"))
    end = model.config.eos_ids[0]
    text = args.calibration.read_text(encoding="utf-8")
    calibration = calibration_from_text(text, lambda part: [*tokenizer.encode(part).ids, end], model.config.max_context)
    return model, read_held_out(args.held_out, tokenizer, end, args.limit), calibration


def main() -> None:
    model, held_out, calibration = read_inputs(argument_parser(__doc__).parse_args())
    bench = Bench(model, held_out, calibration)
    print(f"calibration: {len(calibration)} sequences, {sum(map(len, calibration))} tokens")
    print(f"held out: {len(held_out.sequences)} records, {len(bench.wanted)} positions")
    print(f"float32: {bench.exact(bench.wanted):.1f} % exact\n")
    print("| formats | method | group | bytes | KL mean | median | 99 % | top-1 | exact | time |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for method in ("rtn", "awq"):
        for group_size in (128, 64, 32):
            bench.row(FORMAT_VARIANTS[0][0], method, group_size, {})
        for label, formats in FORMAT_VARIANTS[1:]:
            bench.row(label, method, 128, formats)


if __name__ == "__main__":
    main()
