"""Which files a table has, and what is in them, at a version.

A source says so: a plain folder, as Spark would read it, or the log of another format.
No index is known here.
"""

from __future__ import annotations

from skipindex.source.folder.exclusive import commit as commit
from skipindex.source.folder.exclusive import warn_of_others as warn_of_others
from skipindex.source.folder.folder import SparkListing as SparkListing
from skipindex.source.folder.folder import folder_of as folder_of
from skipindex.source.folder.folder import kept_paths as kept_paths
from skipindex.source.folder.from_log import difference_from_log as difference_from_log
from skipindex.source.folder.live import Listing as Listing
from skipindex.source.folder.live import check_folder as check_folder
from skipindex.source.folder.live import newest_usable as newest_usable
from skipindex.source.formats import require_plain as require_plain
from skipindex.source.formats import require_unbucketed as require_unbucketed
from skipindex.source.opening import Trust as Trust
from skipindex.source.parquet.files import UNREADABLE as UNREADABLE
from skipindex.source.parquet.files import DataFile as DataFile
from skipindex.source.parquet.files import column_reader as column_reader
from skipindex.source.parquet.spark_json import declared_schema as declared_schema
from skipindex.source.parquet.stored import check_stored as check_stored
from skipindex.source.parquet.stored import footer_schema as footer_schema
from skipindex.source.parquet.stored import has_int96 as has_int96
from skipindex.source.parquet.stored import is_hybrid as is_hybrid
from skipindex.source.parquet.stored import lacks as lacks
from skipindex.source.parquet.stored import stored_schema as stored_schema
from skipindex.source.source import NEWEST as NEWEST
from skipindex.source.source import AtVersion as AtVersion
from skipindex.source.source import CatalogFolders as CatalogFolders
from skipindex.source.source import Observed as Observed
