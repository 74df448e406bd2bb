"""Static asserts that tie the builder's byte layout to the kernels': each computes a part's size from C constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from colibri_build.artifacts import Format, ModelConfig
from colibri_build.layout import FileLayout, PartLayout

# (part, rows, columns) in the terms of model_config.h
_OTHER_SHAPES = (
    ("embedding", "MODEL_VOCAB_SIZE", "MODEL_DIM"),
    ("layers.0.o", "MODEL_DIM", "MODEL_N_HEADS * MODEL_VALUE_DIM"),
)
_PLAIN_SHAPES = (
    ("layers.0.q", "MODEL_N_HEADS * MODEL_HEAD_DIM", "MODEL_DIM"),
    ("layers.0.k", "MODEL_N_KV_HEADS * MODEL_HEAD_DIM", "MODEL_DIM"),
)
_LATENT_SHAPES = (
    ("layers.0.kv_a", "MODEL_KV_RANK", "MODEL_DIM"),
    ("layers.0.k_rope", "MODEL_ROTARY_DIM", "MODEL_DIM"),
    ("layers.0.k", "MODEL_N_HEADS * (MODEL_HEAD_DIM - MODEL_ROTARY_DIM)", "MODEL_KV_RANK"),
    ("layers.0.v", "MODEL_N_HEADS * MODEL_VALUE_DIM", "MODEL_KV_RANK"),
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


def size_checks(config: ModelConfig, dense: FileLayout, expert: FileLayout) -> tuple[SizeCheck, ...]:
    """Codes and scales of one tensor of each shape."""
    attention = _LATENT_SHAPES if config.kv_rank else _PLAIN_SHAPES
    shapes = [(dense, shape) for shape in (*_OTHER_SHAPES, *attention, *_ffn_shapes(config))]
    shapes += [(expert, shape) for shape in _EXPERT_SHAPES] if config.n_expert_layers else []
    return tuple(check for file, (name, rows, cols) in shapes for check in _part_checks(file.part(name), rows, cols))


def _ffn_shapes(config: ModelConfig) -> Iterator[tuple[str, str, str]]:
    """The feed-forward parts that every token takes: of the first dense layer, and of the first with shared experts."""
    if config.dense_layers:
        prefix = f"layers.{config.dense_layers[0]}.dense"
        yield f"{prefix}.gate", "MODEL_DENSE_HIDDEN_DIM", "MODEL_DIM"
        yield f"{prefix}.down", "MODEL_DIM", "MODEL_DENSE_HIDDEN_DIM"
    if config.shared_hidden_dim:
        prefix = f"layers.{config.expert_layers[0]}.shared"
        yield f"{prefix}.gate", "MODEL_SHARED_HIDDEN_DIM", "MODEL_DIM"
        yield f"{prefix}.down", "MODEL_DIM", "MODEL_SHARED_HIDDEN_DIM"


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
