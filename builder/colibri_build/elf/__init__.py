"""Inspect the linked binary: Firmware -> BuildReport."""
