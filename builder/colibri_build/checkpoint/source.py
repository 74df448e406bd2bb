"""What the readers of the file formats agree on: everything a checkpoint says, before any of it is believed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `model_name` does without NumPy
    from colibri_build.artifacts import ChatTemplate
    from colibri_build.checkpoint.stored import StoredTensor

GGUF_SUFFIX = ".gguf"
GGUF_SHARD = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.gguf", re.DOTALL)  # model, number from 1, count


def model_name(path: Path) -> str:
    """What the model in a folder or file is called: all shards of a GGUF file alike, and a link by its own name.

    (Caches of downloads hold links to files that are called by their hashes.)
    """
    if path.is_dir():
        name = path.resolve().name
    else:
        shard = GGUF_SHARD.fullmatch(path.name)
        name = shard[1] if shard else path.name.removesuffix(GGUF_SUFFIX)
    return os.fsencode(name).decode("utf-8", "replace")


@dataclass(frozen=True)
class Source:
    """A checkpoint in the words of transformers, whatever its files are.

    What takes time or may fail is read when it is called for, so that the configuration is judged first.
    """

    name: str  # of the folder or file, without its path
    where: str  # names the configuration in messages
    values: Mapping[str, Any]  # config.json
    generation: Mapping[str, Any]  # generation_config.json; {} where there is none
    read_tensors: Callable[[], Mapping[str, StoredTensor]]  # by published name
    read_tokenizer_json: Callable[[], bytes]
    files: Callable[[], tuple[Path, ...]]  # everything that the digest is over
    read_chat: Callable[[], ChatTemplate | None] = lambda: None
