"""Steps that all writers share: ordering rows, a folder of their own, counting."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession, types
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError, first_line
from skipindex.layout import Answers, n_files_for
from skipindex.rewrite.selection.attributes import Attributes, from_json
from skipindex.source import UNREADABLE, column_reader, has_int96
from skipindex.spark.columns import column, quote, resolve
from skipindex.spark.placement.cluster import cluster
from skipindex.spark.runner import SparkFailedError, watched
from skipindex.spark.settings import session_settings
from skipindex.spark.ship import has_driver
from skipindex.spark.writers.file_size import row_group_options
from skipindex.storage.file_system.location import Location
from skipindex.storage.telling import growing_part
from skipindex.table import TableState

_TIMES: Final = "spark.sql.parquet.outputTimestampType"
_AS_DEFINED: Final = {
    _TIMES: "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""Settings under which dates and times are stored as Parquet defines them."""
_WAIT: Final = 60.0
"""Seconds for the count of a finished job, which comes in a message of its own."""


def own_session(spark: SparkSession, table: TableState | None = None) -> SparkSession:
    """A session of the same application that writes what every reader understands.

    It has the caller's settings, which stay as they are for other threads, except for
    dates and times: they are written as Parquet defines them.  Where the files of
    ``table`` have times of 96 bits, new files have them too: other engines take them
    for times without a zone, and would shift one of the two kinds.
    """
    clone = spark._jsparkSession.cloneSession()  # noqa: SLF001 - no public name
    own = SparkSession(spark.sparkContext, clone)
    for name, value in _stored_like(table).items():
        own.conf.set(name, value)
    return own


def _stored_like(table: TableState | None) -> Mapping[str, str]:
    """The settings by which times are stored as in the files of a table."""
    has_old = table is not None and _has_int96(table)
    return {**_AS_DEFINED, _TIMES: "INT96"} if has_old else _AS_DEFINED


@contextmanager
def _to_be_stored(df: DataFrame, like: TableState | None) -> Iterator[DataFrame]:
    """The rows, in a session that stores times as in the files of a table."""
    spark = df.sparkSession
    if has_driver(spark) and not _is_observed(df):
        yield rebound(df, own_session(spark, like))
        return
    # What a caller observes of the rows is told to the caller's session alone.
    with session_settings(spark, _stored_like(like)):
        yield df


def _is_observed(df: DataFrame) -> bool:
    """Whether the caller waits for metrics of these rows."""
    plan = df._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public name
    return "CollectMetrics" in plan.treeString()


def _has_int96(table: TableState) -> bool:
    """Whether the file that says what columns a table has stores times so."""
    try:
        with column_reader(table.location, table.schema_path) as file:
            return has_int96(file)
    except UNREADABLE:
        return False


def rebound(df: DataFrame, spark: SparkSession) -> DataFrame:
    """The same rows, as a DataFrame of another session of the application.

    What is computed of them from then on goes by the settings of that session.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - no public name
    sql = jvm.org.apache.spark.sql
    datasets = sql.Dataset if spark.version.startswith("3.") else sql.classic.Dataset
    plan = df._jdf.queryExecution().analyzed()  # noqa: SLF001
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001


def sorted_within(
    df: DataFrame, within: Sequence[str], partition_by: Sequence[str]
) -> DataFrame:
    """The rows of each partition in order; as they are where ``within`` is empty.

    Partition columns come first, because Spark's writer sorts by them otherwise.
    """
    if not within:
        return df
    first = resolve(df, partition_by, role="partition by")
    inner = resolve(df, within, role="sort by")
    return df.sortWithinPartitions(*map(column, (*first, *inner)))


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Rows in the partitions that become the files of a table.

    Args:
        rows: one partition for each file, unless ``limit`` cuts them.
        layout: what the table records.
        limit: the most rows of a file; 0 is as many as a partition has.
    """

    rows: DataFrame
    layout: Mapping[str, Any]
    limit: int = 0

    def write(
        self, location: Location, folder: str, options: Mapping[str, str] | None
    ) -> None:
        """Write the files below a folder that no other job knows."""
        settings = {
            "maxRecordsPerFile": str(self.limit),
            **row_group_options(self.rows.sparkSession, self.layout, options or {}),
            **(options or {}),
        }
        writer = self.rows.write.mode("error").options(**settings)
        if self.layout.get("partition_by"):
            writer = writer.partitionBy(*self.layout["partition_by"])
        spark, path = self.rows.sparkSession, location.spark_path(folder)
        if not has_driver(spark):
            writer.parquet(path)
            return
        tell = growing_part("writing", "tasks")
        try:
            watched(spark, lambda: writer.parquet(path), tell, "new files")
        except SparkFailedError as failed:
            raise failed.reason from None


def lay_out(
    df: DataFrame,
    layout: Mapping[str, Any],
    location: Location,
    *,
    rows_per_file: int | None,
    n_rows: int | None = None,
    n_files: int | None = None,
    balance: str = "rows",
) -> LaidOut:
    """The rows in a layout that a table has recorded, or will record.

    ``rows_per_file`` is the target; None if ``n_files`` says how many files a curve
    makes.  ``n_rows`` of None counts ``df``, if a curve needs it.
    """
    parts: Sequence[str] = layout.get("partition_by", ())
    within: Sequence[str] = layout.get("sort_within") or ()
    if not (layout.get("cluster_by") and layout.get("curve")):
        rows = sorted_within(df, within, parts)
        return LaidOut(rows, layout, rows_per_file or 0)
    n_rows = df.count() if n_rows is None else n_rows
    if n_files is None:
        n_files = n_files_for(n_rows, rows_per_file or n_rows)
    attributes = from_json(layout, location)
    rows = cluster(
        with_attributes(df, attributes, partition_by=parts),
        by=layout["cluster_by"],
        curve=layout["curve"],
        n_files=n_files,
        n_rows=n_rows,
        sort_within=within,
        partition_by=parts,
        balance=balance,
        max_ranges=layout.get("max_ranges"),
        answers=Answers.from_json(layout["answers"]) if "answers" in layout else None,
    )
    return LaidOut(rows.drop(*attributes), layout)


def write_counted(
    laid_out: LaidOut,
    location: Location,
    folder: str,
    options: Mapping[str, str] | None,
    *,
    like: TableState | None = None,
) -> int:
    """Write the files below a folder that no other job knows; how many rows went in.

    They are counted by the tasks that write them; of a task that is repeated, one
    run counts.  Times are stored as in the files of the table ``like``.
    """
    rows = Observation()
    with _to_be_stored(laid_out.rows, like) as frame:
        observed = frame.observe(rows, sf.count(sf.lit(1)).alias("n"))
        replace(laid_out, rows=observed).write(location, folder, options)
    result: list[int] = []
    # Spark waits for ever where its message queue has dropped the count.
    waiter = threading.Thread(target=lambda: result.append(rows.get["n"]), daemon=True)
    waiter.start()
    waiter.join(_WAIT)
    return result[0] if result else laid_out.rows.count()


def with_attributes(
    df: DataFrame, attributes: Attributes, *, partition_by: Sequence[str] = ()
) -> DataFrame:
    """The same rows, with the attributes after their columns; NULL without a match.

    If a key occurs twice, the least value is taken, so that a task that Spark
    repeats sends a row to the same file.  The text that a folder holds of a column of
    ``partition_by`` meets an integer key by the number that it says.
    """
    for name, one in attributes.items():
        path = one.location.spark_path()
        key = f"key of {name}"
        if one.key not in df.columns or {name, key} & set(df.columns):
            raise LayoutError(
                f"cannot look up {name!r}: the rows need a column {one.key!r}, and "
                f"none of that name (columns: {', '.join(df.columns)})"
            )
        try:
            reader = df.sparkSession.read.option("__globPaths__", "false")
            rows = reader.parquet(path)
            table_keys = rows.select(column(one.table_key))
            own = column(one.key)
            if one.key in partition_by:
                own = _folder_key(df, one.key, table_keys)
            _check_kinds(df.select(own.alias(one.key)), table_keys)
            looked_up = (
                rows.where(column(one.table_key).isNotNull())
                .groupBy(column(one.table_key).alias(key))
                .agg(sf.min(column(one.attribute)).alias(name))
            )
            joined = df.join(looked_up, own == column(key), "left")
        except PySparkException as error:
            raise LayoutError(
                f"cannot look up {one.attribute!r} in {path!r}: {first_line(error)}"
            ) from error
        df = joined.drop(key)
    return df


def _folder_key(df: DataFrame, name: str, table_keys: DataFrame) -> Column:
    """A partition column as a key of the table: rows to rewrite have it as text."""
    (other,) = table_keys.schema
    is_text = df.schema[name].dataType == types.StringType()
    if is_text and isinstance(other.dataType, types.IntegralType):
        return sf.expr(f"try_cast({quote(name)} AS BIGINT)")
    return column(name)


def _check_kinds(rows: DataFrame, table: DataFrame) -> None:
    """Raise ``LayoutError`` if a row could meet two keys, distinct as text."""
    # ``1`` equals both ``'1'`` and ``'01'``, so the row would be there twice.
    (one,), (other,) = rows.schema, table.schema
    kinds = (one.dataType, other.dataType)
    are_integers = all(isinstance(kind, types.IntegralType) for kind in kinds)
    if not are_integers and kinds != (types.StringType(), types.StringType()):
        shown = " and ".join(kind.simpleString() for kind in kinds)
        raise LayoutError(
            f"cannot look up {one.name!r} as {other.name!r}: they are {shown} "
            "(accepted: two integers, or two strings)"
        )
