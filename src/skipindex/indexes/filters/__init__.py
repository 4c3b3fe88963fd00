"""Bloom filters: their keys, hashes, payloads, and the transposed filters of a pack."""
