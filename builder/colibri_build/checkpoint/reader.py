"""Reads a Hugging Face checkpoint folder into a Model, or says why not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from colibri_build.artifacts import Model, ModelConfig
from colibri_build.checkpoint.config_keys import ConfigKeys, read_json_object
from colibri_build.checkpoint.families import FAMILIES, Family
from colibri_build.checkpoint.tensors import select_tensors
from colibri_build.checkpoint.tokenizer import read_tokenizer
from colibri_build.checkpoint.weight_files import INDEX_FILE, read_stored_tensors
from colibri_build.errors import CheckpointError

_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    INDEX_FILE,
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)


def read_checkpoint(folder: Path) -> Model:
    """Read and check everything but the values themselves, which are loaded on access.

    Every tensor is scanned once for NaN and infinities, so this reads the whole checkpoint. Raises CheckpointError
    (TokenizerError for the tokenizer), naming file, tensor or key, what was expected and what was found.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder", hint="name the folder that holds config.json")
    family, config = read_model_config(folder)
    files, found = read_stored_tensors(folder)
    tensors = select_tensors(found, config, family)
    tokenizer = read_tokenizer(folder, config.vocab_size)
    small = [folder / name for name in _SMALL_FILES if (folder / name).is_file()]
    name = os.fsencode(folder.resolve().name).decode("utf-8", "replace")
    return Model(config, tensors, tokenizer, name, digest_files([*small, *files]))


def read_model_config(folder: Path) -> tuple[Family, ModelConfig]:
    """config.json, with the end-of-sequence ids of generation_config.json where it names some, as `generate` does."""
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointError(f"{folder}: no config.json", hint="name a folder that transformers saved")
    values = read_json_object(path)
    model_type = values.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise CheckpointError(
            f'{path}: model_type "{model_type}" is not supported', hint=f"supported: {', '.join(sorted(FAMILIES))}"
        )
    family = FAMILIES[model_type]
    config = family.read_config(ConfigKeys(values, str(path)))
    config = _with_generation_ids(config, folder / "generation_config.json")
    _check_ids(config, path)
    return family, config


def _with_generation_ids(config: ModelConfig, path: Path) -> ModelConfig:
    """generation_config.json wins. Where it names no id, `generate` would never stop; config.json's are kept then."""
    if not path.is_file():
        return config
    ids = ConfigKeys(read_json_object(path), str(path)).ids("eos_token_id", None)
    return replace(config, eos_ids=ids) if ids else config


def _check_ids(config: ModelConfig, path: Path) -> None:
    if not config.eos_ids:
        raise CheckpointError(
            f'{path}: "eos_token_id" is null, so the model would never stop',
            hint="give the id of the token that ends a text",
        )
    for id in (*config.eos_ids, *(() if config.bos_id is None else (config.bos_id,))):
        if id >= config.vocab_size:
            raise CheckpointError(
                f"{path}: special token id {id} is outside the vocabulary of {config.vocab_size}",
                hint="correct bos_token_id or eos_token_id (generation_config.json has them too)",
            )


def digest_files(paths: Iterable[Path]) -> str:
    """SHA-256 over names, sizes and contents, in order of name."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
