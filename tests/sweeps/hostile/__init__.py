"""Tables whose logs are hostile: planned and vacuumed in a process with limits.

``python -m tests.sweeps.hostile`` runs many; ``make hostile`` is that.
"""
