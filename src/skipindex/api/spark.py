"""Unchanged queries of Spark that read only the planned files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skipindex.api.calls import needs_spark
from skipindex.api.checks import check_session
from skipindex.api.functions import AnyTable, state_of
from skipindex.api.statements.run import Statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skipindex.spark.pruning.query_plan import QueryPlan


def enable(spark: SparkSession, *, observe: bool = False) -> None:
    """Make every query of Spark read only the files that can hold a matching row.

    A query returns the rows that Spark returns without this call.  It works for
    DataFrames, SQL text, views, catalog tables, joins, subqueries and CTEs, also those
    that were defined before.  It applies to all sessions of the Spark application, also
    those of ``newSession`` and of a Thrift server in this driver.

    Pruned are scans of folders of Parquet files that have indexes (``build_indexes``).
    Files that are new, changed or without an index are read.  If planning fails, or
    takes longer than the setting ``skipindex.timeLimit`` (10 seconds), the query reads
    all files, and a warning is logged once.

    ``spark.conf.set("skipindex.enabled", "false")`` turns it off for the next queries
    of the session, ``disable`` for all sessions.  A DataFrame that has run keeps its
    list of files: define it again after files were replaced in place.

    If few rows can match, the planner reads them in place of the scan: up to the bytes
    of the setting ``skipindex.rowsFromPlanner`` (``4m``; ``0`` turns it off).  Of other
    files, Spark reads the row groups that can hold a match, unless
    ``skipindex.rowGroups`` is false.  If the setting ``skipindex.answers`` is true
    (false by default), counts, extremes and groups are computed from indexes.

    ``spark.conf.set("skipindex.queries", "table")`` records the queries of the session
    beside each table (``skipindex.api.record_queries``).

    The sessions also accept SQL statements: ``OPTIMIZE … ZORDER BY``, ``CREATE INDEX``,
    ``VACUUM``, ``EXPLAIN SKIPPING`` and others.

    Args:
        spark: a classic session, of Spark 3.5 or newer.  Its driver loads an optimizer
            rule; executors need nothing.  If the classes of the rule are missing, or do
            not link with this Spark, a warning (``warnings``) says so and what to do,
            and all files are read.
        observe: the session skips nothing, as with ``skipindex.enabled=observe``.
            Each query is planned beside Spark, and recorded beside its tables with
            what it would skip: ``Table.usage`` and ``skipindex report`` show it.

    Raises:
        EngineError: Spark is not installed, or the session is one of Spark Connect.

    >>> sx.enable(spark)
    >>> spark.read.parquet(path).where("price < 4").count()
    3
    >>> print(sx.last_plans(spark)[-1])
    /...1 of 2 files for: ...price < 4...
    >>> sx.disable(spark)
    """
    with needs_spark():
        from skipindex.spark.pruning import session  # noqa: PLC0415
    check_session(spark)
    session.enable(spark, Statements())
    if observe:
        spark.conf.set("skipindex.enabled", "observe")


def disable(spark: SparkSession) -> None:
    """Undo ``enable``: queries read all files again, also those defined already.

    This applies to all sessions of the Spark application.

    Args:
        spark: any session of the application.

    Raises:
        EngineError: as for ``enable``.

    >>> sx.enable(spark)
    >>> sx.disable(spark)
    >>> sx.last_plans(spark)
    ()
    """
    with needs_spark():
        from skipindex.spark.pruning import session  # noqa: PLC0415
    check_session(spark)
    session.disable(spark)


def register(spark: SparkSession, table: AnyTable) -> None:
    """Make queries use a table as it was opened, and ``enable`` the session.

    This is needed only for a table that was opened with a ``schema`` or with derived
    partition columns.

    Args:
        spark: as for ``enable``.
        table: a ``Table``, a path or a URI, or the name of a table of the catalog.

    Raises:
        TableError: the table does not exist.
        EngineError: as for ``enable``.

    >>> sx.register(spark, sx.open_table(path))
    >>> sx.disable(spark)
    """
    with needs_spark():
        check_session(spark)
    state = state_of(table, spark)
    declared = None if isinstance(table, str) else state.options.derived
    if state.options.folders is not None or declared != state.options.derived:
        # Each query asks the catalog itself.
        state = state.reopened(derived=declared, folders=None)
    if state.options.trust == "log":  # of a query Spark has the listing
        state = state.reopened(trust="listing")
    with needs_spark():
        from skipindex.spark.pruning import session  # noqa: PLC0415
    session.register(spark, state, Statements())


def last_plans(spark: SparkSession) -> Sequence[QueryPlan]:
    """The plans of the newest scans: conditions, files read and files skipped.

    There are at most 32, the newest last, also of scans of Parquet files that no table
    with indexes was found for: their ``problem`` says so.  Each has the ``folder`` of
    the table, the evaluated ``condition``, ``n_files``, ``n_skipped``, ``n_read``,
    ``seconds``, the ``problem`` if planning failed, and the ``plan`` with the reason
    for every file.  If the planner read the rows, there are ``n_rows`` and ``n_bytes``.

    Args:
        spark: a session; the plans are those of all sessions of its application.  There
            are none before ``enable``.

    Raises:
        EngineError: as for ``enable``.

    >>> sx.enable(spark)
    >>> spark.read.parquet(path).where("city = 'Paris'").count()
    1
    >>> found = sx.last_plans(spark)[-1]
    >>> found.n_read, found.n_files
    (1, 2)
    >>> [file.path for file in found.plan.skipped]
    ['part-0.parquet']
    >>> sx.disable(spark)
    """
    with needs_spark():
        from skipindex.spark.pruning import session  # noqa: PLC0415
    check_session(spark)
    return session.last_plans(spark)
