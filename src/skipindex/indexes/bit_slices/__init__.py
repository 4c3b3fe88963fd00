"""Bit slices: codes of rows cut into bits, written, read and compared."""
