"""Values of a domain as scalars of Arrow, and the types that they are compared in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import (
    INT64_MAX,
    INT64_MIN,
    Domain,
    big_decimal_from_key,
    float_from_key,
)

_WIDEST: Final = 38
"""Digits of a decimal of 128 bits."""
_KEY: Final = 16
"""Bytes of a decimal's key; what is longer stands between two keys."""


def compared_type(domain: Domain, dtype: pa.DataType) -> pa.DataType:
    """The type that a column is compared in; its own one where that is exact."""
    types = pa.types
    match domain.name:
        case "int":
            return dtype if types.is_signed_integer(dtype) else pa.int64()
        case "bool":
            return pa.bool_()
        case "date":
            return pa.date32()
        case "timestamp" | "timestamp_ntz":
            return pa.timestamp("us", dtype.tz)
        case "float":
            return pa.float64()
        case "decimal" | "big_decimal":
            if types.is_decimal128(dtype):
                return dtype
            return pa.decimal128(_WIDEST, domain.scale)
        case _:
            return pa.large_binary()


def number_of(value: Value, domain: Domain) -> Value:
    """A value of a decimal as its unscaled number, and others as they are.

    A text that stands between two decimals is the upper one.
    """
    if domain.name != "big_decimal" or not isinstance(value, bytes):
        return value
    return big_decimal_from_key(value[:_KEY]) + bool(value[_KEY:])


def ends_of(domain: Domain, dtype: pa.DataType) -> tuple[int, int] | None:
    """The least value that a compared type has, and the first that it has not.

    None where it has all values of the domain.  Decimals are unscaled numbers.
    """
    match domain.name:
        case "int" | "date":
            end = 1 << (dtype.bit_width - 1)
            return -end, end
        case "timestamp" | "timestamp_ntz":
            return INT64_MIN, INT64_MAX + 1
        case "decimal" | "big_decimal":
            return 1 - 10**domain.digits, 10**domain.digits
        case _:
            return None


def is_between(value: Any, low: Any, high: Any) -> bool:
    """Whether ``low <= value < high``; None is "no bound", and lies between all."""
    if value is None:
        return True
    return (low is None or low <= value) and (high is None or value < high)


def scalar_of(value: Value, domain: Domain, dtype: pa.DataType) -> pa.Scalar:
    """A value of a column, as ``number_of`` has it, in the type of a comparison."""
    if isinstance(value, bytes):
        return pa.scalar(value, dtype)
    match domain.name:
        case "float":
            return pa.scalar(float_from_key(value), dtype)
        case "decimal" | "big_decimal":
            digits = tuple(map(int, str(abs(value))))
            return pa.scalar(Decimal((int(value < 0), digits, -domain.scale)), dtype)
        case "date":
            return pa.scalar(value, pa.int32()).cast(dtype)
        case "timestamp" | "timestamp_ntz":
            return pa.scalar(value, pa.int64()).cast(dtype)
        case "bool":
            return pa.scalar(bool(value), dtype)
        case _:
            return pa.scalar(value, dtype)


def array_of(values: list[Value], domain: Domain, dtype: pa.DataType) -> pa.Array:
    """Values of a column in the type that it is compared in."""
    return pa.array([scalar_of(value, domain, dtype) for value in values], dtype)


def joined(parts: list[pc.Expression], *, every: bool) -> pc.Expression:
    """The AND, if ``every``, or the OR of expressions, no deeper than it must be."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        left = parts[-1:] if len(parts) % 2 else []
        parts = [a & b if every else a | b for a, b in pairs] + left
    return parts[0]
