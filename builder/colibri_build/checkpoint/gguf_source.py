"""A GGUF file, or the shards of one, as a Source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from gguf.constants import GGMLQuantizationType

from colibri_build.checkpoint.families import FAMILIES
from colibri_build.checkpoint.gguf_config import architecture_of, read_config
from colibri_build.checkpoint.gguf_header import DOWNLOAD_AGAIN, MAGIC, GgufEntry, GgufHeader, read_header
from colibri_build.checkpoint.gguf_names import HEAD, ROPE_FACTORS, Layout, published_tensors
from colibri_build.checkpoint.gguf_tensor import GgufTensor
from colibri_build.checkpoint.gguf_tokenizer import read_chat, tokenizer_json
from colibri_build.checkpoint.source import GGUF_SHARD, GGUF_SUFFIX, Source, model_name
from colibri_build.checkpoint.stored import StoredTensor
from colibri_build.errors import CheckpointError


def is_gguf(path: Path) -> bool:
    """Whether a path is a file, or a folder that holds GGUF files and no config.json."""
    if path.is_dir():
        return not (path / "config.json").exists() and any(path.glob(f"*{GGUF_SUFFIX}"))
    return path.is_file() or path.name.endswith(GGUF_SUFFIX)


def open_gguf(path: Path) -> Source:
    """Raises CheckpointError for files that are damaged or not supported, before a tensor is read."""
    files = _files(path)
    headers = [read_header(file) for file in files]
    entries = _entries(headers)
    metadata, where = headers[0].metadata, str(files[0])
    values = read_config(metadata, _facts(entries, where), where)
    return Source(
        name=model_name(path),
        where=where,
        values=values,
        generation={},
        read_tensors=cache(partial(_tensors, metadata, entries, values, where)),
        read_tokenizer_json=partial(tokenizer_json, metadata, where),
        files=lambda: files,
        read_chat=partial(read_chat, metadata, where),
    )


def _files(path: Path) -> tuple[Path, ...]:
    """The file, or all shards of the model that `path` is one of, in order."""
    file = _only_file(path) if path.is_dir() else path
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file", hint="name a .gguf file or a folder that holds one")
    shard = GGUF_SHARD.fullmatch(file.name)
    if shard is None:
        _refuse_other_file(file)
        return (file,)
    number, count = int(shard[2]), int(shard[3])
    if not 1 <= number <= count:
        raise CheckpointError(
            f"{file}: its name says shard {number} of {count}", hint="give it the name that it was published with"
        )
    files = tuple(file.with_name(f"{shard[1]}-{n:05}-of-{count:05}{GGUF_SUFFIX}") for n in range(1, count + 1))
    missing = [shard.name for shard in files if not shard.is_file()]
    if missing:
        raise CheckpointError(
            f"{file.parent}: {len(missing)} of {count} shards are missing: {', '.join(missing[:4])}",
            hint="download the missing files",
        )
    return files


def _refuse_other_file(file: Path) -> None:
    """A file of a checkpoint folder is named in its place; a GGUF file may have any name."""
    if file.name.endswith(GGUF_SUFFIX):
        return
    try:
        with file.open("rb") as opened:
            start = opened.read(len(MAGIC))
    except OSError as error:
        raise CheckpointError(f"{file}: cannot be read ({error.strerror})") from error
    if start != MAGIC:
        raise CheckpointError(
            f"{file}: no GGUF file: it starts with {start!r}",
            hint="name the folder that holds config.json, or a .gguf file",
        )


def _only_file(folder: Path) -> Path:
    names = sorted(entry.name for entry in folder.glob(f"*{GGUF_SUFFIX}"))
    models = {found[1] + found[3] if (found := GGUF_SHARD.fullmatch(name)) else name for name in names}
    if len(models) != 1:
        raise CheckpointError(
            f"{folder}: holds {len(models)} GGUF models ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})",
            hint="name one of the files",
        )
    return folder / names[0]


def _entries(headers: list[GgufHeader]) -> dict[str, GgufEntry]:
    """The tensors of all shards by name. The first shard alone has the model's metadata."""
    found: dict[str, GgufEntry] = {}
    for number, header in enumerate(headers):
        count, own = header.metadata.get("split.count", 1), header.metadata.get("split.no", 0)
        if (count or 1) != len(headers) or own != number:
            raise CheckpointError(
                f"{header.file}: says that it is shard {own} of {count} (from 0), its name that it is {number} of "
                f"{len(headers)}",
                hint="give the shards the names that they were published with",
            )
        for entry in header.entries:
            if entry.name in found:
                raise CheckpointError(
                    f"tensor {entry.name} is in {found[entry.name].file.name} and again in {entry.file.name}",
                    hint=DOWNLOAD_AGAIN,
                )
            found[entry.name] = entry
    promised = headers[0].metadata.get("split.tensors.count", len(found))
    if promised != len(found):
        raise CheckpointError(
            f"{headers[0].file}: promises {promised} tensors, its {len(headers)} files hold {len(found)}",
            hint="the files are of different versions; download them together",
        )
    return found


def _facts(entries: Mapping[str, GgufEntry], where: str) -> Mapping[str, Any]:
    """What the tensors tell and no key does."""
    embedding = entries.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise CheckpointError(f"{where}: no matrix token_embd.weight", hint=DOWNLOAD_AGAIN)
    return {
        "vocab_size": embedding.shape[0],
        "tied": HEAD not in entries,
        "attention_bias": any(name.endswith(".attn_q.bias") for name in entries),
        "qk_norm": any(name.endswith(".attn_q_norm.weight") for name in entries),
        "rope_factors": _rope_factors(entries.get(ROPE_FACTORS)),
    }


def _rope_factors(entry: GgufEntry | None) -> list[float] | None:
    if entry is None:
        return None
    if entry.kind != GGMLQuantizationType.F32 or len(entry.shape) != 1:
        raise CheckpointError(
            f"{entry.file}: tensor {entry.name} is {entry.kind.name} {list(entry.shape)}, not an F32 vector",
            hint=DOWNLOAD_AGAIN,
        )
    return [float(value) for value in GgufTensor(entry.file, entry.name, "F32", entry.shape, (entry,)).load()]


def _tensors(
    metadata: Mapping[str, Any], entries: Mapping[str, GgufEntry], values: Mapping[str, Any], where: str
) -> Mapping[str, StoredTensor]:
    heads = values["num_attention_heads"], values["num_key_value_heads"]
    permuted = heads if architecture_of(metadata, where).permuted else None
    return published_tensors(entries.values(), Layout(FAMILIES[values["model_type"]].names, permuted))
