"""Quantize: Model -> QuantizedModel."""
