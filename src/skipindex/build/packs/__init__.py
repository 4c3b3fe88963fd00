"""Merging packs, and packing payloads of many files together."""
