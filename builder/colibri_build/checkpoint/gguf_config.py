"""The metadata of a GGUF file as config.json, so that the families' readers judge it like any other.

A key that is neither translated nor known to be without effect is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.gguf_architectures import ARCHITECTURES, Architecture
from colibri_build.checkpoint.gguf_metadata import Metadata
from colibri_build.errors import CheckpointError

# Namespaces that tell where a file comes from; a key of another one may be an extension that changes the mathematics.
_BENIGN = ("general.", "split.", "quantize.imatrix.", "mradermacher.")
_TOKENIZER = "tokenizer."


def read_config(metadata: Mapping[str, Any], facts: Mapping[str, Any], where: str) -> dict[str, Any]:
    """config.json's keys. `facts`: what the tensors tell. Raises CheckpointError."""
    kind = metadata.get("general.type", "model")
    if kind != "model":
        raise CheckpointError(f'{where}: holds a "{kind}", no model', hint="take the file with the model's weights")
    architecture = architecture_of(metadata, where)
    own = {key: value for key, value in metadata.items() if not key.startswith((*_BENIGN, _TOKENIZER))}
    keys = Metadata(ConfigKeys(own, where), architecture.name)
    values = architecture.read(keys, facts)
    keys.finish()
    return {"model_type": values.pop("model_type"), **values, **_special_ids(metadata)}


def architecture_of(metadata: Mapping[str, Any], where: str) -> Architecture:
    """Raises CheckpointError for one that is not supported."""
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise CheckpointError(
            f'{where}: "general.architecture" = {ascii(name)[:60]} is not supported',
            hint=f"supported: {', '.join(sorted(ARCHITECTURES))}",
        )
    return ARCHITECTURES[name]


def _special_ids(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A text ends at the end of sequence, and at the end of a turn where the file names one."""
    ids = [metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")]
    found = [id for id in ids if id is not None]
    return {"bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"), "eos_token_id": found or None}
