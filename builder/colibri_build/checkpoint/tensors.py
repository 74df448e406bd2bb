"""The tensors of a checkpoint under our names: checked against the configuration, loaded when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from colibri_build.artifacts import F32, ModelConfig, tensor_specs
from colibri_build.checkpoint.families import Family
from colibri_build.checkpoint.weight_files import StoredTensor
from colibri_build.errors import CheckpointError

SUPPORTED_DTYPES = ("F32", "F16", "BF16")


class CheckpointTensors(Mapping[str, F32]):
    """Our name -> float32 values. Each access reads the file; nothing is kept in memory."""

    def __init__(self, stored: Mapping[str, StoredTensor]) -> None:
        self._stored = dict(stored)

    def __getitem__(self, name: str) -> F32:
        return self._stored[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def select_tensors(found: Mapping[str, StoredTensor], config: ModelConfig, family: Family) -> CheckpointTensors:
    """Every tensor that `config` asks for, and proof that there is no other. Raises CheckpointError."""
    _refuse_fused(found, family)
    _refuse_absurd_counts(found, config)
    wanted = {spec.name: (family.published_name(spec.name), spec.shape) for spec in tensor_specs(config)}
    expected = dict(wanted.values())
    _refuse_missing(expected, found)
    _refuse_unexpected(expected, found, config, family)
    selected = {name: found[published] for name, (published, _) in wanted.items()}
    for name, tensor in selected.items():
        _check_tensor(tensor, wanted[name][1])
    if config.tied_embeddings:
        _check_tied_head(found, family)
    return CheckpointTensors(selected)


def _refuse_fused(found: Mapping[str, StoredTensor], family: Family) -> None:
    for name, tensor in found.items():
        if family.is_fused(name):
            raise CheckpointError(
                f"{tensor.file}: tensor {name} holds all experts of a layer, which is not supported",
                hint="save with save_pretrained(..., save_original_format=True), one tensor for each expert",
            )


def _refuse_absurd_counts(found: Mapping[str, StoredTensor], config: ModelConfig) -> None:
    """Before anything is listed for each expert: config.json may ask for billions."""
    if config.n_layers * config.n_experts > len(found):
        raise CheckpointError(
            f"config.json asks for {config.n_layers} layers of {config.n_experts} experts, "
            f"the files hold {len(found)} tensors",
            hint="the download is incomplete, or config.json belongs to another checkpoint",
        )


def _refuse_missing(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, StoredTensor]) -> None:
    missing = [name for name in expected if name not in found]
    if missing:
        hint = "the download is incomplete, or config.json belongs to another checkpoint"
        if missing == ["lm_head.weight"]:
            hint = 'if the embedding matrix is the head too, set "tie_word_embeddings" to true in config.json'
        raise CheckpointError(
            f"{len(missing)} of {len(expected)} tensors are missing; the first: {missing[0]} "
            f"{list(expected[missing[0]])}",
            hint=hint,
        )


def _refuse_unexpected(
    expected: Mapping[str, tuple[int, ...]], found: Mapping[str, StoredTensor], config: ModelConfig, family: Family
) -> None:
    allowed = {family.published_name("lm_head")} if config.tied_embeddings else set()
    surplus = sorted(name for name in found if name not in expected and name not in allowed)
    surplus = [name for name in surplus if not family.is_buffer(name)]
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
    if tensor.dtype not in SUPPORTED_DTYPES:
        raise CheckpointError(
            f"{where} has dtype {tensor.dtype}, supported are {', '.join(SUPPORTED_DTYPES)}",
            hint="save the checkpoint in bfloat16",
        )
    bad = tensor.non_finite()
    if bad is not None:
        count, first = bad
        raise CheckpointError(
            f"{where} holds {count} values that are NaN or infinite; the first at {list(first)}",
            hint="the training diverged or the conversion overflowed; use a sound checkpoint",
        )


def _check_tied_head(found: Mapping[str, StoredTensor], family: Family) -> None:
    """A stored lm_head is ignored where embeddings are tied; that must not lose anything."""
    head, embedding = found.get(family.published_name("lm_head")), found[family.published_name("embedding")]
    if head is None:
        return
    same = (head.dtype, head.shape) == (embedding.dtype, embedding.shape)
    if not same or head.mapped().tobytes() != embedding.mapped().tobytes():
        raise CheckpointError(
            f'{head.file}: tensor {head.name} differs from {embedding.name}, but "tie_word_embeddings" is true',
            hint='set "tie_word_embeddings" to false in config.json if the model has a head of its own',
        )
