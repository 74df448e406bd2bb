"""Model -> quantized tensors, one after the other; no more of the model is held than the method needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from colibri_build import __version__
from colibri_build.artifacts import F32, ByRows, Model, QuantizedModel, QuantizedTensor, TensorSpec
from colibri_build.errors import QuantizeError
from colibri_build.quantize.awq import LayerInput, LayerPlan, plan_layer
from colibri_build.quantize.exact import blas_threads_for
from colibri_build.quantize.float_forward import embed, layer_forward
from colibri_build.quantize.folded import FoldedWeights
from colibri_build.quantize.options import QuantizeOptions, calibration_digest, check_options
from colibri_build.quantize.pieces import Rows, piece_workers
from colibri_build.quantize.policy import formats_of
from colibri_build.quantize.records import Made, Record, error_of, layer_record, plan_of, tensor_record
from colibri_build.quantize.report import ErrorTable, QuantizeReport
from colibri_build.quantize.rtn import stored_bytes
from colibri_build.quantize.scale_search import ONE_BY_ONE
from colibri_build.quantize.takeover import Takeover, check_method, own_formats
from colibri_build.tensor_specs import tensor_specs

_SEARCHED_BY_ALL = 1 << 22  # weights of a layer's largest matrix up to which all threads search at once

OnProgress = Callable[[str, int, int], None]


def quantize_model(
    model: Model, options: QuantizeOptions, on_progress: OnProgress | None = None
) -> tuple[QuantizedModel, QuantizeReport]:
    """Quantize every tensor of `model` as `options` say, and keep them all in memory. See `Quantizer`."""
    quantizer = Quantizer(model, options, on_progress)
    done = {name: tensor for name, tensor, _ in quantizer.tensors() if tensor is not None}
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

    def tensors(self, earlier: Mapping[str, Record] | None = None) -> Iterator[Made]:
        """Everything that `earlier`, the records of an interrupted run by name, does not have; each as soon as it is there.

        rtn holds the codes of one tensor, and floats of pieces of it alone; awq the floats of one tensor, and those of a
        search (docs/quantization.md).
        """
        with blas_threads_for(self.model.config), piece_workers() as self.workers:
            if self.awq:
                yield from self._by_layer(earlier or {})
            else:
                for name in self.specs:
                    yield from self._unless_known(name, earlier or {}, self._rows_of)

    def _by_layer(self, earlier: Mapping[str, Record]) -> Iterator[Made]:
        """Layer after layer, as the calibration text passes through them."""
        sequences = [sequence for sequence in self.options.calibration_ids if len(sequence)]
        lengths = [len(sequence) for sequence in sequences]
        x = embed(self.model.config, self._load("embedding"), sequences)
        yield from self._unless_known("embedding", earlier, self._rows_of)
        for index in range(self.model.config.n_layers):
            x, plan = self._plan(index, x, lengths, earlier)
            if plan.weights:
                yield Made(f"layers.{index}", None, layer_record(plan))
            for name in self._names_of(index):
                yield from self._unless_known(name, earlier, partial(self._held, plan), plan)
        for name in ("final_norm", "final_norm_bias", "lm_head", "lm_head_bias"):
            if name in self.specs:
                yield from self._unless_known(name, earlier, self._rows_of)

    def _names_of(self, layer: int) -> list[str]:
        return [name for name in self.specs if name.startswith(f"layers.{layer}.")]

    def _plan(self, index: int, x: F32, lengths: list[int], earlier: Mapping[str, Record]) -> tuple[F32, LayerPlan]:
        """Search the scales of one layer; returns the residual stream behind it, and the layer as it is to be stored.

        A layer that is known as a whole is passed through without a search; its plan has no weights.
        """
        config, names = self.model.config, self._names_of(index)
        prefix = f"layers.{index}."
        short = [name.removeprefix(prefix) for name in names]
        layer = FoldedWeights(short, lambda name: self._own(prefix + name), prefix)
        if {f"layers.{index}", *names} <= earlier.keys():
            x, plan = layer_forward(config, index, layer, x, lengths)[0], plan_of(earlier[f"layers.{index}"])
        else:
            workers = self.workers if self._is_small(names) else ONE_BY_ONE
            x, plan = plan_layer(config, LayerInput(index, layer, x, lengths), self.formats, self.options, workers)
        self.plans.append(LayerPlan({}, {}, plan.gains, plan.fallbacks, plan.expert_tokens))
        self._step(f"layers.{index}: scales")
        return x, plan

    def _is_small(self, names: list[str]) -> bool:
        """Whether every thread may search with arrays of its own, each a dozen times as large as a matrix."""
        return max(self.specs[name].rows * self.specs[name].cols for name in names) <= _SEARCHED_BY_ALL

    def _load(self, name: str) -> F32:
        """The float32 values of a tensor, checked."""
        spec = self._known(name)
        values = np.asarray(self.model.tensors[name], np.float32)
        if values.shape != spec.shape:
            raise QuantizeError(f"{name} has shape {values.shape}, the configuration says {spec.shape}")
        _require_finite(name, values)
        return values

    def _own(self, name: str) -> F32:
        """As `_load`, in memory that nobody else uses."""
        values = self._load(name)
        return values if isinstance(self.model.tensors, ByRows) else values.copy()

    def _known(self, name: str) -> TensorSpec:
        if name not in self.model.tensors:
            raise QuantizeError(f"{name} is missing from {self.model.source}", hint="read the checkpoint again")
        return self.specs[name]

    def _rows_of(self, name: str) -> Rows:
        """The values of a tensor, run by run where it can be read so, checked."""
        spec = self._known(name)
        if len(spec.shape) < 2 or not isinstance(self.model.tensors, ByRows):
            whole = self._load(name).reshape(spec.rows, spec.cols)
            return lambda rows: whole[rows]
        load = self.model.tensors.rows_of(name)

        def checked(rows: slice) -> F32:
            values = load(rows)
            _require_finite(name, values, rows.start)
            return values

        return checked

    def _held(self, plan: LayerPlan, name: str) -> Rows:
        """The values of a tensor with its scales folded in."""
        whole = plan.weights[name.split(".", 2)[2]].reshape(self.specs[name].rows, self.specs[name].cols)
        return lambda rows: whole[rows]

    def _unless_known(
        self, name: str, earlier: Mapping[str, Record], rows_of: Callable[[str], Rows], plan: LayerPlan | None = None
    ) -> Iterator[Made]:
        """The tensor, unless an earlier run made it; counted in any case."""
        spec = self.specs[name]
        record, tensor = earlier.get(name), None
        if record is None:
            shrink = plan.shrink.get(name.split(".", 2)[2]) if plan else None
            tensor, record = self._quantized(spec, rows_of(name), shrink)
        fmt = self.formats[spec.kind]
        self.errors.add(spec.kind, fmt, error_of(record), stored_bytes(spec, fmt, self.group_size))
        self.takeover.count(spec.kind, record["taken"])
        self._step(name)
        if tensor is not None:
            yield Made(name, tensor, record)

    def _quantized(self, spec: TensorSpec, rows_of: Rows, shrink: F32 | None) -> tuple[QuantizedTensor, Record]:
        fmt = self.formats[spec.kind]
        own = self.takeover.tensor(spec, fmt)
        if isinstance(own, QuantizedTensor):
            return own, tensor_record(self.workers.compare(own, rows_of, self.group_size), True)
        tensor, error = self.workers.quantize(spec, rows_of, fmt, self.group_size, shrink)
        return tensor, tensor_record(error, own)

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


def _require_finite(name: str, values: F32, first_row: int = 0) -> None:
    """`first_row`: of the tensor, where `values` are some of its rows."""
    if np.all(np.isfinite(values)):
        return
    at = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
    where = [at[0] + first_row, *at[1:]]
    raise QuantizeError(f"{name} holds {values[at]} at {where}", hint="the checkpoint is damaged")
