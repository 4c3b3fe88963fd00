"""The Star Schema Benchmark: its data, its queries, and what skipping does to them.

Not part of the installed package.
"""

from __future__ import annotations

from skipindex.errors import SkipIndexError


class SsbError(SkipIndexError, ValueError):
    """The benchmark cannot be made or run as asked."""
