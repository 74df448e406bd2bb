"""config.json of a model folder: exact bytes out, every key checked on the way in."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from colibri_build.artifacts import FileRecord, Format, Kind, ModelConfig
from colibri_build.errors import PackError
from colibri_build.files import unique_keys
from colibri_build.layout import ALLOWED_FORMATS, GROUP_SIZES

CONFIG_FILE = "config.json"
FORMAT_NAME, FORMAT_VERSION = "colibri-model", 1
_KEYS = ("format", "version", "model", "group_size", "formats", "files", "provenance")
_SIZES = ("n_layers", "dim", "hidden_dim", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "n_experts", "top_k")
_LARGEST = 2**31 - 1
_REMAKE = "make the model folder again with colibri-quantize"


def config_bytes(
    config: ModelConfig,
    group_size: int,
    formats: Mapping[Kind, Format],
    files: Mapping[str, FileRecord],
    provenance: Mapping[str, Any],
) -> bytes:
    """The file's bytes: a function of the values alone. Raises PackError for provenance that is no JSON."""
    value = {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "model": asdict(config),
        "group_size": group_size,
        "formats": {str(kind): str(format) for kind, format in formats.items()},
        "files": {name: {"bytes": record.bytes, "sha256": record.sha256} for name, record in files.items()},
        "provenance": dict(provenance),
    }
    try:
        text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode("utf-8")
    except (TypeError, ValueError) as error:
        raise PackError(f"provenance cannot be written as JSON ({error})") from error


class ConfigFile:
    """A config.json that was read: typed values, all checks done. `where` is the path for messages."""

    def __init__(self, data: bytes, where: str) -> None:
        self._where = where
        value = self._parse(data)
        self._check_keys("config.json", value, _KEYS)
        self.group_size = self._group_size(value["group_size"])
        self.config = self._model(self._object("model", value["model"]))
        self.formats = self._formats(self._object("formats", value["formats"]))
        self.files = self._files(self._object("files", value["files"]))
        self.provenance = self._object("provenance", value["provenance"])

    def _parse(self, data: bytes) -> dict[str, Any]:
        try:
            value = json.loads(data.decode("utf-8"), object_pairs_hook=unique_keys)
        except (ValueError, RecursionError) as error:
            raise self._error(f"no valid JSON ({error})") from error
        if not isinstance(value, dict) or value.get("format") != FORMAT_NAME:
            raise PackError(
                f'{self._where}: no model folder ("format" is not "{FORMAT_NAME}")',
                hint="name a folder that colibri-quantize made",
            )
        version = value.get("version")
        if version != FORMAT_VERSION or isinstance(version, bool):
            raise self._error(f"version {json.dumps(version)}, this reader knows version {FORMAT_VERSION}")
        return value

    def _error(self, what: str, hint: str = _REMAKE) -> PackError:
        return PackError(f"{self._where}: {what}", hint=hint)

    def _object(self, name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._error(f'"{name}" is no object')
        return value

    def _check_keys(self, where: str, value: Mapping[str, Any], expected: tuple[str, ...]) -> None:
        missing, unknown = sorted(set(expected) - set(value)), sorted(set(value) - set(expected))
        if missing or unknown:
            parts = [f"missing {', '.join(missing)}"] if missing else []
            parts += [f"unknown {', '.join(unknown)}"] if unknown else []
            raise self._error(f"keys of {where}: {'; '.join(parts)}")

    def _group_size(self, value: Any) -> int:
        if isinstance(value, bool) or value not in GROUP_SIZES:
            raise self._error(f'"group_size" is {json.dumps(value)}, not one of {", ".join(map(str, GROUP_SIZES))}')
        return int(value)

    def _model(self, value: dict[str, Any]) -> ModelConfig:
        self._check_keys('"model"', value, tuple(field.name for field in fields(ModelConfig)))
        for name in (*_SIZES, "max_context"):
            self._check(name, value[name], "an integer above 0", _is_integer(value[name], 1, _LARGEST))
        self._check("sliding_window", value["sliding_window"], "0 or more", _is_integer(value["sliding_window"]))
        for name in ("norm_topk", "tied_embeddings"):
            self._check(name, value[name], "true or false", isinstance(value[name], bool))
        self._check("rms_eps", value["rms_eps"], "a finite number above 0", _is_positive(value["rms_eps"]))
        theta = value["rope_theta"]
        self._check("rope_theta", theta, "a finite number, 1 or more", _is_positive(theta) and theta >= 1)
        self._check("family", value["family"], "a name", isinstance(value["family"], str))
        self._check_ids(value)
        config = ModelConfig(**{**value, "eos_ids": tuple(value["eos_ids"])})
        self._check("top_k", config.top_k, f"1..n_experts = {config.n_experts}", config.top_k <= config.n_experts)
        divisible = config.n_heads % config.n_kv_heads == 0
        self._check("n_kv_heads", config.n_kv_heads, f"a divisor of n_heads = {config.n_heads}", divisible)
        self._check("head_dim", config.head_dim, "an even number", config.head_dim % 2 == 0)
        return config

    def _check_ids(self, value: Mapping[str, Any]) -> None:
        high, eos, bos = value["vocab_size"] - 1, value["eos_ids"], value["bos_id"]
        ok = isinstance(eos, list) and bool(eos) and all(_is_integer(id, 0, high) for id in eos)
        self._check("eos_ids", eos, f"a list of ids 0..{high}", ok and len(set(eos)) == len(eos))
        self._check("bos_id", bos, f"null or an id 0..{high}", bos is None or _is_integer(bos, 0, high))

    def _check(self, name: str, value: Any, expected: str, ok: bool) -> None:
        if not ok:
            raise self._error(f'"model.{name}" is {json.dumps(value)}, not {expected}')

    def _formats(self, value: dict[str, Any]) -> dict[Kind, Format]:
        self._check_keys('"formats"', value, tuple(str(kind) for kind in Kind))
        for kind, allowed in ALLOWED_FORMATS.items():
            if value[kind] not in allowed:
                raise self._error(f'"formats.{kind}" is {json.dumps(value[kind])}, not {" or ".join(allowed)}')
        if self.config.tied_embeddings and value[Kind.LM_HEAD] != value[Kind.EMBEDDING]:
            raise self._error('"formats.lm_head" differs from "formats.embedding", but the two are tied')
        return {kind: Format(value[kind]) for kind in Kind}

    def _files(self, value: dict[str, Any]) -> dict[str, FileRecord]:
        records = {}
        for name, entry in value.items():
            self._check_keys(f'"files.{name}"', self._object(f"files.{name}", entry), ("bytes", "sha256"))
            digest = entry["sha256"]
            hexadecimal = isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef")
            if not _is_integer(entry["bytes"], 0, 2**63 - 1) or not hexadecimal:
                raise self._error(f'"files.{name}" holds no size and SHA-256')
            records[name] = FileRecord(name, entry["bytes"], digest)
        self._check_expert_count(sum(name.startswith("expert_") for name in records))
        return records

    def _check_expert_count(self, found: int) -> None:
        """Before anything is computed for each expert: the counts may be absurd."""
        layers, experts = self.config.n_layers, self.config.n_experts
        if found != layers * experts:
            raise self._error(
                f'"files" names {found} experts, the model has {layers} layers of {experts} = {layers * experts}'
            )


def _is_integer(value: Any, low: int = 0, high: int = _LARGEST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max
