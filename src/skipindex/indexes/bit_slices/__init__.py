"""Codes of rows, cut into bits: writing, reading and comparing them."""
