"""Packs: payloads that are packed together, and packs that are merged."""
