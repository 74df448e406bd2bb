"""The model folder: QuantizedModel <-> files (FORMAT.md)."""
