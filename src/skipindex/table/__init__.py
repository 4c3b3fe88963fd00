"""A table: Parquet files below one folder, and what indexes know of them.

The files are those that Spark would read (``table/files.py``).  A file that the
newest commit does not know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

from skipindex.storage.file_system.names import is_data_file
from skipindex.table.column_indexes import in_any_zone
from skipindex.table.files import (
    UNREADABLE,
    DataFile,
    SparkListing,
    check_folder,
    column_reader,
)
from skipindex.table.formats import other_format, require_plain
from skipindex.table.listing import Observed, live_files
from skipindex.table.partitions.derived import Derived
from skipindex.table.schema import ColumnInfo
from skipindex.table.spark_json import declared_schema
from skipindex.table.statistics import FileStats
from skipindex.table.status import Status, status_of
from skipindex.table.stored import check_stored, footer_schema, lacks, stored_schema
from skipindex.table.table import FileEntry, TableState, open_state, table_of

__all__ = [
    "UNREADABLE",
    "ColumnInfo",
    "DataFile",
    "Derived",
    "FileEntry",
    "FileStats",
    "Observed",
    "SparkListing",
    "Status",
    "TableState",
    "check_folder",
    "check_stored",
    "column_reader",
    "declared_schema",
    "footer_schema",
    "in_any_zone",
    "is_data_file",
    "lacks",
    "live_files",
    "open_state",
    "other_format",
    "require_plain",
    "status_of",
    "stored_schema",
    "table_of",
]
