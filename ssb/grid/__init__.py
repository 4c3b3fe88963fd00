"""The benchmark grid: every layout with every set of indexes."""
