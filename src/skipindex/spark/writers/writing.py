"""What all writers do with Spark: rows in order, to a folder of their own, counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from skipindex.spark.columns import column, resolve
from skipindex.storage.file_system.location import Location

_WAIT: Final = 60.0
"""Seconds for the count of a finished job, which comes in a message of its own."""


def own_session(spark: SparkSession) -> SparkSession:
    """A session of the same application with the same settings, to change alone.

    Other threads use the caller's session meanwhile, so its settings stay as they
    are.
    """
    clone = spark._jsparkSession.cloneSession()  # noqa: SLF001 - no public name
    return SparkSession(spark.sparkContext, clone)


def tree_limit(rows_per_file: int) -> int:
    """The most rows of a file by a query tree, whose leaves grow with the table.

    A leaf of a new tree has up to 3/2 of an even share.
    """
    return 2 * rows_per_file


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


def write_counted(
    df: DataFrame,
    location: Location,
    folder: str,
    *,
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> int:
    """Write the rows below a folder that no other job knows; how many went in.

    They are counted by the tasks that write them; of a task that is repeated, one
    run counts.
    """
    rows = Observation()
    observed = df.observe(rows, sf.count(sf.lit(1)).alias("n"))
    writer = observed.write.mode("error").options(**options)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(location.spark_path(folder))
    found: list[int] = []
    # Spark waits for ever where its message queue has dropped the count.
    waiter = threading.Thread(target=lambda: found.append(rows.get["n"]), daemon=True)
    waiter.start()
    waiter.join(_WAIT)
    return found[0] if found else df.count()
