"""Spark's functions, each with its domain, its result and its monotonicity."""
