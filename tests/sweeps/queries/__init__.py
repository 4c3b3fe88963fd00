"""Random queries over random tables, with skipping on and off: the same rows.

``python -m tests.sweeps.queries`` runs many; ``make queries`` is that.
"""
