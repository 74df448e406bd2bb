"""Names that options, files and stages share. Part of `artifacts`."""

from __future__ import annotations

import enum

DEBUG_NAMES = ("memory", "routing", "timing")  # what a debug build can record; sorted


class Format(enum.StrEnum):
    """Storage format of a weight tensor. The ids are part of the model folder's format."""

    F32 = "f32"
    F16 = "f16"
    W4 = "w4"  # unsigned 4-bit codes, fp16 scale and 4-bit zero point a group, layout P8
    W8 = "w8"  # symmetric int8 codes, fp16 scale a group, layout P8


class Kind(enum.StrEnum):
    """What a tensor is for. The quantization policy names one format for each kind."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    EXPERT = "expert"
    ROUTER = "router"
    NORM = "norm"
    LM_HEAD = "lm_head"
    DENSE = "dense"  # the feed-forward part that every token takes: dense layers and shared experts
    BIAS = "bias"  # vectors that are added: to norms, projections, router logits, logits; the sinks of attention
