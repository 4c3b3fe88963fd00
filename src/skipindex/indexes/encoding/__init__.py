"""Encodings that the index kinds share: columns and row sets as bytes."""
