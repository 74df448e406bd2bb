"""Print the tables of docs/quantization.md for a language model: KL against fp32 and perplexity on running text.

    python tests/quantize/measure_text.py CHECKPOINT CALIBRATION.txt HELD_OUT.txt [--tokens 1024] [--only rtn]

Both texts are plain text. The held-out text is cut into windows of 256 tokens, each predicted from its own beginning.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from colibri_build.artifacts import Format, Kind, Model
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.quantize import QuantizeOptions, quantize_model
from colibri_build.quantize.float_forward import forward
from colibri_build.quantize.kl import compare_logits, dequantized

WINDOW = 256
A, E, H, X, D = Kind.ATTENTION, Kind.EMBEDDING, Kind.LM_HEAD, Kind.EXPERT, Kind.DENSE
W4, W8, F16 = Format.W4, Format.W8, Format.F16


def windows(path: Path, tokenizer: Tokenizer, most: int) -> list[list[int]]:
    """The first `most` tokens of a text, in windows."""
    ids = tokenizer.encode(path.read_text(encoding="utf-8"), add_special_tokens=False).ids[:most]
    return [ids[start : start + WINDOW] for start in range(0, len(ids) - 1, WINDOW)]


def perplexity(logits: np.ndarray, sequences: list[list[int]]) -> float:
    """Of every token but the first of each window."""
    total, count, start = 0.0, 0, 0
    for ids in sequences:
        rows = logits[start : start + len(ids) - 1].astype(np.float64)
        most = rows.max(axis=-1, keepdims=True)
        total_row = np.log(np.exp(rows - most).sum(axis=-1)) + most[:, 0]
        total += float((total_row - rows[np.arange(len(ids) - 1), ids[1:]]).sum())
        count, start = count + len(ids) - 1, start + len(ids)
    return float(np.exp(total / count))


def variants(model: Model) -> list[tuple[str, int, dict[Kind, Format]]]:
    """What is tried: group sizes with the defaults, then one kind of tensor at a time in another format."""
    bulk = X if model.config.n_expert_layers else D
    head = {E: F16, H: F16}
    return [
        ("defaults", 128, {}),
        ("defaults", 64, {}),
        ("defaults", 32, {}),
        ("attention w4", 128, {A: W4}),
        (f"{bulk} w8", 128, {bulk: W8}),
        (f"{bulk} w8", 32, {bulk: W8}),
        ("embedding and lm_head f16", 128, head),
    ]


def main() -> None:
    """Measure one checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("calibration", type=Path)
    parser.add_argument("held_out", type=Path)
    parser.add_argument("--tokens", type=int, default=1024, help="of each text")
    parser.add_argument("--only", choices=("rtn", "awq"), action="append")
    args = parser.parse_args()
    model = read_checkpoint(args.checkpoint)
    tokenizer = Tokenizer.from_file(str(args.checkpoint / "tokenizer.json"))
    calibration, held_out = (windows(path, tokenizer, args.tokens) for path in (args.calibration, args.held_out))
    wanted = forward(model.config, model.tensors, held_out)
    print(f"held out: {len(wanted)} positions, perplexity in fp32 {perplexity(wanted, held_out):.2f}\n")
    print("| formats | method | group | bytes | KL mean | median | top-1 | perplexity | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for method in args.only or ("rtn", "awq"):
        for label, group_size, formats in variants(model):
            start = time.monotonic()
            options = QuantizeOptions(method, 4, group_size, formats, calibration if method == "awq" else ())
            quantized, report = quantize_model(model, options)
            seconds = time.monotonic() - start
            got = forward(quantized.config, dequantized(quantized), held_out)
            kl, size = compare_logits(wanted, got), f"{report.bytes:,}"
            equal = f"{100 * kl.top1_equal / kl.tokens:.1f} %"
            row = f"{kl.mean_kl:.4f} | {kl.median_kl:.4f} | {equal} | {perplexity(got, held_out):.2f}"
            print(f"| {label} | {method} | {group_size} | {size} | {row} | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
