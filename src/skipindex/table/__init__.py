"""A table: Parquet files below one folder, and what indexes know of them.

The files are those that Spark would read (``table/files.py``).  A file that the
newest commit does not know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

from skipindex.conditions.columns import ColumnInfo as ColumnInfo
from skipindex.table.files import UNREADABLE as UNREADABLE
from skipindex.table.files import DataFile as DataFile
from skipindex.table.files import SparkListing as SparkListing
from skipindex.table.files import column_reader as column_reader
from skipindex.table.listing import CatalogFolders as CatalogFolders
from skipindex.table.listing import Observed as Observed
from skipindex.table.listing import live_files as live_files
from skipindex.table.opening.formats import other_format as other_format
from skipindex.table.opening.formats import require_plain as require_plain
from skipindex.table.opening.formats import require_unbucketed as require_unbucketed
from skipindex.table.opening.from_log import Trust as Trust
from skipindex.table.opening.from_log import difference_from_log as difference_from_log
from skipindex.table.opening.source import NEWEST as NEWEST
from skipindex.table.opening.source import AtVersion as AtVersion
from skipindex.table.partitions.derived import Derived as Derived
from skipindex.table.partitions.derived import derived_by as derived_by
from skipindex.table.partitions.derived import parts_of_time as parts_of_time
from skipindex.table.spark_json import declared_schema as declared_schema
from skipindex.table.statistics import FileStats as FileStats
from skipindex.table.statistics.overlap import Overlap as Overlap
from skipindex.table.status import Status as Status
from skipindex.table.status import overlaps_of as overlaps_of
from skipindex.table.status import status_of as status_of
from skipindex.table.stored import check_stored as check_stored
from skipindex.table.stored import footer_schema as footer_schema
from skipindex.table.stored import has_int96 as has_int96
from skipindex.table.stored import is_hybrid as is_hybrid
from skipindex.table.stored import lacks as lacks
from skipindex.table.stored import only_outside_spark as only_outside_spark
from skipindex.table.stored import stored_schema as stored_schema
from skipindex.table.table import FileEntry as FileEntry
from skipindex.table.table import TableState as TableState
from skipindex.table.table import open_state as open_state
from skipindex.table.table import table_of as table_of
