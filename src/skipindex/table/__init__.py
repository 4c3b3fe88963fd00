"""A table: Parquet files below one folder, and what our indexes know of them.

The files are those that Spark would read (``table/_files.py``).  A file that the
newest commit does not know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

from skipindex.indexes.minmax import FileStats
from skipindex.schema import ColumnInfo
from skipindex.storage.names import is_data_file
from skipindex.stored import (
    arrow_schema,
    check_stored,
    declared_schema,
    lacks,
    stored_schema,
)
from skipindex.table._derived import Derived
from skipindex.table._files import (
    UNREADABLE,
    DataFile,
    SparkListing,
    check_folder,
    column_reader,
)
from skipindex.table._formats import other_format, require_plain
from skipindex.table._observe import live_files
from skipindex.table._status import Status
from skipindex.table._table import (
    FileEntry,
    Table,
    in_any_zone,
    open_table,
    table_of,
)

__all__ = [
    "UNREADABLE",
    "ColumnInfo",
    "DataFile",
    "Derived",
    "FileEntry",
    "FileStats",
    "SparkListing",
    "Status",
    "Table",
    "arrow_schema",
    "check_folder",
    "check_stored",
    "column_reader",
    "declared_schema",
    "in_any_zone",
    "is_data_file",
    "lacks",
    "live_files",
    "open_table",
    "other_format",
    "require_plain",
    "stored_schema",
    "table_of",
]
