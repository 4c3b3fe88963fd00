"""Which kinds of index the columns of a table are worth, measured on a sample."""

from __future__ import annotations

from skipindex.advice.advise import MAX_BYTES_RATIO, advise
from skipindex.advice.report import Advice

__all__ = ["MAX_BYTES_RATIO", "Advice", "advise"]
