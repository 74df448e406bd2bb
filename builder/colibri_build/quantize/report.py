"""What a quantization did, as data for tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

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
class TakenOver:
    """The tensors of one kind whose codes the checkpoint holds already."""

    kind: Kind
    taken: int  # stored with the checkpoint's own codes
    requantized: Mapping[str, int]  # reason -> tensors that were rounded anew

    def line(self) -> str:
        """In one line: how many of both, and why."""
        total = self.taken + sum(self.requantized.values())
        reasons = [f"{count} requantized: {reason}" for reason, count in sorted(self.requantized.items())]
        return "; ".join([f"{self.taken} of {total} packed {self.kind} tensors were taken over as they are", *reasons])


@dataclass(frozen=True)
class QuantizeReport:
    """Errors by kind; for AWQ also what the calibration saw and what the searches won."""

    method: str
    kinds: tuple[KindError, ...]
    calibration_tokens: int = 0
    expert_tokens: tuple[tuple[int, ...], ...] = ()  # [n_layers][n_experts]; empty for rtn
    fallbacks: tuple[Fallback, ...] = ()
    gains: tuple[ScaleGain, ...] = ()
    taken_over: tuple[TakenOver, ...] = ()  # of a checkpoint that is quantized already

    @property
    def bytes(self) -> int:
        """Sum over the kinds."""
        return sum(kind.bytes for kind in self.kinds)


class PieceError(NamedTuple):
    """How far the stored values of some rows, or of a whole tensor, are from the wanted ones."""

    weights: int
    squared_error: float
    squared_weight: float
    max_abs_error: float


def piece_error(wanted: F32, stored: F32) -> PieceError:
    """Compare two arrays of one shape."""
    error = stored.astype(np.float64) - wanted
    energy = float(np.sum(np.square(wanted, dtype=np.float64)))
    return PieceError(wanted.size, float(np.sum(error * error)), energy, float(np.abs(error).max(initial=0.0)))


def summed(pieces: Iterable[PieceError]) -> PieceError:
    """The error of the tensor that the pieces make up."""
    weights, errors, energies, largest = zip(*pieces, strict=True)
    return PieceError(sum(weights), sum(errors), sum(energies), max(largest))


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

    def add(self, error: PieceError) -> None:
        """Count a tensor's error."""
        self.weights += error.weights
        self.squared_error += error.squared_error
        self.squared_weight += error.squared_weight
        self.max_abs_error = max(self.max_abs_error, error.max_abs_error)


@dataclass
class ErrorTable:
    """Running sums by kind."""

    sums: dict[Kind, ErrorSum] = field(default_factory=dict)

    def add(self, kind: Kind, fmt: Format, error: PieceError, stored_bytes: int) -> None:
        """Count one tensor of `kind`."""
        sums = self.sums.setdefault(kind, ErrorSum(fmt))
        sums.tensors += 1
        sums.bytes += stored_bytes
        sums.add(error)

    def rows(self) -> tuple[KindError, ...]:
        """One row for each kind that occurred, in the order of `Kind`."""
        return tuple(_row(kind, self.sums[kind]) for kind in Kind if kind in self.sums)


def _row(kind: Kind, sums: ErrorSum) -> KindError:
    relative = math.sqrt(sums.squared_error / sums.squared_weight) if sums.squared_weight else 0.0
    return KindError(kind, sums.format, sums.tensors, sums.weights, sums.bytes, relative, sums.max_abs_error)
