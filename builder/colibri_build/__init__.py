"""Cross-compile a quantized Mixture-of-Experts model into one static firmware binary."""

__version__ = "0.1.0"
