"""How far the answers of a quantized model are from those of the original, position by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colibri_build.artifacts import F32, Model, QuantizedModel
from colibri_build.quantize.float_forward import forward
from colibri_build.quantize.rtn import dequantize_tensor


@dataclass(frozen=True)
class Agreement:
    """Teacher-forced comparison over `tokens` positions. KL in nats."""

    tokens: int
    mean_kl: float  # a few hard positions dominate it; the median is steadier
    median_kl: float
    p99_kl: float
    max_kl: float
    top1_equal: int


def _log_softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)), np.float64)


def teacher_forced_kl(wanted: NDArray[Any], got: NDArray[Any]) -> NDArray[np.float64]:
    """KL(wanted || got) in nats at each position; both are logits [n, vocab]."""
    p, q = _log_softmax(wanted), _log_softmax(got)
    return np.asarray((np.exp(p) * (p - q)).sum(axis=-1), np.float64)


def compare_logits(wanted: NDArray[Any], got: NDArray[Any]) -> Agreement:
    """KL and top-1 agreement (ties: lowest index) of two logits arrays [n, vocab]."""
    kl = teacher_forced_kl(wanted, got)
    equal = int(np.sum(wanted.argmax(axis=-1) == got.argmax(axis=-1)))
    return Agreement(
        tokens=len(kl),
        mean_kl=float(kl.mean()),
        median_kl=float(np.median(kl)),
        p99_kl=float(np.quantile(kl, 0.99)),
        max_kl=float(kl.max()),
        top1_equal=equal,
    )


def dequantized(quantized: QuantizedModel) -> dict[str, F32]:
    """The float32 weights that a quantized model stands for, by tensor name."""
    return {name: dequantize_tensor(tensor, quantized.group_size) for name, tensor in quantized.tensors.items()}


def compare_models(model: Model, quantized: QuantizedModel, sequences: Sequence[Sequence[int]]) -> Agreement:
    """Agreement over all positions of `sequences`, activations in float: the effect of the weights alone."""
    wanted = forward(model.config, model.tensors, sequences)
    return compare_logits(wanted, forward(quantized.config, dequantized(quantized), sequences))
