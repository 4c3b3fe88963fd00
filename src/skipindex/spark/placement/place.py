"""The column that says where each row goes, computed in Python workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf
from pyspark.sql.pandas import functions as udfs
from pyspark.sql.pandas.types import from_arrow_type

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.domain import domain_of
from skipindex.layout import Layout
from skipindex.spark.columns import (
    arrow_schema,
    column,
    declared,
    is_atomic,
    quote,
)
from skipindex.spark.placement.router import Router

HAS_ARROW_UDF: Final = hasattr(udfs, "arrow_udf")
"""Spark 4.1 hands Arrow arrays to a column function; before, pandas series."""

_ColumnFunction: TypeAlias = Callable[..., Column]

_PLACE_TYPE: Final = "struct<key: bigint, label: int>"
_FLOAT_BITS: Final = 32


def place_column(
    df: DataFrame, router: Router, *, partition_by: Sequence[str] = ()
) -> Column:
    """The column of ``Router.place``, a struct of key and label.

    Args:
        df: the rows.
        router: where rows go.
        partition_by: columns that folders hold as text.  A stored layout may know them
            by another type than the rows have; it is then given what the text says.
    """
    layout = router.layout
    salt = [sf.xxhash64(*_salt_columns(df))] if layout.needs_salt else []
    found = [_argument(df, layout, name, partition_by) for name in layout.columns]
    if HAS_ARROW_UDF:
        arrow_place: _ColumnFunction = udfs.arrow_udf(  # type: ignore[call-overload]
            _arrow_function(router), _PLACE_TYPE
        )
        return arrow_place(*(sf.expr(one.text) for one in found), *salt)
    fields = [types.StructField(str(i), one.dtype) for i, one in enumerate(found)]
    dtypes = arrow_schema(types.StructType(fields)).types
    pandas_place: _ColumnFunction = udfs.pandas_udf(  # type: ignore[call-overload]
        _pandas_function(router, dtypes), _PLACE_TYPE
    )
    return pandas_place(*chain.from_iterable(map(_for_pandas, found)), *salt)


class _Argument(NamedTuple):
    """A column as the layout takes it: an expression, and its type."""

    text: str
    dtype: types.DataType


def _argument(
    df: DataFrame, layout: Layout, name: str, partition_by: Sequence[str]
) -> _Argument:
    field, text = df.schema[name], quote(name)
    wanted = layout.domains.get(name) if name in partition_by else None
    if wanted is None or _domain_tag(field) == wanted.tag:
        return _Argument(text, field.dataType)
    narrow = wanted.name == "float" and wanted.bits == _FLOAT_BITS
    arrow = pa.float32() if narrow else wanted.dtype
    dtype = from_arrow_type(arrow, prefer_timestamp_ntz=True)
    # A value that the type does not have, such as an appended 'x' among numbers, goes
    # where NULL goes.
    cast = f"try_cast(CAST({text} AS STRING) AS {dtype.simpleString()})"
    return _Argument(cast, dtype)


def _domain_tag(field: types.StructField) -> str:
    """The tag of the column's domain; nothing for a type that has none."""
    (arrow,) = declared(types.StructType([field])).types
    try:
        return domain_of(arrow, field.name).tag
    except UnsupportedTypeError:
        return ""


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


def _for_pandas(one: _Argument) -> list[Column]:
    """The column in a form that pandas holds without loss.

    Dates and timestamps as integers since 1970, because they would become slow
    objects or end in the year 2262.  Numbers with which of them are NULL, because NULL
    would become NaN, and integers beside it floats, which lose digits.
    """
    values = sf.expr(one.text)
    match one.dtype:
        case types.DateType():
            values = sf.unix_date(values)
        case types.TimestampType():
            values = sf.unix_micros(values)
        case types.TimestampNTZType():
            epoch = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
            values = sf.expr(f"timestampdiff(MICROSECOND, {epoch}, {one.text})")
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
