"""Benchmarks that compare skipindex with itself and with others; not in the wheel."""
