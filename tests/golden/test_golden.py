"""The reference against committed answers of transformers, so that `make test` needs no torch.

If one fails, the firmware (which equals the reference) gives another answer than the model that was trained.
`make goldens` makes the file anew; `make oracle` checks that it still is what transformers says.
"""

from __future__ import annotations

import pytest

from colibri_build.checkpoint.tokenizer_encode import encode_text
from colibri_build.reference.model import ReferenceModel, forward
from support.golden import MAX_TOKENS, SAMPLE_TOLERANCE, Golden, example_model, prompts, read_goldens

GOLDENS = read_goldens()


def test_the_goldens_cover_the_prompts_of_the_example() -> None:
    assert [golden.prompt for golden in GOLDENS] == prompts()
    assert len(GOLDENS) == 20
    assert all(0 < len(golden.ids) <= MAX_TOKENS for golden in GOLDENS)


@pytest.fixture(scope="module")
def reference() -> ReferenceModel:
    return ReferenceModel(example_model()[1])


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.prompt[:24])
def test_reference_says_what_transformers_says(reference: ReferenceModel, golden: Golden) -> None:
    ids = encode_text(example_model()[1].tokenizer, golden.prompt)
    assert ids == golden.prompt_ids
    logits, routing = forward(reference, [*golden.prompt_ids, *golden.ids[:-1]])
    n = len(golden.prompt_ids)
    assert [int(row.argmax()) for row in logits[n - 1 :]] == golden.ids
    assert golden.differing([[list(step.experts) for step in position] for position in routing]) == []
    for token, value in golden.samples:
        assert abs(float(logits[-1, token]) - value) < SAMPLE_TOLERANCE
