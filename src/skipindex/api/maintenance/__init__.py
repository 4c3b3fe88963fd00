"""Maintenance: what an operator would do next to a table, and what it gained.

``policy`` has the limits, ``steps`` the steps, ``run`` takes them in order within a
budget, and ``report`` says what was done.
"""
