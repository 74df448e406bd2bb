"""From what the user names to a model folder: a checkpoint is quantized, once, and an interrupted run gone on with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from colibri_build.artifacts import Model, ModelFolder
from colibri_build.build_folder import require_writable
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.checkpoint.tokenizer_encode import encode_text
from colibri_build.errors import ColibriError, PackError
from colibri_build.events import SILENT, Events
from colibri_build.files import read_text
from colibri_build.pack.partial import PartialFolder, Resumption, partial_folder
from colibri_build.pack.reader import read_model_folder
from colibri_build.pack.writer import FolderContent, require_replaceable
from colibri_build.quantize.engine import Quantizer
from colibri_build.quantize.options import QuantizeOptions, calibration_from_text
from colibri_build.quantize.report import QuantizeReport
from colibri_build.quantize.takeover import default_group_size
from colibri_build.requests import QuantizeChoices
from colibri_build.resources import cache_folder, code_digest


def is_model_folder(path: Path) -> bool:
    """Whether a folder claims to be ours (and not a checkpoint)."""
    try:
        config = json.loads((path / "config.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == "colibri-model"


def quantize_checkpoint(
    checkpoint: Path, out: Path, choices: QuantizeChoices, events: Events = SILENT
) -> tuple[ModelFolder, QuantizeReport]:
    """checkpoint -> Model -> QuantizedModel -> model folder. Goes on with what an interrupted run left beside `out`."""
    require_replaceable(out.resolve())
    require_writable(out.parent)
    events.stage(f"read {checkpoint}")
    model = read_checkpoint(checkpoint)
    quantizer = _quantizer(model, choices, events)
    with _partial(model, quantizer, out, choices, events, wait=False) as partial:
        return _quantized(quantizer, partial), quantizer.report()


def open_model(path: Path, choices: QuantizeChoices, events: Events = SILENT) -> ModelFolder:
    """A model folder as it is; a checkpoint folder quantized, cached by the content of everything it depends on."""
    if is_model_folder(path):
        if choices != QuantizeChoices():
            raise ColibriError(
                f"{path} is quantized already: --method, --bits, --group-size, --calibration, --format and --restart "
                "change nothing",
                hint="leave them out, or name the checkpoint instead",
            )
        events.stage(f"check {path}")
        return read_model_folder(path)
    events.stage(f"read {path}")
    model = read_checkpoint(path)
    cached = cache_folder() / "models" / f"{model.source}-{_quantize_key(model, choices)[:16]}"
    folder = _kept(cached) or _quantized_into_cache(model, cached, choices, events)
    for line in folder.provenance.get("taken_over", ()):
        events.note(line)
    return folder


def _kept(cached: Path) -> ModelFolder | None:
    """The folder of an earlier run; None where there is none, or it was damaged since."""
    if is_model_folder(cached):
        with suppress(PackError):
            return read_model_folder(cached)
    return None


def _quantized_into_cache(model: Model, cached: Path, choices: QuantizeChoices, events: Events) -> ModelFolder:
    """Quantize, unless another build did it while this one waited for it."""
    quantizer = _quantizer(model, choices, events)
    with _partial(model, quantizer, cached, choices, events, wait=True) as partial:
        return _kept(cached) or _quantized(quantizer, partial)


def _quantizer(model: Model, choices: QuantizeChoices, events: Events) -> Quantizer:
    group_size = choices.group_size or default_group_size(model)
    events.stage(f"quantize ({choices.method}, {choices.bits} bits, groups of {group_size})")
    options = QuantizeOptions(
        method=choices.method,
        bits=choices.bits,
        group_size=group_size,
        formats=choices.formats,
        calibration_ids=_calibration_ids(model, choices.calibration),
    )
    return Quantizer(model, options, events.progress)


@contextmanager
def _partial(
    model: Model, quantizer: Quantizer, out: Path, choices: QuantizeChoices, events: Events, wait: bool
) -> Iterator[PartialFolder]:
    """The folder to quantize into, and words about what an interrupted run left, or this one leaves, of it.

    `wait`: for another run that is writing it, which otherwise is an error.
    """
    content = FolderContent(model.config, quantizer.group_size, quantizer.formats, model.tokenizer, model.chat)

    def on_wait(path: Path) -> None:
        events.note(f"another run is quantizing this model ({path}); waiting for it")

    resumption = Resumption(_identity(model, choices), choices.restart, on_wait if wait else None)
    total = len(quantizer.specs)
    with partial_folder(content, out, resumption) as partial:
        if partial.why_anew:
            events.note(f"starting anew: {partial.path} {partial.why_anew}")
        if partial.n_tensors:
            events.note(f"resuming: {partial.n_tensors} of {total} tensors are done ({partial.path})")
        try:
            yield partial
        except BaseException as error:
            if partial.is_kept_after(error):
                events.note(
                    f"{partial.n_tensors} of {total} tensors are kept in {partial.path}: the same command goes on there"
                )
            raise


def _quantized(quantizer: Quantizer, partial: PartialFolder) -> ModelFolder:
    for made in quantizer.tensors(dict(partial.records)):
        partial.put(*made)
    return partial.writer.finish(quantizer.provenance())


def _calibration_ids(model: Model, calibration: Path | None) -> list[list[int]]:
    """Token ids of each record of a calibration file, an end token behind each; blank lines part the records."""
    if calibration is None:
        return []
    text = read_text(calibration, "calibration text")
    end = model.config.eos_ids[0]
    return calibration_from_text(
        text, lambda part: [*encode_text(model.tokenizer, part), end], model.config.max_context
    )


def _identity(model: Model, choices: QuantizeChoices) -> dict[str, str]:
    """Everything that the bytes of a model folder depend on, by name."""
    return {
        "this program": code_digest(),
        "the library gguf": version("gguf"),  # which dequantizes
        "the checkpoint": model.digest,
        "--method": choices.method,
        "--bits": str(choices.bits),
        "--group-size": str(choices.group_size),
        "--format": json.dumps(dict(choices.formats), sort_keys=True),
        "the calibration text": _calibration_digest(choices.calibration),
    }


def _quantize_key(model: Model, choices: QuantizeChoices) -> str:
    return hashlib.sha256("\n".join(_identity(model, choices).values()).encode()).hexdigest()


def _calibration_digest(path: Path | None) -> str:
    if path is None:
        return ""
    if path.exists() and not path.is_file():
        raise ColibriError(f"{path}: the calibration text is no regular file", hint="save it to a file first")
    return hashlib.sha256(read_text(path, "calibration text").encode()).hexdigest()
