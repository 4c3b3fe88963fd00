"""Building indexes of a table that is named by its path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.advice.advised_build import AdviceRequest
from skipindex.api.handle import Table
from skipindex.api.indexed import built
from skipindex.api.planning import AnyTable, located
from skipindex.build.builder import BuildReport
from skipindex.build.column_requests import Request
from skipindex.build.runners import Progress
from skipindex.storage.file_system.uris import StorageOptions
from skipindex.table import open_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build_indexes(
    table: AnyTable,
    indexes: Request | None = None,
    *,
    columns: Sequence[str] | None = None,
    queries: Sequence[str] | None = None,
    max_bytes_ratio: float = MAX_BYTES_RATIO,
    timezone: str | None = None,
    spark: SparkSession | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    plain: bool = False,
    repair: bool | None = None,
    storage_options: StorageOptions | None = None,
) -> BuildReport[Table]:
    """Build the indexes that are missing, beside the data, in one commit.

    ``open_table(table, plain=…, storage_options=…).build_indexes(indexes, …)`` does the
    same, and ``Table.build_indexes`` tells the arguments and the errors.  The files are
    listed once before the build.

    >>> report = sx.build_indexes(path, {"price": "bit_sliced"}, workers=1)
    >>> report.files, report.table.plan("price > 4").count()
    (2, 1)
    """
    return built(
        Table,
        open_state(located(table, storage_options), plain=plain, fresh=True),
        indexes,
        AdviceRequest(columns, queries, max_bytes_ratio, timezone),
        spark=spark,
        workers=workers,
        progress=progress,
        repair=repair,
    )
