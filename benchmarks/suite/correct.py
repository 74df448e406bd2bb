"""Whether the text is right: experts that are copies must answer as the dense model did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from suite.commands import launch, run
from suite.engines import of_firmware
from suite.models import Model, dense_model
from suite.ours import BITS, BOARD_X86, firmware, script
from suite.places import Json

TOKENS = 64


def correct(model: Model) -> Json:
    """{"dense": {class: {"tokens", "equal"}}, "verified": bool, "prompts": n}.

    "dense" is of model c alone: how many of the dense model's tokens, after the same prompt, came out of the four experts
    before the first that differs. "verified" is the builder's own comparison with the reference, bit by bit.
    """
    found: Json = {"dense": {}}
    if model.letter == "c":
        found["dense"] = {f"a{bits}": _beside_dense(model, bits) for bits in BITS}
    built = firmware(model, BOARD_X86, 16)
    proof = json.loads(run([script("colibri-build"), "verify", built.path.parent, "--json"]).stdout)
    return found | {"verified": proof["ok"], "runs": len(proof["results"])}


def _beside_dense(model: Model, bits: int) -> Json:
    mixture, dense = (_answer(which, bits) for which in (model, dense_model()))
    return {"tokens": len(dense), "equal": equal_at_first(mixture, dense)}


def _answer(model: Model, bits: int) -> list[int]:
    engine = of_firmware(firmware(model, BOARD_X86, bits))
    command: list[str | Path] = [engine.program, "--prompt", model.prompt, "--max-tokens", str(TOKENS)]
    ids: list[int] = launch(command).status["ids"]
    return ids


def equal_at_first(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids from the start are the same."""
    same = [x == y for x, y in zip(a, b, strict=False)]
    return same.index(False) if False in same else len(same)
