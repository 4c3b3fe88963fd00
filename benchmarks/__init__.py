"""Benchmarks: figures, each next to a limit or a reference of the same run.

``make bench`` runs all of them.  A benchmark is a module of this package without a
leading underscore; its ``main()`` measures, and shows tables with ``_report.show``.
"""
