"""Random queries over random tables, with skipping on and off: the same rows."""
