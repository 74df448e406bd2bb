"""The tensors of a checkpoint under our names: checked against the configuration, loaded when asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from colibri_build.artifacts import F32, ModelConfig, PackedTensor, TensorSpec
from colibri_build.checkpoint.families import Family
from colibri_build.checkpoint.families.names import TOP_NAMES, Stored
from colibri_build.checkpoint.quantization_parts import is_idle_bias
from colibri_build.checkpoint.stored import PLAIN_DTYPES, Index, StoredTensor
from colibri_build.errors import CheckpointError
from colibri_build.tensor_specs import tensor_specs

_PIECE = 1 << 20  # values that are compared at a time
Part = tuple[StoredTensor, Index]  # a stored tensor, and what of it is meant


class CheckpointTensors(Mapping[str, F32]):
    """Our name -> float32 values. Each access reads the file; nothing is kept in memory."""

    def __init__(self, parts: Mapping[str, Part]) -> None:
        self._parts = dict(parts)

    def __getitem__(self, name: str) -> F32:
        stored, index = self._parts[name]
        return stored.load(index)

    def __contains__(self, name: object) -> bool:
        return name in self._parts  # Mapping's own would load the tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def rows_of(self, name: str) -> Callable[[slice], F32]:
        """As `ByRows` says. One whose rows lie scattered in the file is held whole."""
        stored, index = self._parts[name]
        if not stored.by_rows:
            whole = stored.load(index)
            return lambda rows: whole[rows]
        n_rows = stored.shape[sum(isinstance(part, int) for part in index)]
        return lambda rows: stored.load(_rows_within(index, rows, n_rows))

    def packed(self) -> dict[str, PackedTensor]:
        """Those that the checkpoint holds as codes."""
        return {
            name: PackedTensor(*stored.packing, partial(stored.codes, index), partial(stored.misfit, index))
            for name, (stored, index) in self._parts.items()
            if stored.packing
        }


def _rows_within(index: Index, rows: slice, n_rows: int) -> Index:
    """`rows` of what `index` picks; its last part may have picked some of `n_rows` rows already."""
    if not index or isinstance(index[-1], int):
        return (*index, rows)
    picked = index[-1]
    if isinstance(picked, slice):
        run = range(*picked.indices(n_rows))[rows]
        return (*index[:-1], slice(run.start, run.stop, run.step))
    return (*index[:-1], picked[rows])


def select_tensors(found: Mapping[str, StoredTensor], config: ModelConfig, family: Family) -> CheckpointTensors:
    """Every tensor that `config` asks for, and proof that there is no other. Raises CheckpointError."""
    _refuse_absurd_counts(found, config)
    wanted = {spec.name: _place_of(spec, found, config, family) for spec in tensor_specs(config)}
    expected = {place.name: place.shape for place in wanted.values()}
    _refuse_missing(expected, found)
    _refuse_unexpected(expected, found, config, family)
    with ThreadPoolExecutor(os.cpu_count() or 1) as executor:
        for _ in executor.map(lambda name: _check_tensor(found[name], expected[name]), expected):
            pass  # the first fault in this order is the one that is told
    if config.tied_embeddings:
        _check_tied_head(found)
    return CheckpointTensors({name: (found[place.name], place.index) for name, place in wanted.items()})


def _place_of(spec: TensorSpec, found: Mapping[str, StoredTensor], config: ModelConfig, family: Family) -> Stored:
    """The place that the checkpoint uses; the published one where it uses none."""
    places = list(family.names.places(spec, config))
    return next((place for place in places if place.name in found), places[0])


def _refuse_absurd_counts(found: Mapping[str, StoredTensor], config: ModelConfig) -> None:
    """Before anything is listed for each expert: config.json may ask for billions."""
    most_experts = max((max(len(found), *tensor.shape[:1]) for tensor in found.values()), default=0)
    if config.n_layers > len(found) or config.n_experts > most_experts:
        raise CheckpointError(
            f"config.json asks for {config.n_layers} layers of {config.n_experts} experts, "
            f"the files hold {len(found)} tensors",
            hint="the download is incomplete, or config.json belongs to another checkpoint",
        )


def _refuse_missing(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, StoredTensor]) -> None:
    missing = [name for name in expected if name not in found]
    if missing:
        hint = "the download is incomplete, or config.json belongs to another checkpoint"
        if missing == [TOP_NAMES["lm_head"]]:
            hint = 'if the embedding matrix is the head too, set "tie_word_embeddings" to true in config.json'
        raise CheckpointError(
            f"{len(missing)} of {len(expected)} tensors are missing; the first: {missing[0]} "
            f"{list(expected[missing[0]])}",
            hint=hint,
        )


def _refuse_unexpected(
    expected: Mapping[str, tuple[int, ...]], found: Mapping[str, StoredTensor], config: ModelConfig, family: Family
) -> None:
    allowed = {TOP_NAMES["lm_head"]} if config.tied_embeddings else set()
    surplus = sorted(name for name in found if name not in expected and name not in allowed)
    surplus = [name for name in surplus if not family.is_ignored(name, config) and not is_idle_bias(name, found)]
    if surplus:
        first = found[surplus[0]]
        raise CheckpointError(
            f"{first.file}: {len(surplus)} tensors that config.json has no use for; the first: {first.name} "
            f"{list(first.shape)}",
            hint=f"config.json says {config.n_layers} layers and {config.n_experts} experts; "
            "use the one that belongs to these weights",
        )


def _check_tensor(tensor: StoredTensor, shape: tuple[int, ...]) -> None:
    where = f"{tensor.file}: tensor {tensor.name}"
    if tensor.shape != shape:
        raise CheckpointError(
            f"{where} has shape {list(tensor.shape)}, config.json asks for {list(shape)}",
            hint="use the config.json that belongs to these weights",
        )
    if not tensor.supported:
        raise CheckpointError(
            f"{where} has dtype {tensor.dtype}, supported are {', '.join(PLAIN_DTYPES)}",
            hint="save the checkpoint in bfloat16",
        )
    bad = tensor.non_finite()
    if bad is not None:
        count, first = bad
        raise CheckpointError(
            f"{where} holds {count} values that are NaN or infinite; the first at {list(first)}",
            hint="the training diverged or the conversion overflowed; use a sound checkpoint",
        )


def _check_tied_head(found: Mapping[str, StoredTensor]) -> None:
    """A stored lm_head is ignored where embeddings are tied; that must not lose anything."""
    head, embedding = found.get(TOP_NAMES["lm_head"]), found[TOP_NAMES["embedding"]]
    if head is None:
        return
    if head.shape != embedding.shape or not _are_equal(head, embedding):
        raise CheckpointError(
            f'{head.file}: tensor {head.name} differs from {embedding.name}, but "tie_word_embeddings" is true',
            hint='set "tie_word_embeddings" to false in config.json if the model has a head of its own',
        )


def _are_equal(a: StoredTensor, b: StoredTensor) -> bool:
    """Whether two matrices of one shape hold the same values; no more than a piece of either is in memory."""
    step = max(1, _PIECE // a.shape[1])
    pieces = [(slice(start, start + step),) for start in range(0, a.shape[0], step)]
    return all(np.array_equal(a.load(piece), b.load(piece)) for piece in pieces)
