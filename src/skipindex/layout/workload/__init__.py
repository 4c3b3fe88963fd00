"""Layouts that are chosen by the queries that a table serves."""
