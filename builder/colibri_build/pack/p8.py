"""Weight layout P8: panels of 8 rows, blocks of 32 inputs (FORMAT.md). Pure reshaping, in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colibri_build.reference.numbers import BLOCK_INPUTS, PANEL_ROWS, ceil_div

U8 = NDArray[np.uint8]


def _pad(matrix: NDArray[Any], rows: int, cols: int) -> NDArray[Any]:
    return np.pad(matrix, ((0, rows - matrix.shape[0]), (0, cols - matrix.shape[1])))


def _padded_shape(rows: int, cols: int) -> tuple[int, int]:
    """(n_panels, n_blocks) of a matrix."""
    return ceil_div(rows, PANEL_ROWS), ceil_div(cols, BLOCK_INPUTS)


def w4_codes_to_bytes(codes: U8) -> bytes:
    """Codes 0..15 [rows, cols] -> the code stream."""
    panels, blocks = _padded_shape(*codes.shape)
    padded = _pad(codes, panels * PANEL_ROWS, blocks * BLOCK_INPUTS)
    # [panel, j, i, block, half, t] with row = 4j + i of the panel and input = 16*half + t of the block
    split = padded.reshape(panels, 2, 4, blocks, 2, 16)
    nibbles = split[..., 0, :] | (split[..., 1, :] << 4)
    return np.ascontiguousarray(nibbles.transpose(0, 3, 2, 1, 4), np.uint8).tobytes()


def w4_codes_from_bytes(data: bytes, rows: int, cols: int) -> U8:
    """The code stream -> codes [rows, cols]."""
    panels, blocks = _padded_shape(rows, cols)
    nibbles = np.frombuffer(data, np.uint8).reshape(panels, blocks, 4, 2, 16).transpose(0, 3, 2, 1, 4)
    split = np.stack([nibbles & 15, nibbles >> 4], axis=-2)
    return np.ascontiguousarray(split.reshape(panels * PANEL_ROWS, blocks * BLOCK_INPUTS)[:rows, :cols])


def w8_codes_to_bytes(codes: NDArray[np.int8]) -> bytes:
    """Codes -127..127 [rows, cols] -> the code stream."""
    panels, blocks = _padded_shape(*codes.shape)
    padded = _pad(codes, panels * PANEL_ROWS, blocks * BLOCK_INPUTS)
    split = padded.reshape(panels, PANEL_ROWS, blocks, BLOCK_INPUTS)
    return np.ascontiguousarray(split.transpose(0, 2, 1, 3), np.int8).tobytes()


def w8_codes_from_bytes(data: bytes, rows: int, cols: int) -> NDArray[np.int8]:
    """The code stream -> codes [rows, cols]."""
    panels, blocks = _padded_shape(rows, cols)
    split = np.frombuffer(data, np.int8).reshape(panels, blocks, PANEL_ROWS, BLOCK_INPUTS)
    joined = split.transpose(0, 2, 1, 3).reshape(panels * PANEL_ROWS, blocks * BLOCK_INPUTS)
    return np.ascontiguousarray(joined[:rows, :cols])


def _panels_of(per_group: NDArray[Any]) -> NDArray[Any]:
    """[rows, n_groups] -> [n_panels, n_groups, 8]."""
    rows, groups = per_group.shape
    panels = ceil_div(rows, PANEL_ROWS)
    return _pad(per_group, panels * PANEL_ROWS, groups).reshape(panels, PANEL_ROWS, groups).transpose(0, 2, 1)


def _rows_of(panels: NDArray[Any], rows: int) -> NDArray[Any]:
    """[n_panels, n_groups, 8] -> [rows, n_groups]."""
    joined = panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])
    return np.ascontiguousarray(joined[:rows])


def scales_to_bytes(scales: NDArray[np.float16], zeros: U8 | None) -> bytes:
    """Scales [rows, n_groups], and zero points for w4 -> the scale stream."""
    scale_bytes = np.ascontiguousarray(_panels_of(scales), "<f2").view(np.uint8)
    if zeros is None:
        return scale_bytes.tobytes()
    return np.concatenate([scale_bytes, _panels_of(zeros).astype(np.uint8)], axis=-1).tobytes()


def scales_from_bytes(
    data: bytes, rows: int, groups: int, *, with_zeros: bool
) -> tuple[NDArray[np.float16], U8 | None]:
    """The scale stream -> (scales [rows, n_groups], zero points or None)."""
    panels = ceil_div(rows, PANEL_ROWS)
    records = np.frombuffer(data, np.uint8).reshape(panels, groups, 24 if with_zeros else 16)
    scales = np.ascontiguousarray(records[..., :16]).view("<f2").astype(np.float16)
    zeros = _rows_of(records[..., 16:], rows) if with_zeros else None
    return _rows_of(scales, rows), zeros
