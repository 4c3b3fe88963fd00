"""Literals of Catalyst in SQL, of the value and the type that they have there.

Catalyst holds a date as days, a time as microseconds, a text as bytes.  Next to values
of its own type, a literal may be written with another type and the same value, if the
planner brings that into the domain of those values exactly: ``compared`` says so.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from skipindex.expressions import literal_sql
from skipindex.expressions.domain import EPOCH, EPOCH_UTC
from skipindex.spark.catalyst.sql_text import OPAQUE

INTEGERS: Final = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
"""The suffixes of literals of these types."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
MICROSECONDS: Final = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}
"""The units of time that the planner reads, and that always have one length."""
_MOST_STEPS: Final = 999_999_999
"""Units of an interval."""


def literal_text(kind: str, value: Any, *, compared: bool = False) -> str:
    """A literal of Spark's type ``kind``; ``opaque()`` if SQL has no form for it.

    ``value`` is as ``ExpressionJson.java`` writes it.  It is ``compared`` if the other
    operands of a comparison are of the same type.
    """
    match kind, value:
        case _, None:
            return literal_sql(None)
        case ("boolean", bool()) | ("string", str()):
            return literal_sql(value)
        case (("tinyint" | "smallint" | "int" | "bigint"), int()):
            return f"{value}{'' if compared else INTEGERS[kind]}"
        case (("float" | "double"), str()):
            return _number(float(value), is_double=compared or kind == "double")
        case "binary", str():
            return literal_sql(bytes.fromhex(value))
        case "timestamp_ntz", int() if compared:
            # As text it is brought into the domain of a wall clock without a zone.
            return moment_text(kind, value).removeprefix("TIMESTAMP_NTZ ")
        case (("date" | "timestamp" | "timestamp_ntz"), int()):
            return moment_text(kind, value)
        case _, str() if (match := _DECIMAL.fullmatch(kind)) is not None:
            digits, scale = int(match[1]), int(match[2])
            return _decimal(Decimal(value), digits, scale, compared=compared)
    return interval_text(kind, value)


def moment_text(kind: str, number: int) -> str:
    """A date or a time, of Spark's type ``kind``, from Spark's number for it."""
    try:
        match kind:
            case "date":
                return literal_sql(EPOCH + timedelta(days=number))
            case "timestamp":
                return literal_sql(EPOCH_UTC + timedelta(microseconds=number))
            case "timestamp_ntz":
                wall_clock = EPOCH_UTC + timedelta(microseconds=number)
                return f"TIMESTAMP_NTZ '{wall_clock.replace(tzinfo=None)}'"
    except OverflowError:  # Spark's years go beyond Python's 9999
        pass
    return OPAQUE


def interval_text(kind: str, value: Any) -> str:
    """An interval of whole units of one kind; ``opaque()`` for any other one."""
    if not kind.startswith("interval ") or not isinstance(value, int):
        return OPAQUE
    if kind.removeprefix("interval ").partition(" ")[0] in {"year", "month"}:
        return _interval(value, "MONTH")
    for unit, length in MICROSECONDS.items():
        if value % length == 0:
            return _interval(value // length, unit)
    return OPAQUE


def _interval(number: int, unit: str) -> str:
    if abs(number) > _MOST_STEPS:
        return OPAQUE
    return f"INTERVAL '{number}' {unit}"


def _number(value: float, *, is_double: bool) -> str:
    text = literal_sql(value)
    return text if is_double else re.sub("D$", "F", text).replace("DOUBLE", "FLOAT")


def _decimal(value: Decimal, precision: int, scale: int, *, compared: bool) -> str:
    """A decimal; its type counts where something is computed of it."""
    text = literal_sql(value)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "Spark has no NaN among its decimals"
    read_as = max(len(digits), -exponent), -exponent
    if compared or read_as == (precision, scale):
        return text
    return f"CAST({text} AS DECIMAL({precision},{scale}))"
