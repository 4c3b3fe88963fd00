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


def enable(spark: SparkSession) -> None:
    """From now on every query of Spark reads only files that can hold a match.

    The rows of every query are those that Spark returns without it.  DataFrames, SQL
    text, views, catalog tables, joins, subqueries and CTEs count, also those that were
    defined before.  All sessions of the Spark application count: those that
    ``newSession`` makes, and those that a Thrift server in this driver makes for its
    connections.  A table is a folder of Parquet files with indexes beside them, as
    ``build_indexes`` leaves them; what else Spark reads stays as it is.  A file that is
    new, changed or without an index is read.  If planning fails, or takes longer than
    the setting ``skipindex.timeLimit`` (10 seconds), the query reads all files, and a
    warning is logged once.

    ``spark.conf.set("skipindex.enabled", "false")`` switches it off for what the
    session runs next, ``disable`` for all sessions.  A DataFrame that has run keeps its
    list of files: after files were replaced in place, define it again, as for Spark's
    own list.  ``skipindex.answers`` is another setting, false unless set: if it is
    true, counts, extremes and groups come from indexes where these know them.

    The sessions take statements in SQL too: ``OPTIMIZE … ZORDER BY``, ``CREATE INDEX``,
    ``VACUUM``, ``EXPLAIN SKIPPING`` and others.

    Args:
        spark: a classic session, of Spark 3.5 or newer.  Its driver compiles an
            optimizer rule; executors need nothing.

    Raises:
        EngineError: Spark is not installed, or the session is one of Spark Connect, or
            its version of Spark takes no such rule.

    >>> sx.enable(spark)
    >>> spark.read.parquet(path).where("price < 4").count()
    3
    >>> print(sx.last_plans(spark)[-1])
    /...table: 1 of 2 files for: ...price < 4...
    >>> sx.disable(spark)
    """
    with needs_spark():
        from skipindex.spark.pruning import session  # noqa: PLC0415
    check_session(spark)
    session.enable(spark, Statements())


def disable(spark: SparkSession) -> None:
    """Undo ``enable``: queries read all files again, those defined already too.

    That is so in all sessions of the Spark application.

    Args:
        spark: any session of it.

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
    """Let queries use a table as it was opened, and ``enable`` them.

    Not needed for a folder with indexes beside it.  A table that was opened with a
    ``schema`` or with derived partition columns is used as such.

    Args:
        spark: as for ``enable``.
        table: a ``Table``, a path or a URI, or the name of a table of the catalog.

    Raises:
        TableError: there is no such table.
        EngineError: as for ``enable``.

    >>> sx.register(spark, sx.open_table(path))
    >>> sx.disable(spark)
    """
    with needs_spark():
        check_session(spark)
    state = state_of(table, None, spark)
    declared = None if isinstance(table, str) else state.options.derived
    if state.options.folders is not None or declared != state.options.derived:
        state = state.by_folder(declared)  # each query asks the catalog itself
    if state.options.trust == "log":  # of a query Spark has the listing
        state = state.listed()
    with needs_spark():
        from skipindex.spark.pruning import session  # noqa: PLC0415
    session.register(spark, state, Statements())


def last_plans(spark: SparkSession) -> Sequence[QueryPlan]:
    """What the newest scans asked, and which files they read for it.

    At most 32, the newest last.  Each has the ``folder`` of the table, the
    ``condition`` as it was judged, ``n_files``, ``n_skipped``, ``n_read``, ``seconds``,
    the ``problem`` if nothing could be planned, and the ``plan`` with all reasons.

    Args:
        spark: a session; the plans are those of all sessions of its application, and
            there are none before ``enable``.

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
