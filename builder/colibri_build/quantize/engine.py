"""Model -> quantized tensors, one after the other; no more of the model is held than the method needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from colibri_build import __version__
from colibri_build.artifacts import F32, Model, QuantizedModel, QuantizedTensor
from colibri_build.errors import QuantizeError
from colibri_build.quantize.awq import LayerInput, LayerPlan, plan_layer
from colibri_build.quantize.exact import blas_threads_for
from colibri_build.quantize.float_forward import embed
from colibri_build.quantize.options import QuantizeOptions, calibration_digest, check_options
from colibri_build.quantize.pieces import piece_workers
from colibri_build.quantize.policy import formats_of
from colibri_build.quantize.report import ErrorTable, QuantizeReport
from colibri_build.quantize.rtn import stored_bytes
from colibri_build.quantize.takeover import Takeover, check_method, own_formats
from colibri_build.tensor_specs import tensor_specs

OnProgress = Callable[[str, int, int], None]


def quantize_model(
    model: Model, options: QuantizeOptions, on_progress: OnProgress | None = None
) -> tuple[QuantizedModel, QuantizeReport]:
    """Quantize every tensor of `model` as `options` say, and keep them all in memory. See `Quantizer`."""
    quantizer = Quantizer(model, options, on_progress)
    done = dict(quantizer.tensors())
    tensors = {spec.name: done[spec.name] for spec in tensor_specs(model.config)}
    quantized = QuantizedModel(
        model.config, quantizer.group_size, quantizer.formats, tensors, model.tokenizer, quantizer.provenance()
    )
    return quantized, quantizer.report()


class Quantizer:
    """One quantization: what it will make, then the tensors one after the other, then what it did.

    `on_progress(what, done, total)` is called after every step. Deterministic: the same model and options give the
    same bytes on every machine. Raises QuantizeError for options that cannot be carried out, and `tensors` for weights
    that are missing, misshapen, not finite or too large for their format.
    """

    def __init__(self, model: Model, options: QuantizeOptions, on_progress: OnProgress | None = None) -> None:
        check_options(options, model.config)
        self.model, self.options, self.on_progress = model, options, on_progress
        self.group_size = options.group_size
        own = own_formats(model, options.bits, self.group_size)
        self.formats = formats_of(model.config, options.bits, own | dict(options.formats))
        check_method(model, options.method, self.formats, self.group_size)
        self.specs = {spec.name: spec for spec in tensor_specs(model.config)}
        self.awq = options.method == "awq"
        self.steps_done = 0
        self.steps = len(self.specs) + (model.config.n_layers if self.awq else 0)
        self.errors = ErrorTable()
        self.takeover = Takeover(model.packed, self.group_size)
        self.plans: list[LayerPlan] = []

    def tensors(self) -> Iterator[tuple[str, QuantizedTensor]]:
        """Every tensor by name, each as soon as it is there: rtn holds the floats of one, awq those of one layer."""
        with blas_threads_for(self.model.config), piece_workers() as self.workers:
            if self.awq:
                yield from self._by_layer()
            else:
                for name in self.specs:
                    yield name, self._quantized(name, self._load(name))

    def _by_layer(self) -> Iterator[tuple[str, QuantizedTensor]]:
        """Layer after layer, as the calibration text passes through them."""
        sequences = [sequence for sequence in self.options.calibration_ids if len(sequence)]
        lengths = [len(sequence) for sequence in sequences]
        embedding = self._load("embedding")
        x = embed(self.model.config, embedding, sequences)
        yield "embedding", self._quantized("embedding", embedding)
        for index in range(self.model.config.n_layers):
            prefix = f"layers.{index}."
            x, plan = self._plan(index, x, lengths)
            for name, values in plan.weights.items():
                yield prefix + name, self._quantized(prefix + name, values, plan.shrink.get(name))
        for name in ("final_norm", "final_norm_bias", "lm_head", "lm_head_bias"):
            if name in self.specs:
                yield name, self._quantized(name, self._load(name))

    def _plan(self, index: int, x: F32, lengths: list[int]) -> tuple[F32, LayerPlan]:
        """Search the scales of one layer; returns the residual stream behind it, and the layer as it is to be stored."""
        config, prefix = self.model.config, f"layers.{index}."
        layer = {name.removeprefix(prefix): self._load(name) for name in self.specs if name.startswith(prefix)}
        x, plan = plan_layer(config, LayerInput(index, layer, x, lengths), self.formats, self.options)
        self.plans.append(LayerPlan({}, {}, plan.gains, plan.fallbacks, plan.expert_tokens))
        self._step(f"layers.{index}: scales")
        return x, plan

    def _load(self, name: str) -> F32:
        """The float32 values of a tensor, checked."""
        spec = self.specs[name]
        if name not in self.model.tensors:
            raise QuantizeError(f"{name} is missing from {self.model.source}", hint="read the checkpoint again")
        values = np.asarray(self.model.tensors[name], np.float32)
        if values.shape != spec.shape:
            raise QuantizeError(f"{name} has shape {values.shape}, the configuration says {spec.shape}")
        if not np.all(np.isfinite(values)):
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise QuantizeError(f"{name} holds {values[where]} at {list(where)}", hint="the checkpoint is damaged")
        return values

    def _quantized(self, name: str, values: F32, shrink: F32 | None = None) -> QuantizedTensor:
        spec = self.specs[name]
        own = self.takeover.tensor(spec, self.formats[spec.kind])
        if own is not None:
            tensor, errors = own, self.workers.compare(own, values, self.group_size)
        else:
            tensor, errors = self.workers.quantize(spec, values, self.formats[spec.kind], self.group_size, shrink)
        self.errors.add(spec.kind, tensor.format, errors, stored_bytes(tensor, self.group_size))
        self._step(name)
        return tensor

    def _step(self, what: str) -> None:
        self.steps_done += 1
        if self.on_progress is not None:
            self.on_progress(what, self.steps_done, self.steps)

    def provenance(self) -> dict[str, Any]:
        """Where the tensors come from, once they are all there."""
        options = self.options
        facts: dict[str, Any] = {
            "source": self.model.source,
            "source_digest": self.model.digest,
            "builder_version": __version__,
            "method": options.method,
            "bits": options.bits,
            "group_size": options.group_size,
        }
        if self.model.packed:
            facts["taken_over"] = [row.line() for row in self.takeover.rows()]
        if self.awq:
            facts["calibration_tokens"] = self._calibration_tokens()
            facts["calibration_sha256"] = calibration_digest(options.calibration_ids)
            facts["min_expert_tokens"] = options.expert_token_threshold
            facts["rtn_experts"] = [fallback.expert for plan in self.plans for fallback in plan.fallbacks]
        return facts

    def _calibration_tokens(self) -> int:
        return sum(len(sequence) for sequence in self.options.calibration_ids) if self.awq else 0

    def report(self) -> QuantizeReport:
        """What was done, once the tensors are all there."""
        return QuantizeReport(
            self.options.method,
            self.errors.rows(),
            self._calibration_tokens(),
            tuple(plan.expert_tokens for plan in self.plans),
            tuple(fallback for plan in self.plans for fallback in plan.fallbacks),
            tuple(gain for plan in self.plans for gain in plan.gains),
            self.takeover.rows(),
        )
