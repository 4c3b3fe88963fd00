"""What the benchmark found: tables as text and as Markdown, the look of pictures."""

from __future__ import annotations

from ssb.report.text import aligned, table_of, verdict_of

__all__ = ["aligned", "table_of", "verdict_of"]
