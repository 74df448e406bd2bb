"""What the readers of the file formats agree on: everything a checkpoint says, before any of it is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri_build.artifacts import ChatTemplate
from colibri_build.checkpoint.stored import StoredTensor


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
