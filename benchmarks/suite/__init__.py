"""Measures our firmware beside llama.cpp on the same work: benchmarks/run.py."""
