"""The committed golden file of the example model: what transformers in fp32 says on the dequantized weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from colibri_build.artifacts import Model, QuantizedModel
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.quantize.engine import quantize_model
from colibri_build.quantize.options import QuantizeOptions

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cabin_voice"
GOLDEN_FILE = ROOT / "tests" / "golden" / "cabin_voice.json"
MAX_TOKENS = 64
N_SAMPLES = 5  # largest logits that are kept of each prompt's last position
SAMPLE_TOLERANCE = 2e-3  # a16 against fp32; logits are of order 10
# In half of the example's choices a router logit of a16 is 1.2e-4 or more off fp32's: a smaller margin is nobody's to call.
ROUTER_TIE = 5e-5


class RouterTie(NamedTuple):
    """A choice between two experts that fp32 itself makes by a hair."""

    position: int
    layer: int
    other: int  # the first rejected expert, which may stand in the place of the last chosen one
    margin: float


@dataclass(frozen=True)
class Golden:
    """One prompt. `routing` is [position][layer][rank] over prompt and answer but its last token."""

    prompt: str
    prompt_ids: list[int]
    ids: list[int]
    routing: list[list[list[int]]]
    samples: list[tuple[int, float]]
    router_ties: list[RouterTie]

    def differing(self, routing: list[list[list[int]]]) -> list[tuple[int, int]]:
        """(position, layer) of every choice that is neither this one nor, at a near tie, the other."""
        assert [len(layers) for layers in routing] == [len(layers) for layers in self.routing]
        others = {(tie.position, tie.layer): tie.other for tie in self.router_ties}
        found = []
        for at in ((t, layer) for t, layers in enumerate(routing) for layer in range(len(layers))):
            wanted, got = self.routing[at[0]][at[1]], routing[at[0]][at[1]]
            if got != wanted and not (at in others and got == [*wanted[:-1], others[at]]):
                found.append(at)
        return found

    def to_json(self) -> dict[str, Any]:
        """JSON object; routing as one string a position, layers separated by blanks."""
        rows = [" ".join(",".join(map(str, layer)) for layer in position) for position in self.routing]
        return {**vars(self), "routing": rows, "router_ties": [list(tie) for tie in self.router_ties]}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Golden:
        """Reverse of to_json."""
        routing = [[[int(e) for e in layer.split(",")] for layer in row.split()] for row in value["routing"]]
        samples = [(int(i), float(v)) for i, v in value["samples"]]
        ties = [RouterTie(*tie) for tie in value["router_ties"]]
        return Golden(**{**value, "routing": routing, "samples": samples, "router_ties": ties})


def read_goldens() -> list[Golden]:
    """All committed goldens of the example model."""
    return [Golden.from_json(value) for value in json.loads(GOLDEN_FILE.read_text(encoding="utf-8"))["prompts"]]


def prompts() -> list[str]:
    """The held-out prompts that goldens are made of."""
    return (EXAMPLE / "prompts.txt").read_text(encoding="utf-8").splitlines()


@lru_cache(maxsize=1)
def example_model() -> tuple[Model, QuantizedModel]:
    """The example checkpoint, and its quantization by the defaults of `colibri-build`."""
    model = read_checkpoint(EXAMPLE / "model")
    return model, quantize_model(model, QuantizeOptions(method="rtn"))[0]
