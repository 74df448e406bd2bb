"""Where each part of a model folder's binary files is: pure sums from the configuration (pack/FORMAT.md).

Base module: the writer, the reader, the budget and the renderer compute with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from colibri_build.artifacts import Format, Kind, ModelConfig, TensorSpec
from colibri_build.reference.numbers import BLOCK_INPUTS, PANEL_ROWS, ceil_div, group_count
from colibri_build.tensor_specs import dense_specs, expert_specs, routing_specs

ROUTING_FILE, DENSE_FILE, TOKENIZER_FILE = "routing.bin", "dense.bin", "tokenizer.json"
ALIGNMENT = 64  # of parts in routing.bin and dense.bin, and of scales after codes; a cache line
EXPERT_ALIGNMENT = 4096  # of parts in expert files; a page, and a block of every storage
SCALE_RECORD_BYTES = {Format.W4: 24, Format.W8: 16}  # of one panel and group
_PANEL_BLOCK_BYTES = {Format.W4: PANEL_ROWS * BLOCK_INPUTS // 2, Format.W8: PANEL_ROWS * BLOCK_INPUTS}
_VALUE_BYTES = {Format.F32: 4, Format.F16: 2}

ALLOWED_FORMATS: Mapping[Kind, tuple[Format, ...]] = {
    Kind.EMBEDDING: (Format.W8, Format.F16),
    Kind.ATTENTION: (Format.W4, Format.W8),
    Kind.EXPERT: (Format.W4, Format.W8),
    Kind.ROUTER: (Format.F32,),
    Kind.NORM: (Format.F32,),
    Kind.LM_HEAD: (Format.W8, Format.F16),
    Kind.DENSE: (Format.W4, Format.W8),
    Kind.BIAS: (Format.F32,),
}
GROUP_SIZES = (32, 64, 128)


@dataclass(frozen=True)
class PartLayout:
    """One tensor in its file. Offsets count from the start of the file; `scale_bytes` is 0 for f32 and f16."""

    spec: TensorSpec
    format: Format
    offset: int
    code_bytes: int  # without the zero bytes up to scale_offset
    scale_offset: int
    scale_bytes: int

    @property
    def end(self) -> int:
        """First byte after the part, before any padding."""
        return self.scale_offset + self.scale_bytes if self.scale_bytes else self.offset + self.code_bytes


@dataclass(frozen=True)
class FileLayout:
    """One binary file: its parts in order, and its size with all padding."""

    name: str
    parts: tuple[PartLayout, ...]
    bytes: int

    def part(self, name: str) -> PartLayout:
        """The part of the tensor `name` (KeyError if it is elsewhere)."""
        for part in self.parts:
            if part.spec.name == name:
                return part
        raise KeyError(name)


def align(value: int, alignment: int) -> int:
    """Smallest multiple of `alignment` not below `value`."""
    return ceil_div(value, alignment) * alignment


def code_bytes(spec: TensorSpec, format: Format) -> int:
    """Bytes of a tensor's values or codes, without scales."""
    if format in _VALUE_BYTES:
        return spec.rows * spec.cols * _VALUE_BYTES[format]
    return ceil_div(spec.rows, PANEL_ROWS) * ceil_div(spec.cols, BLOCK_INPUTS) * _PANEL_BLOCK_BYTES[format]


def scale_bytes(spec: TensorSpec, format: Format, group_size: int) -> int:
    """Bytes of a tensor's scales and zero points; 0 for f32 and f16."""
    if format in _VALUE_BYTES:
        return 0
    return ceil_div(spec.rows, PANEL_ROWS) * group_count(spec.cols, group_size) * SCALE_RECORD_BYTES[format]


def expert_file(layer: int, expert: int) -> str:
    """File name of one expert."""
    return f"expert_{layer}_{expert}.bin"


def symbol_of(file_name: str) -> str:
    """C symbol of an embedded file, as `xxd -i` forms it: `expert_0_3.bin` -> `expert_0_3_bin`."""
    return file_name.replace(".", "_")


def expert_layout(
    config: ModelConfig, formats: Mapping[Kind, Format], group_size: int, layer: int = 0, expert: int = 0
) -> FileLayout:
    """Gate, up and down projection. Offsets and size are the same for every expert; only names differ."""
    specs = expert_specs(config, layer, expert)
    return _layout(expert_file(layer, expert), specs, formats, group_size, EXPERT_ALIGNMENT)


def dense_layout(config: ModelConfig, formats: Mapping[Kind, Format], group_size: int) -> FileLayout:
    """Embedding, norms, attention projections, lm_head."""
    return _layout(DENSE_FILE, dense_specs(config), formats, group_size, ALIGNMENT)


def routing_layout(config: ModelConfig, formats: Mapping[Kind, Format], group_size: int) -> FileLayout:
    """The router of every layer that has experts, and what goes with it."""
    specs = (spec for layer in config.expert_layers for spec in routing_specs(config, layer))
    return _layout(ROUTING_FILE, specs, formats, group_size, ALIGNMENT)


def file_layouts(config: ModelConfig, formats: Mapping[Kind, Format], group_size: int) -> Iterator[FileLayout]:
    """Every binary file: routing.bin (where a layer has experts), dense.bin, then the experts by layer."""
    if config.n_expert_layers:
        yield routing_layout(config, formats, group_size)
    yield dense_layout(config, formats, group_size)
    for layer in config.expert_layers:
        for expert in range(config.n_experts):
            yield expert_layout(config, formats, group_size, layer, expert)


def _layout(
    name: str, specs: Iterable[TensorSpec], formats: Mapping[Kind, Format], group_size: int, alignment: int
) -> FileLayout:
    parts: list[PartLayout] = []
    end = 0
    for spec in specs:
        format = formats[spec.kind]
        offset = align(end, alignment)
        codes, scales = code_bytes(spec, format), scale_bytes(spec, format, group_size)
        parts.append(PartLayout(spec, format, offset, codes, align(offset + codes, ALIGNMENT), scales))
        end = parts[-1].end
    return FileLayout(name, tuple(parts), align(end, alignment))
