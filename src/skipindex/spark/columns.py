"""Columns of a DataFrame by name: lookup, quoting, and checks for clustering."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from skipindex.errors import LayoutError, TableError, first_line
from skipindex.source.parquet.spark_json import ROW_METADATA
from skipindex.spark.settings import is_case_sensitive

_BINARY_COLLATION: Final = "UTF8_BINARY"
_ORDERABLE: Final = (
    types.BooleanType,
    types.NumericType,
    types.DateType,
    types.TimestampType,
    types.TimestampNTZType,
    types.DayTimeIntervalType,
    types.StringType,
    types.BinaryType,
)
_ACCEPTED: Final = (
    "boolean, integers, float, double, decimal, date, timestamp, timestamp_ntz, "
    "day-time interval, string without collation, binary"
)


def quote(name: str) -> str:
    """The name as SQL reads it back, dots, spaces and backticks included."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The top-level column of exactly that name."""
    return sf.col(quote(name))


def is_atomic(dtype: types.DataType) -> bool:
    """Whether values can be compared and hashed."""
    return isinstance(dtype, _ORDERABLE)


def arrow_schema(schema: types.StructType) -> pa.Schema:
    """The schema as Arrow types; instants are in UTC."""
    # Newer versions of Spark ask for the zone and older ones do not take it.
    asked = inspect.signature(to_arrow_schema).parameters
    if "timezone" in asked:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def declared(schema: types.StructType) -> pa.Schema:
    """The schema as Arrow types, with Spark's own JSON in its metadata.

    A type that Arrow lacks becomes null: such a column has no index.
    """
    fields = [pa.field(field.name, _arrow_type(field)) for field in schema]
    return pa.schema(fields, {ROW_METADATA: schema.json().encode()})


def _arrow_type(field: types.StructField) -> pa.DataType:
    try:
        return arrow_schema(types.StructType([field])).field(0).type
    except (PySparkException, TypeError, ValueError):
        return pa.null()


def spark_schema(schema: pa.Schema) -> types.StructType:
    """The schema as Spark types: what ``declared`` was given, or Arrow's types."""
    text = (schema.metadata or {}).get(ROW_METADATA)
    if text is not None:
        return _read_schema(text)
    try:
        return from_arrow_schema(schema)
    except PySparkException as error:
        reason = first_line(error)
        raise TableError(f"not a schema of Spark: {reason}") from error


def schema_of(df: DataFrame) -> types.StructType:
    """The schema of a DataFrame, also with types that the driver alone knows."""
    try:
        return df.schema
    except PySparkException:
        return _read_schema(df._jdf.schema().json())  # noqa: SLF001 (no public name)


class _DriversType(types.DataType):
    """A type that PySpark cannot read, as the driver's JSON has it."""

    def __init__(self, spelled: Any) -> None:
        self.spelled = spelled

    def simpleString(self) -> str:  # noqa: N802 (PySpark's name)
        return json.dumps(self.spelled)

    def jsonValue(self) -> Any:  # noqa: N802
        return self.spelled


def _read_schema(text: str | bytes) -> types.StructType:
    """The schema of Spark's JSON, which it has again as its own JSON."""
    return types.StructType(list(map(_read_field, json.loads(text)["fields"])))


def _read_field(field: dict[str, Any]) -> types.StructField:
    try:
        return types.StructField.fromJson(copy.deepcopy(field))
    except (PySparkException, ArithmeticError, LookupError, TypeError, ValueError):
        dtype = _DriversType(field["type"])
        notes = field.get("metadata")
        return types.StructField(field["name"], dtype, field["nullable"], notes)


def row_size(schema: types.StructType) -> Column:
    """The bytes of a row before encoding, about; never NULL and above 0.

    Nested values count as their JSON does.
    """
    total: Column = sf.lit(1)
    for field in schema:
        values = column(field.name)
        match field.dataType:
            case types.StringType() | types.BinaryType():
                size = sf.octet_length(values)
            case types.ArrayType() | types.MapType() | types.StructType():
                size = sf.octet_length(sf.to_json(sf.struct(values)))
            case _:
                size = sf.lit(8)
        total = total + sf.coalesce(size, sf.lit(0))
    return total.cast("bigint")


def resolve(df: DataFrame, names: Sequence[str], *, role: str) -> tuple[str, ...]:
    """The names as the DataFrame spells them."""
    if isinstance(names, str):
        raise LayoutError(
            f"cannot {role} the string {names!r} (accepted: a list of column names)"
        )
    is_exact = is_case_sensitive(df.sparkSession)
    result: list[str] = []
    for name in names:
        matches = [
            known
            for known in df.columns
            if known == name or (not is_exact and known.lower() == name.lower())
        ]
        if len(matches) != 1:
            problem = "no such column" if not matches else "the name is ambiguous"
            raise LayoutError(
                f"cannot {role} {name!r}: {problem} (columns: {df.columns!r})"
            )
        if matches[0] in result:
            raise LayoutError(f"cannot {role} {matches[0]!r} twice")
        result.extend(matches)
    return tuple(result)


def require_order(field: types.StructField) -> None:
    """Raise LayoutError unless rows can be clustered by the column."""
    dtype = field.dataType
    if not is_atomic(dtype) or _is_collated(dtype):
        raise LayoutError(
            f"cannot cluster by column {field.name!r}: type {dtype.simpleString()} "
            f"is not supported (supported: {_ACCEPTED})"
        )


def _is_collated(dtype: types.DataType) -> bool:
    """Whether strings sort by a language's rules and not by their bytes."""
    return getattr(dtype, "collation", _BINARY_COLLATION) != _BINARY_COLLATION
