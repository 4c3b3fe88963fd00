"""Adding attributes of joined tables to rows while they are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError, first_line
from skipindex.rewrite.selection.attributes import Attributes
from skipindex.spark.columns import column, quote


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
                f"cannot look up {name!r}: the rows have no column {one.key!r} "
                f"(columns: {', '.join(df.columns)})"
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
