"""Constructors of trees, for SQL text and for expressions of Catalyst alike."""
