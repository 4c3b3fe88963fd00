"""The batches of a stream that Spark gives to a function."""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from skipindex.errors import EngineError, TableError
from skipindex.source.folder.batch import Batch
from skipindex.table import TableState

_QUERY: Final = "sql.streaming.queryId"
"""The property of Spark's thread with the id that the checkpoint of a stream has."""


def batch_of(df: DataFrame, number: int) -> Batch:
    """Which batch of which stream Spark is about to write.

    Raises:
        EngineError: Spark is running no stream here, or does not tell which.
    """
    try:
        query = df.sparkSession.sparkContext.getLocalProperty(_QUERY)
    except PySparkException as error:
        raise EngineError(
            "a sink needs the driver of the stream, and Spark Connect has none here "
            "(accepted: a stream that is started in a classic session)"
        ) from error
    if query is None:
        raise EngineError(
            "a sink adds batches of streams, and this is none (accepted: "
            "stream.writeStream.foreachBatch(skipindex.sink(table)); append for others)"
        )
    return Batch(query, number)


def require_whole(table: TableState, batch: Batch) -> None:
    """Raise ``TableError`` if a damaged commit may be that of a batch."""
    if table.snapshot.damaged is not None:
        raise TableError(
            f"commit {table.snapshot.damaged} of {table.location.full('')!r} is "
            f"damaged, and may be that of batch {batch.number} of stream "
            f"{batch.query}; nothing was added (accepted: the commit as it was, from a "
            "backup; or table.refresh_indexes(repair=True), once you have seen that "
            "the table has no row of this batch)"
        )


def require_known(table: TableState, last: Batch) -> None:
    """Raise ``TableError`` if a table does not know of a batch that was added to it."""
    if last.query not in (table.snapshot.properties.streams or {}):
        raise TableError(
            f"{table.location.full('')!r} was replaced, or its log was lost, after "
            f"batch {last.number} of stream {last.query}, and nothing was added "
            "(accepted: a new checkpoint, whose stream reads the source anew)"
        )
