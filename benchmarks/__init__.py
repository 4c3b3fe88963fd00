"""Benchmarks: how fast indexes are built, and how fast plans are made."""
