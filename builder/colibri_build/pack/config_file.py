"""config.json of a model folder: exact bytes out, every key checked on the way in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from colibri_build.artifacts import FileRecord, Format, Kind, ModelConfig
from colibri_build.errors import PackError
from colibri_build.files import unique_keys
from colibri_build.layout import ALLOWED_FORMATS, GROUP_SIZES
from colibri_build.pack.model_object import ModelObjectError, model_object, read_model_object
from colibri_build.tensor_specs import kinds_of

CONFIG_FILE = "config.json"
FORMAT_NAME, FORMAT_VERSION = "colibri-model", 1
_KEYS = ("format", "version", "model", "group_size", "formats", "files", "provenance")
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
        "model": model_object(config),
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
        try:
            return read_model_object(value)
        except ModelObjectError as error:
            raise self._error(str(error)) from None

    def _formats(self, value: dict[str, Any]) -> dict[Kind, Format]:
        kinds = kinds_of(self.config)
        self._check_keys('"formats"', value, kinds)
        for kind in kinds:
            allowed = ALLOWED_FORMATS[kind]
            if value[kind] not in allowed:
                raise self._error(f'"formats.{kind}" is {json.dumps(value[kind])}, not {" or ".join(allowed)}')
        if self.config.tied_embeddings and value[Kind.LM_HEAD] != value[Kind.EMBEDDING]:
            raise self._error('"formats.lm_head" differs from "formats.embedding", but the two are tied')
        return {kind: Format(value[kind]) for kind in kinds}

    def _files(self, value: dict[str, Any]) -> dict[str, FileRecord]:
        records = {}
        for name, entry in value.items():
            self._check_keys(f'"files.{name}"', self._object(f"files.{name}", entry), ("bytes", "sha256"))
            digest = entry["sha256"]
            hexadecimal = isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef")
            if not _is_size(entry["bytes"]) or not hexadecimal:
                raise self._error(f'"files.{name}" holds no size and SHA-256')
            records[name] = FileRecord(name, entry["bytes"], digest)
        self._check_expert_count(sum(name.startswith("expert_") for name in records))
        return records

    def _check_expert_count(self, found: int) -> None:
        """Before anything is computed for each expert: the counts may be absurd."""
        layers, experts = self.config.n_expert_layers, self.config.n_experts
        if found != layers * experts:
            raise self._error(
                f'"files" names {found} experts, the model has {layers} layers of {experts} = {layers * experts}'
            )


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
