"""Hive partitions: folder names, the types that Spark infers, derived columns."""
