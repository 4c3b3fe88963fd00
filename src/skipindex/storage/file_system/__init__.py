"""Paths below a table, and one folder on one file system."""
