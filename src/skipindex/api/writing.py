"""Writing tables, and statements that rewrite them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from skipindex.api.clustering import Clustering
from skipindex.api.extras import needs_spark
from skipindex.api.handle import Table, optimized
from skipindex.api.journal import tell
from skipindex.api.planning import AnyTable, located
from skipindex.api.reading import told
from skipindex.build.column_requests import Request
from skipindex.build.runners import Progress
from skipindex.errors import LayoutError
from skipindex.layout.workload.workload import Workload
from skipindex.rewrite.optimize import OptimizeReport
from skipindex.rewrite.vacuum import VacuumReport
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.uris import StorageOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_table(
    df: DataFrame,
    path: str | os.PathLike[str],
    *,
    layout: Clustering | Workload | None = None,
    partition_by: Sequence[str] = (),
    indexes: Request | None = None,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    plain: bool = False,
    storage_options: StorageOptions | None = None,
    exclusive: bool = False,
) -> Table:
    """Write ``df`` as a table of Parquet files, clustered and indexed.

    The rows, the schema and the NULLs are those of ``df``; only their order and
    their distribution over files is ours.  Any Parquet reader can read the result.
    One commit replaces what was there, once the new rows are whole and indexed, so
    ``df`` may read the very folder; a call that fails changes nothing.

    Args:
        df: any batch DataFrame; it is evaluated three times (a
            count, a sample, the write), so cache it if it is expensive.
        path: a folder that does not exist, or is empty.
        layout: which rows share a file, as a ``Clustering``, or as the ``Workload``
            that chooses one; None writes ``df`` in the order that it has.
        partition_by: hive partition columns.
        indexes: as for ``build_indexes``: None lets the advisor choose, and
            ``{"*": "minmax"}`` builds statistics alone.
        overwrite: replace all data files at ``path``.
        options: for Spark's Parquet writer, such as ``compression``.
        progress: called with the number of index tasks done and of all.
        plain: replace a table of another format too, with its log.
        storage_options: as for ``open_table``; Spark, which writes the data files, has
            settings of its own.
        exclusive: record that the files change only through skipindex, as
            ``Table.declare_exclusive`` does.

    Raises:
        TableError: ``path`` is a file or a table of another format, or is not empty and
            ``overwrite`` is not set, or there is no row with ``partition_by``.
        LayoutError: the layout is impossible.
        PredicateError: ``indexes`` names a column that does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
        CommitConflictError: the rows to replace are being published by others.
        EngineError: Spark is not installed.

    >>> df = spark.range(100).selectExpr("id % 7 AS city", "id AS price")
    >>> layout = sx.Clustering(by=["city", "price"], rows_per_file=25)
    >>> len(sx.write_table(df, new_path, layout=layout, indexes={"city": "bitmap"}))
    4
    """
    with needs_spark():
        from skipindex.spark.writers import write as on_spark  # noqa: PLC0415
    given = Clustering.of(layout).given()
    if "bytes_per_file" in given:
        raise LayoutError(
            "write_table takes no bytes_per_file (accepted: rows_per_file, and "
            "balance='bytes' for files of nearly equal sizes)"
        )
    if given.get("curve") == "none":
        given["curve"] = None
    state = on_spark.write_table(
        df,
        location_of(path, storage_options),
        partition_by=partition_by,
        indexes=indexes,
        overwrite=overwrite,
        options=options,
        progress=progress,
        plain=plain,
        exclusive=exclusive,
        **given,
    )
    return told(Table, "write", state, f"{len(state)} files")


def append(
    df: DataFrame,
    table: AnyTable,
    *,
    indexes: Request | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    storage_options: StorageOptions | None = None,
) -> Table:
    """Add the rows of ``df`` as new files, laid out and indexed as the others are.

    A query tree routes them as it routed the first rows; other clusterings are
    fitted to the new rows.  No file that is there is changed.  One commit adds
    all rows with their indexes; a call that fails adds none.  Any number of appends,
    of ``Table.optimize`` and one plain Spark append may run at once.

    Args:
        df: rows with the columns of the table, in any order; narrower types are
            cast to the table's.
        table: what ``write_table`` wrote.
        indexes: as for ``build_indexes``; None is the indexes that the table has.
        options: for Spark's Parquet writer, such as ``compression``.
        progress: called with the number of index tasks done and of all.
        storage_options: as for ``write_table``.

    Raises:
        TableError: there is no such table, its columns are not those of ``df`` or
            cannot hold their values, or it is a table of another format.
        LayoutError: nothing says how the table is laid out.
        PredicateError: ``indexes`` names a column that does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
        EngineError: Spark is not installed.

    >>> df = spark.range(100).selectExpr("id % 7 AS city", "id AS price")
    >>> table = sx.write_table(df, new_path, layout=sx.Clustering(by=["city"]))
    >>> len(sx.append(df, table))
    2
    """
    with needs_spark():
        from skipindex.spark.writers import append as on_spark  # noqa: PLC0415
    place = located(table, storage_options)
    state = on_spark.append(
        df, place, indexes=indexes, options=options, progress=progress
    )
    return told(Table, "append", state, f"{len(state)} files")


def run_statement(
    text: str, *, spark: SparkSession
) -> OptimizeReport[Table] | VacuumReport:
    """Run an OPTIMIZE or VACUUM statement.

    ``OPTIMIZE '/path' WHERE day = 25 ZORDER BY (a, b)`` is
    ``open_table("/path").optimize(spark, predicate="day = 25",
    layout=Clustering(by=["a", "b"], curve="zorder"))``, and
    ``VACUUM '/path' RETAIN 48 HOURS`` is ``vacuum(retention=…)`` of that table.

    Raises:
        PredicateError: it is neither; the message says where.
        SkipIndexError: what ``Table.optimize`` and ``Table.vacuum`` raise.

    >>> from skipindex.api import run_statement
    >>> report = run_statement(f"VACUUM '{path}' RETAIN 48 HOURS", spark=spark)
    >>> report.published
    0
    """
    with needs_spark():
        from skipindex.spark import run_sql  # noqa: PLC0415
    report = run_sql.run_statement(spark, text)
    if isinstance(report, VacuumReport):
        tell("statement", text, report)
        return report
    return optimized(report)
