"""The column that says where each row goes, computed in Python workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf
from pyspark.sql.pandas import functions as udfs

from skipindex.spark.columns import arrow_schema, column, is_atomic, quote
from skipindex.spark.placement.router import Router

HAS_ARROW_UDF: Final = hasattr(udfs, "arrow_udf")
"""Spark 4.1 hands Arrow arrays to a column function; before, pandas series."""

_ColumnFunction: TypeAlias = Callable[..., Column]

_PLACE_TYPE: Final = "struct<key: bigint, label: int>"


def place_column(df: DataFrame, router: Router) -> Column:
    """The column of ``Router.place``, a struct of key and label."""
    layout = router.layout
    salt = [sf.xxhash64(*_salt_columns(df))] if layout.needs_salt else []
    if HAS_ARROW_UDF:
        arguments = [column(name) for name in layout.columns]
        arrow_place: _ColumnFunction = udfs.arrow_udf(  # type: ignore[call-overload]
            _arrow_function(router), _PLACE_TYPE
        )
        return arrow_place(*arguments, *salt)
    arguments = [_for_pandas(df, name) for name in layout.columns]
    pandas_place: _ColumnFunction = udfs.pandas_udf(  # type: ignore[call-overload]
        _pandas_function(router, _arrow_types(df, layout.columns)), _PLACE_TYPE
    )
    return pandas_place(*arguments, *salt)


def _arrow_function(router: Router) -> Callable[..., pa.Array]:
    def place(*columns: pa.Array) -> pa.Array:
        return router.place(columns)

    return place


def _arrow_types(df: DataFrame, names: Sequence[str]) -> list[pa.DataType]:
    schema = arrow_schema(types.StructType([df.schema[name] for name in names]))
    return list(schema.types)


def _pandas_function(
    router: Router, dtypes: Sequence[pa.DataType]
) -> Callable[..., pd.DataFrame]:
    def place(*columns: pd.Series) -> pd.DataFrame:
        arrays = [
            _from_pandas(series, dtype)
            for series, dtype in zip_longest(columns, dtypes, fillvalue=pa.int64())
        ]
        placed = router.place(arrays)
        return pd.DataFrame(
            {name: placed.field(name).to_numpy() for name in ("key", "label")}
        )

    return place


def _for_pandas(df: DataFrame, name: str) -> Column:
    """The column in a form that pandas holds without loss.

    Dates and timestamps as integers since 1970, because they would become slow
    objects or end in the year 2262; NaN as infinity, because it would become NULL.
    """
    values = column(name)
    match df.schema[name].dataType:
        case types.DateType():
            return sf.unix_date(values)
        case types.TimestampType():
            return sf.unix_micros(values)
        case types.TimestampNTZType():
            epoch = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
            return sf.expr(f"timestampdiff(MICROSECOND, {epoch}, {quote(name)})")
        case types.FloatType() | types.DoubleType():
            return sf.nanvl(values.cast("double"), sf.lit(float("inf")))
        case _:
            return values


def _from_pandas(series: pd.Series, dtype: pa.DataType) -> pa.Array:
    """The series as Arrow, from what ``_for_pandas`` made of the column.

    pandas holds integers with NULLs as floats: beyond 2**53 they lose digits, and a
    row may go to a neighbouring cell.
    """
    if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        dtype = pa.int32() if dtype.bit_width == 32 else pa.int64()
    return pa.Array.from_pandas(series, type=dtype, safe=False)


def _salt_columns(df: DataFrame) -> list[Column]:
    """The columns whose hash tells rows of one key apart."""
    seen = Counter(name.casefold() for name in df.columns)
    return [
        column(field.name)
        for field in df.schema.fields
        if is_atomic(field.dataType) and seen[field.name.casefold()] == 1
    ]
