"""Constants that follow from a configuration. Base module: the reference, the quantizer and the renderer share them."""

from __future__ import annotations

import numpy as np

from colibri_build.artifacts import F32, ModelConfig

LATENT_EPS = 1e-6  # of the norms of latent vectors, whatever rms_eps is


def rotary_dim(config: ModelConfig) -> int:
    """Leading elements of a head that RoPE turns."""
    return config.rotary_dim or config.head_dim


def rope_frequencies(config: ModelConfig) -> F32:
    """RoPE frequencies [rotary_dim / 2]: the configured ones, or 1/theta^(2i/rotary_dim) in binary64, rounded once."""
    if config.rope_frequencies:
        return np.asarray(config.rope_frequencies, np.float32)
    size = rotary_dim(config)
    exponents = np.arange(0, size, 2, dtype=np.float64) / size
    return (1.0 / np.power(np.float64(config.rope_theta), exponents)).astype(np.float32)


def attention_scale(config: ModelConfig) -> float:
    """Factor of the attention scores."""
    return config.attention_scale or float(1.0 / np.sqrt(np.float64(config.head_dim)))


def window_of(config: ModelConfig, layer: int) -> int:
    """Positions that a token sees in a layer, itself included; 0: all."""
    return 0 if layer in config.full_layers else config.sliding_window
