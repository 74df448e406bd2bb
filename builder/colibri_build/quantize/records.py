"""What the report needs to know of a finished tensor or layer, as JSON values: another run goes on with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from colibri_build.artifacts import QuantizedTensor
from colibri_build.quantize.awq import LayerPlan
from colibri_build.quantize.report import Fallback, PieceError, ScaleGain

Record = Mapping[str, Any]


class Made(NamedTuple):
    """One thing that a quantization finished.

    `name`: of a tensor, or of a layer ("layers.3") whose scales are searched; that has no tensor.
    """

    name: str
    tensor: QuantizedTensor | None
    record: Record


def tensor_record(error: PieceError, taken: bool | str | None) -> Record:
    """`taken`: see `Takeover.count`. JSON writes a float so that it is read back exactly."""
    return {"error": list(error), "taken": taken}


def error_of(record: Record) -> PieceError:
    """The error of a tensor's record."""
    return PieceError(*record["error"])


def layer_record(plan: LayerPlan) -> Record:
    """What is told of a layer's search."""
    return {
        "gains": [asdict(gain) for gain in plan.gains],
        "fallbacks": [asdict(fallback) for fallback in plan.fallbacks],
        "expert_tokens": list(plan.expert_tokens),
    }


def plan_of(record: Record) -> LayerPlan:
    """A layer's plan without its weights."""
    gains = (ScaleGain(**{**gain, "projections": tuple(gain["projections"])}) for gain in record["gains"])
    fallbacks = tuple(Fallback(**fallback) for fallback in record["fallbacks"])
    return LayerPlan({}, {}, tuple(gains), fallbacks, tuple(record["expert_tokens"]))
