"""A Hugging Face checkpoint folder as a Source."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from colibri_build.checkpoint.chat import CHAT_FILES, read_chat
from colibri_build.checkpoint.config_keys import read_json_object
from colibri_build.checkpoint.source import Source, model_name
from colibri_build.checkpoint.tokenizer import read_tokenizer_file
from colibri_build.checkpoint.weight_files import INDEX_FILE, find_weight_files, read_stored_tensors
from colibri_build.errors import CheckpointError

_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    INDEX_FILE,
    "tokenizer.json",
    *CHAT_FILES,
    "special_tokens_map.json",
    "added_tokens.json",
)


def open_folder(folder: Path) -> Source:
    """Raises CheckpointError for what is no checkpoint folder, or for a damaged config.json."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder", hint="name the folder that holds config.json")
    path, generation = folder / "config.json", folder / "generation_config.json"
    if not path.is_file():
        raise CheckpointError(f"{folder}: no config.json", hint="name a folder that transformers saved")
    return Source(
        name=model_name(folder),
        where=str(path),
        values=read_json_object(path),
        generation=read_json_object(generation) if generation.is_file() else {},
        read_tensors=cache(partial(read_stored_tensors, folder)),
        read_tokenizer_json=partial(read_tokenizer_file, folder),
        files=partial(_files, folder),
        read_chat=partial(read_chat, folder),
    )


def _files(folder: Path) -> tuple[Path, ...]:
    small = [folder / name for name in _SMALL_FILES if (folder / name).is_file()]
    return (*small, *find_weight_files(folder)[0])
