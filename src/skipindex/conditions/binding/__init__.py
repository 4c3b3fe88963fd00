"""Binding: names to columns, literals to domains, functions to conditions."""
