"""Min/max: the statistics of every file, answered for all files together."""

from __future__ import annotations

from skipindex.table.statistics.file_stats import FileStats as FileStats
