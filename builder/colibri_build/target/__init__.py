"""Boards and toolchains: typed, validated TOML."""
