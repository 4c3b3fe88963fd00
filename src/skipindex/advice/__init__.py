"""Choosing which index kinds to build on which columns, by measuring a sample."""

from __future__ import annotations

from skipindex.advice.advise import MAX_BYTES_RATIO, advise
from skipindex.advice.report import Advice

__all__ = ["MAX_BYTES_RATIO", "Advice", "advise"]
