"""Quantize: Model -> QuantizedModel."""

from colibri_build.quantize.engine import OnProgress, quantize_model
from colibri_build.quantize.options import QuantizeOptions, calibration_from_text
from colibri_build.quantize.report import Fallback, KindError, QuantizeReport, ScaleGain

__all__ = [
    "Fallback",
    "KindError",
    "OnProgress",
    "QuantizeOptions",
    "QuantizeReport",
    "ScaleGain",
    "calibration_from_text",
    "quantize_model",
]
