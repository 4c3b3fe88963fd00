"""Rows with the columns and types of a table, or a refusal."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Final

from pyspark.sql import DataFrame, types

from skipindex.errors import TableError
from skipindex.spark.columns import column

_INTEGERS: Final[dict[type[types.DataType], int]] = {
    types.ByteType: 3,
    types.ShortType: 5,
    types.IntegerType: 10,
    types.LongType: 19,
}
"""Integer types by width, and their digits."""

_EXACT_DIGITS: Final[dict[type[types.DataType], int]] = {
    types.FloatType: 7,
    types.DoubleType: 15,
}
"""Integers of so many digits are floats without loss; 2**24 and 2**53 are above."""


def conformed(
    df: DataFrame, schema: types.StructType, partitions: Collection[str]
) -> DataFrame:
    """The rows with the columns of ``schema`` in its order.

    A column is cast where its type is widened without loss.  The types of partition
    columns do not matter, because their values are folders.
    """
    _check_names(df.columns, schema.names)
    chosen = []
    for field in schema:
        own = df.schema[field.name].dataType
        values = column(field.name)
        if field.name in partitions or _is_alike(own, field.dataType):
            chosen.append(values)
        elif _widens(own, field.dataType):
            chosen.append(values.cast(field.dataType).alias(field.name))
        else:
            raise TableError(
                f"cannot append column {field.name!r} of type {own.simpleString()} to "
                f"{field.dataType.simpleString()} (accepted: that type, or a narrower "
                "one without other fields)"
            )
    return df.select(*chosen)


def _check_names(texts: list[str], wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in texts]
    unknown = [name for name in texts if name not in wanted]
    if not (missing or unknown or len(texts) != len(wanted)):
        return
    by_case = {name.lower(): name for name in missing}
    spelled = [
        f"{name!r} is {by_case[name.lower()]!r} in the table"
        for name in unknown
        if name.lower() in by_case
    ]
    problem = "; ".join(spelled) or f"missing: {missing}, not in the table: {unknown}"
    raise TableError(
        f"cannot append columns {sorted(texts)} to {sorted(wanted)} ({problem}; "
        "accepted: the columns of the table, each once, in any order)"
    )


def _is_alike(one: types.DataType, other: types.DataType) -> bool:
    """Whether two types are one, up to what may be NULL."""
    return _every_leaf(operator.eq, one, other)


def _widens(narrow: types.DataType, wide: types.DataType) -> bool:
    """Whether the wide type holds every value of the narrow one exactly."""
    return _every_leaf(_leaf_widens, narrow, wide)


def _every_leaf(
    rule: Callable[[types.DataType, types.DataType], bool],
    one: types.DataType,
    other: types.DataType,
) -> bool:
    """Whether a rule holds for two types, in nested ones for all that they contain."""
    match one, other:
        case types.StructType(), types.StructType():
            return one.names == other.names and all(
                _every_leaf(rule, a.dataType, b.dataType)
                for a, b in zip(one, other, strict=True)
            )
        case types.ArrayType(), types.ArrayType():
            return _every_leaf(rule, one.elementType, other.elementType)
        case types.MapType(), types.MapType():
            return _every_leaf(rule, one.keyType, other.keyType) and _every_leaf(
                rule, one.valueType, other.valueType
            )
    return rule(one, other)


def _leaf_widens(narrow: types.DataType, wide: types.DataType) -> bool:
    if narrow == wide or isinstance(narrow, types.NullType):
        return True
    match narrow, wide:
        case types.FloatType(), types.DoubleType():
            return True
        case types.DecimalType(), types.DecimalType():
            room = wide.precision - wide.scale
            return wide.scale >= narrow.scale and room >= (
                narrow.precision - narrow.scale
            )
    digits = _INTEGERS.get(type(narrow))
    if digits is None:
        return False
    if isinstance(wide, types.DecimalType):
        return wide.precision - wide.scale >= digits
    return digits <= _INTEGERS.get(type(wide), _EXACT_DIGITS.get(type(wide), 0))
