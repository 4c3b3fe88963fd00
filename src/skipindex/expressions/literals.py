"""Literals of predicates: Python values, and their Spark SQL.

A value that Spark cannot hold (an infinite decimal, a time finer than microseconds,
another type) is refused, never rounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Final, TypeAlias, assert_never
from zoneinfo import ZoneInfo

import numpy as np

from skipindex.errors import PredicateError, kind_of

Literal: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | None
"""A value as written.  A datetime without a zone is a local time of the session."""


def literal_of(value: object) -> Literal:
    """``value``, or the Python value that a numpy scalar is."""
    item = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.datetime64) and isinstance(item, int):  # nanoseconds
        micros = value.astype("datetime64[us]")
        item = micros.item() if micros == value else value
    match item:
        case None if not isinstance(value, np.datetime64):
            return None
        case bool() | int() | float() | str() | bytes():
            return item
        case Decimal() if item.is_finite():
            return item
        case datetime() if item != item or getattr(item, "nanosecond", False):  # noqa: PLR0124
            pass  # pandas: not a time, or finer than Spark's timestamps
        case datetime() if isinstance(item.tzinfo, ZoneInfo):
            return item.replace(tzinfo=timezone(item.utcoffset() or timedelta()))
        case date():
            return item
    raise PredicateError(
        f"not a literal: {kind_of(value)} (accepted: bool, int, float, Decimal, str, "
        "bytes, date, datetime, None)"
    )


def literal_sql(value: Literal) -> str:
    """``value`` as a Spark SQL literal of the same type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return _double_sql(value)
        case Decimal():
            return f"{value:f}BD"
        case int():
            return str(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case str():
            return _string_sql(value)
        case datetime():
            zone, offset = value.tzinfo, value.utcoffset()
            if isinstance(zone, ZoneInfo) and zone.key and not value.fold:
                # A region of which Spark knows the rules.
                clock = value.replace(tzinfo=None).isoformat(sep=" ")
                return f"TIMESTAMP '{clock} {zone.key}'"
            if offset is not None and (value.fold or offset % timedelta(minutes=1)):
                value = value.astimezone(UTC)  # such an offset has no form in SQL
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            assert_never(value)


def literals_sql(values: Iterable[Literal]) -> str:
    """Literals with commas between them; long lists of one plain kind together."""
    listed = tuple(values)
    match set(map(type, listed)):
        case kinds if kinds == {int}:
            return ", ".join(map(str, listed))
        case kinds if kinds == {str}:
            together = "".join(map(str, listed))
            if not any(character in together for character in _SPECIAL):
                return "'" + "', '".join(map(str, listed)) + "'"
    return ", ".join(map(literal_sql, listed))


def _double_sql(value: float) -> str:
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124
        return f"CAST('{value}' AS DOUBLE)"
    return f"{value!r}D"


_ESCAPES: Final = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        "\n": "\\n",
        "\r": "\\r",
        "\0": "\\u0000",  # "\\0" and two digits are another character
    }
)


_SPECIAL: Final = [*map(chr, _ESCAPES), "$"]
"""What a string has another spelling for."""


def _string_sql(value: str) -> str:
    # Spark would replace ${name}, also in a string.
    return "'" + value.translate(_ESCAPES).replace("${", "$\\{") + "'"
