"""A table: Parquet files below one folder, and what indexes know of them.

The files are those that count (``source``).  A file that the newest commit does not
know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

from skipindex.conditions.columns import ColumnInfo as ColumnInfo
from skipindex.table.derived import Derived as Derived
from skipindex.table.derived import derived_by as derived_by
from skipindex.table.derived import parts_of_time as parts_of_time
from skipindex.table.statistics import FileStats as FileStats
from skipindex.table.statistics.overlap import Overlap as Overlap
from skipindex.table.status import Status as Status
from skipindex.table.status import overlaps_of as overlaps_of
from skipindex.table.status import status_of as status_of
from skipindex.table.table import FileEntry as FileEntry
from skipindex.table.table import TableState as TableState
from skipindex.table.table import open_state as open_state
from skipindex.table.table import table_of as table_of
