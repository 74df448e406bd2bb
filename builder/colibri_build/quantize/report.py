"""What a quantization did, as data for tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from colibri_build.artifacts import F32, Format, Kind


@dataclass(frozen=True)
class KindError:
    """All tensors of one kind. Errors compare the stored values with the (folded) float32 weights."""

    kind: Kind
    format: Format
    tensors: int
    weights: int
    bytes: int  # in the model folder, padding to panels and blocks included
    relative_rms_error: float  # sqrt(sum of squared errors / sum of squared weights)
    max_abs_error: float


@dataclass(frozen=True)
class ScaleGain:
    """One scale search: output error of the projections that share the scale, relative to their output's energy."""

    folded_into: str  # the tensor that took the inverse scale
    projections: tuple[str, ...]
    ratio: float  # exponent chosen for mean |x|; 0: no scaling
    loss_rtn: float
    loss_scaled: float  # with the scale
    loss_final: float  # with the scale and the clipped ranges


@dataclass(frozen=True)
class Fallback:
    """An expert that saw too few calibration tokens and was rounded to nearest."""

    expert: str  # "layers.0.experts.3"
    tokens: int
    needed: int


@dataclass(frozen=True)
class QuantizeReport:
    """Errors by kind; for AWQ also what the calibration saw and what the searches won."""

    method: str
    kinds: tuple[KindError, ...]
    calibration_tokens: int = 0
    expert_tokens: tuple[tuple[int, ...], ...] = ()  # [n_layers][n_experts]; empty for rtn
    fallbacks: tuple[Fallback, ...] = ()
    gains: tuple[ScaleGain, ...] = ()

    @property
    def bytes(self) -> int:
        """Sum over the kinds."""
        return sum(kind.bytes for kind in self.kinds)


@dataclass
class ErrorSum:
    """Running sums over the tensors of one kind."""

    format: Format
    tensors: int = 0
    weights: int = 0
    bytes: int = 0
    squared_error: float = 0.0
    squared_weight: float = 0.0
    max_abs_error: float = 0.0

    def add(self, wanted: F32, stored: F32, stored_bytes: int) -> None:
        """Count one tensor."""
        error = stored.astype(np.float64) - wanted
        self.tensors += 1
        self.weights += wanted.size
        self.bytes += stored_bytes
        self.squared_error += float(np.sum(error * error))
        self.squared_weight += float(np.sum(np.square(wanted, dtype=np.float64)))
        self.max_abs_error = max(self.max_abs_error, float(np.abs(error).max(initial=0.0)))


@dataclass
class ErrorTable:
    """Running sums by kind."""

    sums: dict[Kind, ErrorSum] = field(default_factory=dict)

    def add(self, kind: Kind, fmt: Format, wanted: F32, stored: F32, stored_bytes: int) -> None:
        """Count one tensor of `kind`."""
        self.sums.setdefault(kind, ErrorSum(fmt)).add(wanted, stored, stored_bytes)

    def rows(self) -> tuple[KindError, ...]:
        """One row for each kind that occurred, in the order of `Kind`."""
        return tuple(_row(kind, self.sums[kind]) for kind in Kind if kind in self.sums)


def _row(kind: Kind, sums: ErrorSum) -> KindError:
    relative = math.sqrt(sums.squared_error / sums.squared_weight) if sums.squared_weight else 0.0
    return KindError(kind, sums.format, sums.tensors, sums.weights, sums.bytes, relative, sums.max_abs_error)
