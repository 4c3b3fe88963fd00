"""Constructors of predicate trees, shared by the SQL parser and Catalyst."""
