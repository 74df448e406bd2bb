"""Which tensor kind is stored in which format. The defaults were chosen by measurement: docs/quantization.md."""

from __future__ import annotations

from collections.abc import Mapping

from colibri_build.artifacts import Format, Kind, ModelConfig
from colibri_build.errors import QuantizeError
from colibri_build.layout import ALLOWED_FORMATS
from colibri_build.tensor_specs import kinds_of


def default_formats(bits: int) -> dict[Kind, Format]:
    """The format of each kind. `bits`, 4 or 8, is the width of the experts, which hold nearly all weights."""
    return {
        Kind.EMBEDDING: Format.W8,
        Kind.ATTENTION: Format.W8,
        Kind.EXPERT: Format.W4 if bits == 4 else Format.W8,
        Kind.ROUTER: Format.F32,  # a wrong expert costs more than the few bytes of a router
        Kind.NORM: Format.F32,
        Kind.LM_HEAD: Format.W8,
        Kind.DENSE: Format.W8,  # every token takes it, so its errors weigh more than an expert's
        Kind.BIAS: Format.F32,
    }


def formats_of(config: ModelConfig, bits: int, overrides: Mapping[Kind, Format]) -> dict[Kind, Format]:
    """The format of each kind that a model has. Raises QuantizeError as `choose_formats` does.

    Where no layer has experts, the dense parts hold nearly all weights and get the experts' width.
    """
    absent = sorted(set(overrides) - set(kinds_of(config)))
    if absent:
        raise QuantizeError(
            f"--format {absent[0]}={overrides[absent[0]]}: this {config.family} model has no {absent[0]} tensors",
            hint="leave it out",
        )
    formats = choose_formats(bits, overrides, tied_embeddings=config.tied_embeddings)
    if not config.n_expert_layers and Kind.DENSE not in overrides:
        formats[Kind.DENSE] = formats[Kind.EXPERT]
    return {kind: formats[kind] for kind in kinds_of(config)}


def choose_formats(bits: int, overrides: Mapping[Kind, Format], *, tied_embeddings: bool) -> dict[Kind, Format]:
    """Defaults with the user's choices. Raises QuantizeError for a format that a kind cannot have.

    Tied embeddings are one matrix: naming either kind names both.
    """
    for kind, fmt in overrides.items():
        if fmt not in ALLOWED_FORMATS[kind]:
            allowed = " or ".join(ALLOWED_FORMATS[kind])
            raise QuantizeError(f"format {fmt} is not implemented for {kind} tensors", hint=f"{kind} may be {allowed}")
    formats = default_formats(bits) | dict(overrides)
    if tied_embeddings:
        named = {fmt for kind, fmt in overrides.items() if kind in (Kind.EMBEDDING, Kind.LM_HEAD)}
        if len(named) > 1:
            raise QuantizeError(
                f"embedding is {overrides[Kind.EMBEDDING]} and lm_head is {overrides[Kind.LM_HEAD]}, but this model "
                "ties them: they are one matrix",
                hint="name one format for both",
            )
        shared = named.pop() if named else formats[Kind.EMBEDDING]
        formats |= {Kind.EMBEDDING: shared, Kind.LM_HEAD: shared}
    return formats
