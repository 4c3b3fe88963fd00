"""Plans, and reading by them in one call."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from skipindex.api.extras import needs_spark
from skipindex.api.journal import warn_once
from skipindex.build.runners import LocalRunner, Runner
from skipindex.errors import TableError
from skipindex.expressions import Predicate
from skipindex.planner import by_segment
from skipindex.planner import plan as planner
from skipindex.planner.by_segment import KeptFiles
from skipindex.planner.engine import engine_of
from skipindex.planner.plan import Plan
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.uris import StorageOptions
from skipindex.table import TableState

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

AnyTable: TypeAlias = TableState | str | os.PathLike[str]


def located(table: AnyTable, options: StorageOptions | None) -> AnyTable | Location:
    """Where a table is, with the options of its file system.

    Raises:
        TableError: an option is unknown or refused, or the table is open already.
    """
    if not options:
        return table
    if isinstance(table, TableState):
        raise TableError(
            f"{table!r} is open, so it has its storage_options (accepted: with a URI)"
        )
    return location_of(table, options)


def plan_files(
    predicate: str | Predicate | SparkColumn,
    *,
    table: AnyTable,
    timezone: str | None = None,
    case_sensitive: bool = False,
    kinds: Collection[str] | str | None = None,
    without: Collection[str] | str = (),
    limit: int | None = None,
    order_by: str | Sequence[str] | None = None,
    workers: int | None = None,
    plain: bool = False,
    session: CacheSession | None = None,
    storage_options: StorageOptions | None = None,
    now: datetime | None = None,
) -> Plan:
    """The files that may hold a row for which ``predicate`` is TRUE.

    No other file holds one.  A file whose index is missing, stale, damaged or too
    new is read, and the plan says so.

    Args:
        predicate: a WHERE condition in Spark SQL, one built with ``col``, or a
            PySpark ``Column``.
        table: a ``Table``, a path or a URI.
        timezone: the time zone of the session that will read; without it, timestamps
            that are written without a zone prune nothing.
        case_sensitive: how column names are matched (``spark.sql.caseSensitive``).
        kinds: names of the index kinds that may be used (``"minmax"``,
            ``"bloom"`` …, ``"file_map"`` for the maps), and are always asked; by
            default all that there are, where asking them can be worth it.
        without: names of the kinds that may not be used.
        limit: so many matching rows are enough, so other files are not read.
        order_by: with ``limit``, the first rows in this order are wanted: ``"x"``,
            or a list such as ``["x DESC NULLS LAST", "y"]``.  Files are left out by
            the statistics of the first column.
        workers: processes that look at rows, where that takes one of them seconds;
            1 is this one alone, None is one for every core.
        plain: as for ``open_table``.
        session: a ``skipindex.api.CacheSession``, which holds index bytes that were
            read for later plans; None is that of the process (``set_cache_bytes``).
        storage_options: as for ``open_table``.
        now: what ``now()`` stands for in SQL text and in a ``Column``, with a time
            zone; by default the clock.  ``current_date()``, and whole days of
            ``now() - INTERVAL 7 DAYS``, are those of ``timezone``.  The plan has
            literals for them (``Plan.moment``), so whenever it is read, the rows are
            those of this moment.

    Raises:
        PredicateError: it cannot be parsed, or names a column that is not there.
        PlanError: ``limit`` is negative, ``order_by`` is no order, there are no
            ``workers``, or ``now`` has no time zone.
        TableError: there is no such table.
        UnknownIndexError: ``kinds`` or ``without`` names a kind that does not exist.

    >>> sx.plan_files("city = 'Rome' AND price < 4", table=path).paths
    ['part-0.parquet']
    """
    plan = planner.plan_files(
        predicate,
        table=located(table, storage_options),
        timezone=timezone,
        case_sensitive=case_sensitive,
        kinds=kinds,
        without=without,
        limit=limit,
        order_by=order_by,
        workers=workers,
        plain=plain,
        session=session,
        now=now,
    )
    for reason in (*plan.table.notes, *plan.evaluation.reader.notes):
        warn_once(plan.table.folder, reason)
    return plan


def plan_by_segment(
    predicate: str | Predicate,
    *,
    table: str | os.PathLike[str],
    spark: SparkSession | None = None,
    workers: int = 1,
    timezone: str | None = None,
    case_sensitive: bool = False,
    kinds: Collection[str] | str | None = None,
    without: Collection[str] | str = (),
    storage_options: StorageOptions | None = None,
    now: datetime | None = None,
) -> KeptFiles:
    """The files that ``open_table(table, trust="log").plan(predicate)`` keeps.

    For tables of so many files that their statistics should not be in one process: each
    task plans over one segment of the log, a million files at most.  Where the log is
    damaged or does not name all files, it is that plan itself, made in this process.

    Args:
        predicate: as for ``plan_files``, but no PySpark ``Column``.
        table: a path or URI, of a table whose files change only through skipindex.
        spark: a session, whose executors then run the tasks.
        workers: processes that run them, without ``spark``; 1 is this one.
        timezone: as for ``plan_files``.
        case_sensitive: as for ``plan_files``.
        kinds: as for ``plan_files``.
        without: as for ``plan_files``.
        storage_options: as for ``open_table``.
        now: as for ``plan_files``.

    Raises:
        PredicateError: as for ``plan_files``.
        TableError: as for ``open_table`` with ``trust="log"``.
        BuildError: a worker process was killed, or Spark gave a task up.
        EngineError: Spark is not installed.

    >>> from skipindex.api import plan_by_segment
    >>> declared = table.declare_exclusive()
    >>> list(plan_by_segment("price < 4", table=path))
    ['part-0.parquet']
    """
    runner: Runner = LocalRunner(workers)
    if spark is not None:
        with needs_spark():
            runner = engine_of(spark).runner()
    return by_segment.plan_by_segment(
        predicate,
        location=location_of(table, storage_options),
        runner=runner,
        timezone=timezone,
        case_sensitive=case_sensitive,
        kinds=kinds,
        without=without,
        now=now,
    )


def read(
    table: AnyTable,
    predicate: str | Predicate | SparkColumn,
    *,
    spark: SparkSession,
    plain: bool = False,
    storage_options: StorageOptions | None = None,
) -> DataFrame:
    """The rows of ``table`` for which ``predicate`` is TRUE; plans, then reads.

    The same rows and columns as ``spark.read.parquet(path).where(predicate)``; with
    ``spark.sql.parquet.mergeSchema``, those of all files.

    Args:
        table: a ``Table``, a path or a URI.
        predicate: as for ``plan_files``.
        spark: the session that reads, whose settings count for the plan.
        plain: as for ``open_table``.
        storage_options: as for ``open_table``; Spark has settings of its own.

    Raises:
        PredicateError: it cannot be parsed, or names a column that is not there.
        PlanError: a setting of the session would give the plan another meaning.
        TableError: there is no such table.
        EngineError: Spark is not installed.

    >>> sx.read(path, "city = 'Rome' AND price < 4", spark=spark).count()
    1
    """
    with needs_spark():
        from skipindex.spark.reading import read as on_spark  # noqa: PLC0415
    place = located(table, storage_options)
    return on_spark.read(spark, place, predicate, plain=plain)
