"""`quantization_config` of config.json: which quantized formats are read, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from colibri_build.checkpoint.awq import read_awq
from colibri_build.checkpoint.compressed import read_compressed
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.gptq import read_gptq
from colibri_build.checkpoint.quantization_parts import Quantization
from colibri_build.errors import CheckpointError

QUANTIZATION_KEY = "quantization_config"
_METHODS: Mapping[str, Callable[[ConfigKeys], Quantization]] = {
    "awq": read_awq,
    "gptq": read_gptq,
    "compressed-tensors": read_compressed,
}


def read_quantization(values: Mapping[str, Any], where: str, own: Collection[str] = ()) -> Quantization | None:
    """How the checkpoint of this config.json is packed. Raises CheckpointError, naming the key.

    None: not at all, or by a method of the family's `own`, whose tensors the family arranges.
    """
    section = values.get(QUANTIZATION_KEY)
    method = section.get("quant_method") if isinstance(section, dict) else section
    if section is None or method in own:
        return None
    if not isinstance(section, dict) or not isinstance(method, str) or method not in _METHODS:
        raise CheckpointError(
            f'{where}: "{QUANTIZATION_KEY}" (quant_method "{method}") is not supported',
            hint=f"supported: {', '.join(sorted({*_METHODS, *own}))}; "
            "or use the checkpoint that it was quantized from (F32, F16 or BF16)",
        )
    keys = ConfigKeys(section, f"{where}: {QUANTIZATION_KEY}")
    keys.take("quant_method")
    return _METHODS[method](keys)
