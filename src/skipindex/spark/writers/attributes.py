"""Attributes of joined tables beside the rows, as long as these are laid out."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError, first_line
from skipindex.rewrite.selection.attributes import Attributes
from skipindex.spark.columns import column


def with_attributes(df: DataFrame, attributes: Attributes) -> DataFrame:
    """The same rows, with the attributes after their columns; NULL without a match.

    Of a key that is there twice, the least value is taken, so that a task that Spark
    repeats sends a row to the same file.

    Raises:
        LayoutError: a joined table cannot be read, or lacks a column, or ``df`` does.
    """
    for name, one in attributes.items():
        path = one.location.spark_path()
        if one.key not in df.columns or name in df.columns:
            raise LayoutError(
                f"cannot look up {name!r}: the rows need a column {one.key!r}, and "
                f"none of that name (columns: {', '.join(df.columns)})"
            )
        key = f"key of {name}"
        try:
            rows = df.sparkSession.read.parquet(path)
            looked_up = (
                rows.where(column(one.table_key).isNotNull())
                .groupBy(column(one.table_key).alias(key))
                .agg(sf.min(column(one.attribute)).alias(name))
            )
            joined = df.join(looked_up, column(one.key) == column(key), "left")
        except PySparkException as error:
            raise LayoutError(
                f"cannot look up {one.attribute!r} in {path!r}: {first_line(error)}"
            ) from error
        df = joined.drop(key)
    return df
