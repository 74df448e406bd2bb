"""The NumPy model that defines the arithmetic (docs/numerics.md)."""
