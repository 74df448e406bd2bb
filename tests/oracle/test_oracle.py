"""The reference against transformers in fp32, the judge: exact means exact for a model that somebody trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge import Judge
from make_goldens import make_file

from colibri_build.artifacts import Format, Kind, QuantizedModel
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.quantize.engine import quantize_model
from colibri_build.quantize.kl import compare_logits
from colibri_build.quantize.options import QuantizeOptions
from colibri_build.reference.generate import generate
from colibri_build.reference.model import ReferenceModel, forward
from families import PROMPT, near_ties
from support.golden import GOLDEN_FILE, SAMPLE_TOLERANCE, example_model, read_goldens
from support.tiny_checkpoint import write_tiny_checkpoint

KL_LIMIT = 1e-5  # a16 is a promise; a8 is reported
# Keys of config.json and options of the quantizer: every rule of the family, every format, awkward sizes.
CONFIGURATIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "sliding-window": ({"sliding_window": 8}, {}),
    "tied-embeddings": ({"tie_word_embeddings": True}, {}),
    "head-dim": ({"head_dim": 24}, {}),
    "one-kv-head": ({"num_key_value_heads": 1}, {}),
    "k-1": ({"num_experts_per_tok": 1}, {}),
    "k-all": ({"num_experts_per_tok": 4}, {}),
    "six-experts": ({"num_local_experts": 6, "num_experts_per_tok": 3}, {}),
    "odd-sizes": ({"hidden_size": 76, "head_dim": 10, "intermediate_size": 172}, {}),
    "groups-of-32": ({}, {"group_size": 32}),
    "groups-of-64": ({"intermediate_size": 172}, {"group_size": 64}),
    "experts-w8": ({}, {"bits": 8}),
    "attention-w4": ({}, {"formats": {Kind.ATTENTION: Format.W4}}),
    "attention-w8": ({}, {"formats": {Kind.ATTENTION: Format.W8}}),
    "f16-head": ({}, {"formats": {Kind.LM_HEAD: Format.F16, Kind.EMBEDDING: Format.F16}}),
    "theta": ({"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}}, {}),
}


def quantized_tiny(folder: Path, config: dict[str, Any], options: dict[str, Any]) -> QuantizedModel:
    model = read_checkpoint(write_tiny_checkpoint(folder / "tiny", **config))
    return quantize_model(model, QuantizeOptions(method="rtn", **options))[0]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_tiny_configurations_are_exact(tmp_path: Path, name: str) -> None:
    model = quantized_tiny(tmp_path, *CONFIGURATIONS[name])
    judge = Judge(model)
    reference = ReferenceModel(model)
    expected = judge.greedy(PROMPT, 24)
    text = [*PROMPT, *expected[:-1]]
    verdict = judge.forward(text)
    logits, routing = forward(reference, text)
    assert compare_logits(verdict.logits, logits).mean_kl <= KL_LIMIT
    ties = near_ties(verdict.logits)
    answer = slice(len(PROMPT) - 1, None)
    differing = np.flatnonzero(logits.argmax(-1)[answer] != expected)
    assert set(differing + len(PROMPT) - 1) <= set(ties), f"near ties by position: {ties}"
    if not ties:
        assert list(generate(reference, "", PROMPT, 24).ids) == expected
    got = [[list(step.experts) for step in position] for position in routing]
    assert got == verdict.routing, f"smallest router margin {verdict.router_margin:.2e}"


def test_the_committed_goldens_are_what_transformers_says() -> None:
    committed = json.loads(GOLDEN_FILE.read_text(encoding="utf-8"))
    made = make_file()
    assert made["model"] == committed["model"]
    for new, old in zip(made["prompts"], committed["prompts"], strict=True):
        samples_new, samples_old = new.pop("samples"), old.pop("samples")
        ties_new, ties_old = new.pop("router_ties"), old.pop("router_ties")
        assert new == old
        assert [tie[:3] for tie in ties_new] == [tie[:3] for tie in ties_old]
        assert np.allclose([tie[3] for tie in ties_new], [tie[3] for tie in ties_old], atol=1e-5)
        for (token, value), (old_token, old_value) in zip(samples_new, samples_old, strict=True):
            assert token == old_token
            assert abs(value - old_value) < SAMPLE_TOLERANCE


@pytest.mark.parametrize("bits", [16, 8])
def test_agreement_on_the_example(bits: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Teacher-forced over every golden prompt and answer: a16 must agree everywhere; a8 is reported as it comes."""
    _, model = example_model()
    judge, reference = Judge(model), ReferenceModel(model, activation_bits=bits)
    wanted, got, routed, positions, ties, differing = [], [], 0, 0, [], []
    for golden in read_goldens():
        text = [*golden.prompt_ids, *golden.ids[:-1]]
        verdict = judge.forward(text)
        logits, routing = forward(reference, text)
        wanted.append(verdict.logits)
        got.append(logits)
        same = [[list(step.experts) for step in position] for position in routing]
        routed += sum(a == b for a, b in zip(same, verdict.routing, strict=True))
        positions += len(text)
        ties += verdict.router_ties
        differing += golden.differing(same)
    agreement = compare_logits(np.concatenate(wanted), np.concatenate(got))
    with capsys.disabled():
        print(
            f"\na{bits}: mean KL {agreement.mean_kl:.2e}, top-1 equal {agreement.top1_equal}/{positions}, "
            f"routing equal {routed}/{positions} positions, {len(ties)} near ties of a router, "
            f"margins {', '.join(f'{tie.margin:.1e}' for tie in ties)}"
        )
    if bits == 16:
        assert agreement.mean_kl <= KL_LIMIT
        assert agreement.top1_equal == positions
        assert differing == []
        assert routed >= positions - len(ties)
