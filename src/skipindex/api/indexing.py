"""Building indexes of a table that is named by its path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.advice.advised_build import AdviceRequest
from skipindex.api.handle import Table
from skipindex.api.indexed import built
from skipindex.api.planning import AnyTable, located
from skipindex.build.associated.request import AssociatedRequest
from skipindex.build.builder import BuildReport
from skipindex.build.column_requests import Request
from skipindex.build.columns.memory import DEFAULT_MEMORY, MemoryLike
from skipindex.build.runners import Progress
from skipindex.storage.associated import AssociatedColumn
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.uris import StorageOptions
from skipindex.table import TableState, open_state

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
    associated: AssociatedRequest | None = None,
    memory: MemoryLike = DEFAULT_MEMORY,
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
        associated=associated,
        memory=memory,
    )


def via(key: str, table: AnyTable, table_key: str, attribute: str) -> AssociatedColumn:
    """An attribute of a joined table, as a column of the table that joins it.

    Of a row it is the ``attribute`` of the row of ``table`` whose ``table_key`` equals
    the row's ``key``, and NULL where there is none.  Nothing is read yet.

    Args:
        key: the column that is joined by: integers or strings.
        table: the joined table, the dimension: a ``Table``, a path or a URI, on the
            file system of the table that joins it.
        table_key: its column that is joined by, which has no value twice.
        attribute: its column that is looked up.

    >>> same = sx.via("price", path, "price", "city")
    >>> report = sx.build_indexes(path, {}, associated={"its_city": same}, workers=1)
    >>> report.table.plan("its_city = 'Oslo'").count()
    2
    """
    location = table.location if isinstance(table, TableState) else location_of(table)
    return AssociatedColumn(key, location, table_key, attribute)
