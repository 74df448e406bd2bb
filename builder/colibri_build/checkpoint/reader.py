"""Reads a checkpoint into a Model, or says why not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

from colibri_build.artifacts import Model, ModelConfig
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families import FAMILIES, Family
from colibri_build.checkpoint.folder import open_folder
from colibri_build.checkpoint.gguf_source import is_gguf, open_gguf
from colibri_build.checkpoint.quantization_config import read_quantization
from colibri_build.checkpoint.quantization_parts import join_parts
from colibri_build.checkpoint.source import Source
from colibri_build.checkpoint.tensors import select_tensors
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.errors import CheckpointError


def read_checkpoint(path: Path) -> Model:
    """Read and check everything but the values themselves, which are loaded on access.

    Every tensor is scanned once for NaN and infinities, so this reads the whole checkpoint. Raises CheckpointError
    (TokenizerError for the tokenizer), naming file, tensor or key, what was expected and what was found.
    """
    source = open_gguf(path) if is_gguf(path) else open_folder(path)
    family, config = read_model_config(source)
    quantization = read_quantization(source.values, source.where, family.quant_methods)
    found = join_parts(source.read_tensors(), quantization)
    with _digest_beside(source.files()) as digest:
        tensors = select_tensors(family.arrange(found), config, family)
        tokenizer = read_tokenizer_bytes(source.read_tokenizer_json(), config.vocab_size)
        chat = source.read_chat()
        return Model(config, tensors, tokenizer, source.name, digest.result(), tensors.packed(), chat)


def read_model_config(source: Source) -> tuple[Family, ModelConfig]:
    """config.json, with the end-of-sequence ids of generation_config.json where it names some, as `generate` does."""
    model_type = source.values.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise CheckpointError(
            f'{source.where}: model_type "{model_type}" is not supported',
            hint=f"supported: {', '.join(sorted(FAMILIES))}",
        )
    family = FAMILIES[model_type]
    config = family.read_config(ConfigKeys(source.values, source.where))
    config = _with_generation_ids(config, source)
    _check_ids(config, source.where)
    return family, config


def _with_generation_ids(config: ModelConfig, source: Source) -> ModelConfig:
    """generation_config.json wins. Where it names no id, `generate` would never stop; config.json's are kept then."""
    where = str(Path(source.where).with_name("generation_config.json"))
    ids = ConfigKeys(source.generation, where).ids("eos_token_id", None)
    return replace(config, eos_ids=ids) if ids else config


def _check_ids(config: ModelConfig, where: str) -> None:
    if not config.eos_ids:
        raise CheckpointError(
            f'{where}: "eos_token_id" is null, so the model would never stop',
            hint="give the id of the token that ends a text",
        )
    for id in (*config.eos_ids, *(() if config.bos_id is None else (config.bos_id,))):
        if id >= config.vocab_size:
            raise CheckpointError(
                f"{where}: special token id {id} is outside the vocabulary of {config.vocab_size}",
                hint="correct bos_token_id or eos_token_id (generation_config.json has them too)",
            )


@contextmanager
def _digest_beside(paths: Iterable[Path]) -> Iterator[Future[str]]:
    """Compute `digest_files` while the caller does something else; an error of the caller ends it."""
    is_needless = Event()
    with ThreadPoolExecutor(1) as executor:
        try:
            yield executor.submit(digest_files, tuple(paths), is_needless)
        except BaseException:
            is_needless.set()
            raise


def digest_files(paths: Iterable[Path], is_needless: Event | None = None) -> str:
    """SHA-256 over names, sizes and contents, in order of name. Gives up once `is_needless` is set."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(os.fsencode(path.name) + f"\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while (block := file.read(1 << 20)) and not (is_needless and is_needless.is_set()):
                digest.update(block)
    return digest.hexdigest()
