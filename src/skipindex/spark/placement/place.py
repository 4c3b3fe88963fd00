"""The column that says where each row goes, computed in Python workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf
from pyspark.sql.pandas import functions as udfs

from skipindex.spark.columns import (
    arrow_schema,
    column,
    is_atomic,
    quote,
)
from skipindex.spark.placement.router import Router

HAS_ARROW_UDF: Final = hasattr(udfs, "arrow_udf")
"""Spark 4.1 hands Arrow arrays to a column function; before, pandas series."""

_ColumnFunction: TypeAlias = Callable[..., Column]

_PLACE_TYPE: Final = "struct<key: bigint, label: int>"


def place_column(df: DataFrame, router: Router) -> Column:
    """The column of ``Router.place``, a struct of key and label."""
    layout = router.layout
    salt = [sf.xxhash64(*_salt_columns(df))] if layout.needs_salt else []
    fields = [df.schema[name] for name in layout.columns]
    if HAS_ARROW_UDF:
        arrow_place: _ColumnFunction = udfs.arrow_udf(  # type: ignore[call-overload]
            _arrow_function(router), _PLACE_TYPE
        )
        return arrow_place(*(column(field.name) for field in fields), *salt)
    dtypes = arrow_schema(types.StructType(fields)).types
    pandas_place: _ColumnFunction = udfs.pandas_udf(  # type: ignore[call-overload]
        _pandas_function(router, dtypes), _PLACE_TYPE
    )
    return pandas_place(*chain.from_iterable(map(_for_pandas, fields)), *salt)


def _arrow_function(router: Router) -> Callable[..., pa.Array]:
    def place(*columns: pa.Array) -> pa.Array:
        return router.place(columns)

    return place


def _pandas_function(
    router: Router, dtypes: Sequence[pa.DataType]
) -> Callable[..., pd.DataFrame]:
    def place(*columns: pd.Series) -> pd.DataFrame:
        series = iter(columns)
        arrays = [_from_pandas(series, dtype) for dtype in dtypes]
        arrays += [pa.array(salt.to_numpy()) for salt in series]
        placed = router.place(arrays)
        return pd.DataFrame(
            {name: placed.field(name).to_numpy() for name in ("key", "label")}
        )

    return place


def _for_pandas(field: types.StructField) -> list[Column]:
    """The column in a form that pandas holds without loss."""
    values = column(field.name)
    # Dates and timestamps would become slow objects or end in 2262; NULL would become
    # NaN in numbers, and integers beside it floats, which lose digits.
    match field.dataType:
        case types.DateType():
            values = sf.unix_date(values)
        case types.TimestampType():
            values = sf.unix_micros(values)
        case types.TimestampNTZType():
            epoch = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
            values = sf.expr(
                f"timestampdiff(MICROSECOND, {epoch}, {quote(field.name)})"
            )
        case types.IntegralType() | types.FloatType() | types.DoubleType():
            pass
        case _:
            return [values]
    return [sf.coalesce(values, sf.lit(0)), values.isNull()]


def _from_pandas(series: Iterator[pd.Series], dtype: pa.DataType) -> pa.Array:
    """The next column as Arrow, from what ``_for_pandas`` made of it."""
    values = next(series)
    if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        dtype = pa.int32() if dtype.bit_width == 32 else pa.int64()
    if not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype)):
        return pa.Array.from_pandas(values, type=dtype, safe=False)
    is_null = next(series).to_numpy()
    return pa.array(values.to_numpy(), dtype, mask=is_null, from_pandas=False)


def _salt_columns(df: DataFrame) -> list[Column]:
    """The columns whose hash tells rows of one key apart."""
    seen = Counter(name.casefold() for name in df.columns)
    return [
        column(field.name)
        for field in df.schema.fields
        if is_atomic(field.dataType) and seen[field.name.casefold()] == 1
    ]
