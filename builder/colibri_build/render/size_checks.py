"""Static asserts that tie the builder's byte layout to the kernels': each computes a part's size from C constants."""

from __future__ import annotations

from dataclasses import dataclass

from colibri_build.artifacts import Format
from colibri_build.layout import FileLayout, PartLayout

# (part, rows, columns) in the terms of model_config.h
_DENSE_SHAPES = (
    ("embedding", "MODEL_VOCAB_SIZE", "MODEL_DIM"),
    ("layers.0.q", "MODEL_N_HEADS * MODEL_HEAD_DIM", "MODEL_DIM"),
    ("layers.0.k", "MODEL_N_KV_HEADS * MODEL_HEAD_DIM", "MODEL_DIM"),
    ("layers.0.o", "MODEL_DIM", "MODEL_N_HEADS * MODEL_HEAD_DIM"),
)
_EXPERT_SHAPES = (
    ("layers.0.experts.0.gate", "MODEL_HIDDEN_DIM", "MODEL_DIM"),
    ("layers.0.experts.0.down", "MODEL_DIM", "MODEL_HIDDEN_DIM"),
)


@dataclass(frozen=True)
class SizeCheck:
    """One static assert: C expression, the bytes it must give, and the message."""

    expression: str
    bytes: int
    what: str


def size_checks(dense: FileLayout, expert: FileLayout) -> tuple[SizeCheck, ...]:
    """Codes and scales of one tensor of each shape."""
    checks: list[SizeCheck] = []
    for file, shapes in ((dense, _DENSE_SHAPES), (expert, _EXPERT_SHAPES)):
        for name, rows, cols in shapes:
            checks.extend(_part_checks(file.part(name), rows, cols))
    return tuple(checks)


def _part_checks(part: PartLayout, rows: str, cols: str) -> list[SizeCheck]:
    name = part.spec.name.rpartition(".")[2]
    if part.format in (Format.F32, Format.F16):
        width = 4 if part.format is Format.F32 else 2
        return [SizeCheck(f"(uint64_t)({rows}) * ({cols}) * {width}", part.code_bytes, f"values of {name}")]
    prefix = part.format.upper()
    return [
        SizeCheck(f"PANELS({rows}) * BLOCKS({cols}) * {prefix}_BLOCK_BYTES", part.code_bytes, f"codes of {name}"),
        SizeCheck(f"PANELS({rows}) * GROUPS({cols}) * {prefix}_SCALE_BYTES", part.scale_bytes, f"scales of {name}"),
    ]
