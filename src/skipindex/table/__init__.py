"""A table: Parquet files below one folder, and what our indexes know of them.

The files are those that Spark would read: everything below the root that is not
empty and whose path has no part that begins with ``_`` or ``.`` (trap C-37).  A
file that the newest commit does not know, or knows with another identity, simply
has no index.
"""

from __future__ import annotations

from skipindex.indexes.minmax import FileStats
from skipindex.schema import ColumnInfo, arrow_schema
from skipindex.table._derived import Derived
from skipindex.table._files import (
    UNREADABLE,
    check_folder,
    column_reader,
    is_data_file,
    is_visible,
)
from skipindex.table._table import FileEntry, Table, open_table, table_of

__all__ = [
    "UNREADABLE",
    "ColumnInfo",
    "Derived",
    "FileEntry",
    "FileStats",
    "Table",
    "arrow_schema",
    "check_folder",
    "column_reader",
    "is_data_file",
    "is_visible",
    "open_table",
    "table_of",
]
