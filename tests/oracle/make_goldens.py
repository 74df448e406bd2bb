"""Make the golden file of the example model with transformers: `make goldens`."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from judge import Judge, versions

from colibri_build.checkpoint.tokenizer_encode import encode_text
from support.golden import GOLDEN_FILE, MAX_TOKENS, N_SAMPLES, Golden, example_model, prompts


def make_golden(judge: Judge, prompt: str, ids: list[int]) -> Golden:
    """Greedy answer, routing and samples of one prompt."""
    answer = judge.greedy(ids, MAX_TOKENS)
    verdict = judge.forward([*ids, *answer[:-1]])
    last = verdict.logits[-1]
    largest = np.argsort(-last, kind="stable")[:N_SAMPLES]
    samples = [(int(i), round(float(last[i]), 4)) for i in largest]
    return Golden(prompt, ids, answer, verdict.routing, samples, verdict.router_ties)


def make_file() -> dict[str, Any]:
    """The golden file's content."""
    model, quantized = example_model()
    judge = Judge(quantized)
    goldens = [make_golden(judge, prompt, encode_text(model.tokenizer, prompt)) for prompt in prompts()]
    return {"made_by": dict(versions()), "model": model.digest, "prompts": [golden.to_json() for golden in goldens]}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: make_goldens.py --write")
    text = json.dumps(make_file(), indent=1, ensure_ascii=False)
    GOLDEN_FILE.write_text(text + "\n", encoding="utf-8")
