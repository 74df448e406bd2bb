"""Model -> QuantizedModel, layer by layer; only one layer's float weights are held at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from colibri_build import __version__
from colibri_build.artifacts import F32, Format, Kind, Model, QuantizedModel, QuantizedTensor, TensorSpec
from colibri_build.errors import QuantizeError
from colibri_build.quantize.awq import LayerInput, LayerPlan, plan_layer
from colibri_build.quantize.exact import blas_threads_for
from colibri_build.quantize.float_forward import embed
from colibri_build.quantize.options import QuantizeOptions, calibration_digest, check_options
from colibri_build.quantize.policy import formats_of
from colibri_build.quantize.report import ErrorTable, QuantizeReport
from colibri_build.quantize.rtn import dequantize_tensor, quantize_tensor, stored_bytes
from colibri_build.tensor_specs import tensor_specs

OnProgress = Callable[[str, int, int], None]


def quantize_model(
    model: Model, options: QuantizeOptions, on_progress: OnProgress | None = None
) -> tuple[QuantizedModel, QuantizeReport]:
    """Quantize every tensor of `model` as `options` say.

    `on_progress(what, done, total)` is called after every step. Deterministic: the same model and options give the
    same bytes on every machine. Raises QuantizeError for options that cannot be carried out, for weights that are
    missing, misshapen, not finite or too large for their format.
    """
    check_options(options, model.config)
    formats = formats_of(model.config, options.bits, options.formats)
    with blas_threads_for(model.config):
        return _Run(model, options, formats, on_progress).run()


class _Run:
    """The state of one quantization: what is done, and the sums of its errors."""

    def __init__(
        self, model: Model, options: QuantizeOptions, formats: Mapping[Kind, Format], on_progress: OnProgress | None
    ) -> None:
        self.model, self.options, self.formats, self.on_progress = model, options, formats, on_progress
        self.specs = {spec.name: spec for spec in tensor_specs(model.config)}
        self.awq = options.method == "awq"
        self.steps_done = 0
        self.steps = len(self.specs) + (model.config.n_layers if self.awq else 0)
        self.done: dict[str, QuantizedTensor] = {}
        self.errors = ErrorTable()
        self.plans: list[LayerPlan] = []

    def run(self) -> tuple[QuantizedModel, QuantizeReport]:
        sequences = [sequence for sequence in self.options.calibration_ids if len(sequence)]
        lengths = [len(sequence) for sequence in sequences]
        embedding = self._load("embedding")
        x = (
            embed(self.model.config, embedding, sequences)
            if self.awq
            else np.zeros((0, self.model.config.dim), np.float32)
        )
        self._store("embedding", embedding)
        for index in range(self.model.config.n_layers):
            x = self._layer(index, x, lengths)
        for name in ("final_norm", "lm_head"):
            if name in self.specs:
                self._store(name, self._load(name))
        tensors = {name: self.done[name] for name in self.specs}
        return self._quantized(tensors), self._report()

    def _layer(self, index: int, x: F32, lengths: list[int]) -> F32:
        """Quantize one layer; returns the residual stream behind it (AWQ)."""
        config, prefix = self.model.config, f"layers.{index}."
        layer = {name.removeprefix(prefix): self._load(name) for name in self.specs if name.startswith(prefix)}
        shrink: Mapping[str, F32] = {}
        if self.awq:
            x, plan = plan_layer(config, LayerInput(index, layer, x, lengths), self.formats, self.options)
            layer, shrink = dict(plan.weights), plan.shrink
            self.plans.append(LayerPlan({}, {}, plan.gains, plan.fallbacks, plan.expert_tokens))
            self._step(f"layers.{index}: scales")
        for name, values in layer.items():
            self._store(prefix + name, values, shrink.get(name))
        return x

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

    def _store(self, name: str, values: F32, shrink: F32 | None = None) -> None:
        spec: TensorSpec = self.specs[name]
        tensor = quantize_tensor(spec, values, self.formats[spec.kind], self.options.group_size, shrink)
        self.done[name] = tensor
        stored = dequantize_tensor(tensor, self.options.group_size)
        self.errors.add(spec.kind, tensor.format, values, stored, stored_bytes(tensor, self.options.group_size))
        self._step(name)

    def _step(self, what: str) -> None:
        self.steps_done += 1
        if self.on_progress is not None:
            self.on_progress(what, self.steps_done, self.steps)

    def _quantized(self, tensors: dict[str, QuantizedTensor]) -> QuantizedModel:
        model, options = self.model, self.options
        return QuantizedModel(
            model.config, options.group_size, self.formats, tensors, model.tokenizer, self._provenance()
        )

    def _provenance(self) -> dict[str, Any]:
        options = self.options
        facts: dict[str, Any] = {
            "source": self.model.source,
            "source_digest": self.model.digest,
            "builder_version": __version__,
            "method": options.method,
            "bits": options.bits,
            "group_size": options.group_size,
        }
        if self.awq:
            facts["calibration_tokens"] = self._calibration_tokens()
            facts["calibration_sha256"] = calibration_digest(options.calibration_ids)
            facts["min_expert_tokens"] = options.expert_token_threshold
            facts["rtn_experts"] = [fallback.expert for plan in self.plans for fallback in plan.fallbacks]
        return facts

    def _calibration_tokens(self) -> int:
        return sum(len(sequence) for sequence in self.options.calibration_ids) if self.awq else 0

    def _report(self) -> QuantizeReport:
        return QuantizeReport(
            self.options.method,
            self.errors.rows(),
            self._calibration_tokens(),
            tuple(plan.expert_tokens for plan in self.plans),
            tuple(fallback for plan in self.plans for fallback in plan.fallbacks),
            tuple(gain for plan in self.plans for gain in plan.gains),
        )
