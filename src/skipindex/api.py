"""The public calls that run on Spark or on this machine, as the caller says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.advice.advised_build import AdviceRequest, build_advised
from skipindex.build.builder import BuildReport, Request, drop
from skipindex.build.merge import merge
from skipindex.build.refresh import refresh
from skipindex.build.runners import LocalRunner, Progress, Runner
from skipindex.build.tiers import MAX_BYTES, MAX_FILES
from skipindex.errors import TableError
from skipindex.expressions import Predicate
from skipindex.layout.workload.workload import Workload
from skipindex.planner.engine import engine_of, engine_type
from skipindex.planner.plan import Plan, plan_files
from skipindex.planner.stages.derived_partitions import derivation
from skipindex.storage.log import Snapshot, commit
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import TableProperties
from skipindex.table import Derived, Status, TableState, open_state, status_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

AnyTable = TableState | str | os.PathLike[str]


class Table(TableState):
    """The files of a table and their indexes, as they were when it was opened.

    Immutable: a call that changes the table returns, or needs, a new one.
    """

    @classmethod
    def of(cls, state: TableState) -> Self:
        """The same table, with the calls of the public API."""
        table = cls.__new__(cls)
        vars(table).update(vars(state))
        return table

    def refresh(self) -> Table:
        """The table as it is now."""
        return Table.of(super().refresh())

    def plan(self, predicate: str | Predicate | SparkColumn, **options: Any) -> Plan:
        """The files that may hold a row for which ``predicate`` is TRUE.

        ``plan_files(predicate, table=self, …)``, which lists the options.
        """
        return plan_files(predicate, table=self, **options)

    def status(self) -> Status:
        """What the table is made of, what indexes it has, and what is missing.

        No index is read; ``verify`` does that.
        """
        return status_of(self)


def open_table(
    table: AnyTable,
    *,
    schema: pa.Schema | StructType | None = None,
    partition_types: Mapping[str, pa.DataType] | None = None,
    derived: Derived | None = None,
    plain: bool = False,
) -> Table:
    """The table below a folder: any directory of Parquet files that Spark reads.

    Its files are those of ``spark.read.parquet(path)``: the files in the folder, or,
    if there are folders named ``k=v``, those in such folders.

    Args:
        table: a path or URI; a ``Table`` is returned as it is.
        schema: the columns, as for ``spark.read.schema``: an Arrow schema or a PySpark
            ``StructType``.  A file that lacks one of them holds NULL.  By default they
            are those of one footer, as in Spark.
        partition_types: types of hive partition columns, by name, where the
            reader does not let Spark infer them.
        derived: what the partition columns were made of; by default what
            ``set_derived`` has committed.
        plain: take the folder for one of Parquet files, even if the log of Delta,
            Iceberg, Hudi or another format in it says which files count.

    Raises:
        TableError: there is no such folder, or no Parquet file in it, or Spark refuses
            its folders, or it is a table of another format.
    """
    if isinstance(table, Table):
        return table
    if schema is not None and not isinstance(schema, pa.Schema):
        engine = engine_type(schema)
        if engine is None:
            raise TableError(
                f"no schema: {schema!r} (accepted: an Arrow schema or a PySpark "
                "StructType)"
            )
        schema = engine.arrow_schema(schema)
    return Table.of(
        open_state(
            table,
            schema=schema,
            partition_types=partition_types,
            derived=derived,
            plain=plain,
        )
    )


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
) -> BuildReport[Table]:
    """Build the indexes that are missing, beside the data, in one commit.

    The data files are not touched.  Files that have all of it are not read again,
    so a second call is cheap, and a call after an append indexes the new files.
    Files that are gone are forgotten, and packs that have become many are merged.

    Args:
        table: a ``Table``, a path or a URI: any directory of Parquet files.
        indexes: by column, a kind's name, a spec, or a list of them, such as
            ``{"city": "bitmap", "price": ["bloom", BitSliced()]}``.  Every column
            gets min/max statistics too: ``"*"`` stands for every column not named,
            and is ``"minmax"`` unless it is said; ``{"*": None}`` is no statistics
            of the others, ``{"city": None}`` none of this one.  The table remembers
            what it was asked.  None is all that it was given before
            (``refresh_indexes``), and on a table without indexes lets the advisor
            choose: it measures candidates on a few files (``advise``), and the
            report's ``advice`` says what it took and why.
        columns: to choose for; by default all that have an order.
        queries: a workload to choose by, as conditions or whole SELECTs.
        max_bytes_ratio: cap of all indexes of the table together, as a part of the
            data's bytes; to choose by.
        timezone: of the queries' session; as for ``plan_files``.
        spark: a session whose executors do the work; None is a process pool here.
        workers: how many processes, without Spark; by default one a core.
        progress: called with the number of tasks done and of all tasks.
        plain: as for ``open_table``.
        repair: whether indexes that are there are looked at, and built again where
            they are damaged.  None looks at what is cheap to know: whether packs are
            there with their size and, on a local disk, whether their directories are
            whole.  True reads every index byte, False nothing.

    Returns:
        What was built; its ``table`` has the new indexes.

    Raises:
        TableError: there is no such table.
        PredicateError: a column does not exist, or a query cannot be read.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
        AdviceError: there is nothing to choose by, or indexes were named as well.
    """
    opened = open_state(table, plain=plain, fresh=True)
    wish = AdviceRequest(columns, queries, max_bytes_ratio, timezone)
    report = build_advised(
        opened,
        indexes,
        wish,
        runner=_runner(spark, workers),
        progress=progress,
        repair=repair,
    )
    return cast("BuildReport[Table]", replace(report, table=Table.of(report.table)))


def refresh_indexes(
    table: AnyTable,
    *,
    spark: SparkSession | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    repair: bool | None = None,
) -> BuildReport[Table]:
    """Bring the indexes that a table has up to date with its files, in one commit.

    New, changed and damaged files get the indexes that the table was given so far,
    named or chosen; files that are gone are forgotten; nothing is chosen anew.
    (``Table.refresh()`` is something else: it lists the files again.)

    Args:
        table: a ``Table``, a path or a URI.
        spark: a session whose executors do the work; None is a process pool here.
        workers: how many processes, without Spark; by default one a core.
        progress: called with the number of tasks done and of all tasks.
        repair: as for ``build_indexes``.

    Raises:
        TableError: there is no such table.
    """
    opened = open_state(table, fresh=True)
    runner = _runner(spark, workers)
    report = refresh(opened, runner=runner, progress=progress, repair=repair)
    return cast("BuildReport[Table]", replace(report, table=Table.of(report.table)))


def _runner(spark: SparkSession | None, workers: int | None) -> Runner:
    if spark is not None:
        return engine_of(spark).runner()
    return LocalRunner.default() if workers is None else LocalRunner(workers)


def drop_indexes(
    table: AnyTable,
    *,
    columns: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
) -> Table:
    """Forget indexes, in one commit; the table without them.

    Args:
        table: a ``Table``, a path or a URI.
        columns: of these columns only.
        kinds: of these kinds only; ``"minmax"`` stands for the statistics.

    Raises:
        PredicateError: a column does not exist.
        UnknownIndexError: there is no such kind.
    """
    opened = open_state(table, fresh=True)
    return Table.of(drop(opened, columns=columns, kinds=kinds))


def merge_packs(
    table: AnyTable, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> Table:
    """Merge small packs into few large ones, in one commit; the table with them.

    Builds do this of themselves where packs become many; here all are merged that are
    not large, and those that are hardly in use.  The data files are not read,
    and answers stay the same.  A pack that cannot be read, or fails a check, stays as
    it is, and the table's ``notes`` name it.  The old packs stay on disk for readers
    of older commits.

    Args:
        table: a ``Table``, a path or a URI.
        max_files: how many data files a pack may hold.
        max_bytes: at how many bytes a pack is closed.

    Raises:
        TableError: there is no such table.
    """
    opened = open_state(table, fresh=True)
    merged, notes = merge(opened, max_files=max_files, max_bytes=max_bytes)
    return Table.of(merged.noted(notes))


def set_derived(
    table: AnyTable, columns: Mapping[str, str], *, zone: str | None = None
) -> Table:
    """Declare what the partition columns were made of, in one commit; the table.

    ``{"year": "year(ctime)", "month": "month(ctime)"}`` lets a condition on ``ctime``
    leave out folders.  It must be true of every file: nobody reads them to see.

    Args:
        table: a ``Table``, a path or a URI.
        columns: by partition column, a function of one column of the files in SQL;
            an empty mapping takes the declaration back.
        zone: of the session that wrote the files; without it the wall clock of a
            timestamp is only known to a day.

    Raises:
        PredicateError: there is no such partition column, or the function cannot be
            judged.
        TableError: there is no such table.
    """
    declared = Derived(dict(columns), zone)
    opened = open_state(table, fresh=True)
    trial = opened.with_derived(declared)
    for name, text in columns.items():
        derivation(trial, name, text)

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        record = declared.to_json() if columns else None
        return base.manifest, replace(base.properties, derived=record)

    commit(opened.location, change, operation="set_derived")
    return Table.of(opened.with_derived(None))


def write_table(
    df: DataFrame,
    path: str | os.PathLike[str],
    *,
    cluster_by: Sequence[str] | Workload = (),
    curve: str | None = "hilbert",
    partition_by: Sequence[str] = (),
    sort_within: Sequence[str] | None = None,
    rows_per_file: int = 1_000_000,
    balance: str = "rows",
    indexes: Request | None = None,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    plain: bool = False,
) -> Table:
    """Write ``df`` as a table of Parquet files, clustered and indexed.

    The rows, the schema and the NULLs are those of ``df``; only their order and
    their distribution over files is ours.  Any Parquet reader can read the result.
    One commit replaces what was there, once the new rows are whole and indexed, so
    ``df`` may read the very folder; a call that fails changes nothing.

    Args:
        df: any DataFrame of a classic session; it is evaluated three times (a
            count, a sample, the write), so cache it if it is expensive.
        path: a folder that does not exist, or is empty.
        cluster_by: columns that queries filter on; two to four work best.  Or a
            ``Workload``: the queries themselves, which choose the layout.
        curve: ``"hilbert"``, ``"zorder"``, ``"linear"`` or ``"hash"``; None writes
            ``df`` in the order that it has.  A workload chooses its own.
        partition_by: hive partition columns.
        sort_within: columns to sort by inside of each file; by default the curve.
        rows_per_file: target; a file holds about as many rows.
        balance: ``"rows"``, or ``"bytes"`` for as many files of nearly equal sizes
            before encoding.
        indexes: as for ``build_indexes``: None lets the advisor choose, and
            ``{"*": "minmax"}`` builds statistics alone.
        overwrite: replace all data files at ``path``.
        options: for Spark's Parquet writer, such as ``compression``.
        progress: called with the number of index tasks done and of all.
        plain: replace a table of another format too, with its log.

    Raises:
        TableError: ``path`` is a file or a table of another format, or is not empty and
            ``overwrite`` is not set, or there is no row with ``partition_by``.
        LayoutError: the layout is impossible.
        PredicateError: ``indexes`` names a column that does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
        CommitConflictError: the rows to replace are being published by others.
    """
    from skipindex.spark.writers.write import write_table as on_spark  # noqa: PLC0415

    return Table.of(
        on_spark(
            df,
            path,
            cluster_by=cluster_by,
            curve=curve,
            partition_by=partition_by,
            sort_within=sort_within,
            rows_per_file=rows_per_file,
            balance=balance,
            indexes=indexes,
            overwrite=overwrite,
            options=options,
            progress=progress,
            plain=plain,
        )
    )


def append(
    df: DataFrame,
    table: TableState | str | os.PathLike[str],
    *,
    indexes: Request | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Table:
    """Add the rows of ``df`` as new files, laid out and indexed as the others are.

    A query tree sends them the ways that it sent the first rows; other clusterings
    are fitted to the new rows.  No file that is there is changed.  One commit adds
    all rows with their indexes; a call that fails adds none.  Any number of appends,
    of ``optimize`` and one plain Spark append may run at once.

    Args:
        df: rows with the columns of the table, in any order; narrower types are
            cast to the table's.
        table: what ``write_table`` wrote.
        indexes: as for ``build_indexes``; None is the indexes that the table has.
        options: for Spark's Parquet writer, such as ``compression``.
        progress: called with the number of index tasks done and of all.

    Raises:
        TableError: there is no such table, its columns are not those of ``df`` or
            cannot hold their values, or another format keeps it.
        LayoutError: nothing says how the table is laid out.
        PredicateError: ``indexes`` names a column that does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
    """
    from skipindex.spark.writers.append import append as on_spark  # noqa: PLC0415

    return Table.of(
        on_spark(df, table, indexes=indexes, options=options, progress=progress)
    )
