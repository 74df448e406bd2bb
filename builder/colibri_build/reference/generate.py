"""Greedy generation with the reference: what a firmware must answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from colibri_build.artifacts import Generation
from colibri_build.reference.model import ReferenceModel
from colibri_build.reference.sampling import LogitsHash, pick_greedy


def generate(
    reference: ReferenceModel,
    prompt: str,
    prompt_ids: Sequence[int],
    max_tokens: int,
    on_token: Callable[[int], None] | None = None,
) -> Generation:
    """Greedy tokens after a prompt that is not empty and fits the context.

    `ids` holds every token that was chosen, the end-of-sequence token included. The hash is over the logits that
    they were chosen from.
    """
    reference.reset()
    for token in prompt_ids[:-1]:
        reference.step(token, want_logits=False)
    ids: list[int] = []
    digest = LogitsHash()
    stop, token = "length", prompt_ids[-1]
    while len(ids) < max_tokens:
        if reference.position >= reference.context:
            stop = "context"
            break
        logits = reference.step(token).logits
        assert logits is not None
        digest.update(logits)
        token = pick_greedy(logits)
        ids.append(token)
        if on_token is not None:
            on_token(token)
        if token in reference.config.eos_ids:
            stop = "eos"
            break
    return Generation(prompt, tuple(prompt_ids), tuple(ids), digest.hexdigest(), stop)
