"""Values of every column type, and the SQL text of each value.

A value is drawn for a *place*, a small number.  Values of near places are near, so a
file whose rows share a place has narrow bounds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa

DAY: Final = dt.date(2020, 1, 1)
MOMENT: Final = dt.datetime(2020, 1, 1)


@dataclass(frozen=True)
class Kind:
    """A type of columns.

    Args:
        sql: its name in DDL.
        arrow: the type that files store.
        draw: a value for a place.
        text: a value as a literal of SQL; the random source chooses among the ways.
        family: what conditions may be asked.
    """

    sql: str
    arrow: pa.DataType
    draw: Callable[[Random, int], Any]
    text: Callable[[Random, Any], str]
    family: str


def _integer(
    low: int, high: int, step: int, width: int
) -> Callable[[Random, int], Any]:
    def draw(rng: Random, place: int) -> int:
        if rng.random() < 0.004:
            return rng.choice([low, high, 0, -1])
        return max(low, min(high, place * step + rng.randrange(width)))

    return draw


def _integer_text(rng: Random, value: int) -> str:
    ways = [str(value)] * 8
    ways += [f"'{value}'", f"{value}.0", f"{value}.5", f"{value}L", f"{value}D"]
    return rng.choice(ways)


def _double(rng: Random, place: int) -> float:
    odds = rng.random()
    if place % 5 == 0 and odds < 0.2:
        return math.nan
    if odds < 0.1:
        return rng.choice([-0.0, 0.0, -0.0])
    if odds > 0.99:
        return rng.choice([math.inf, -math.inf, 1e308, 5e-324])
    return round(rng.gauss(place, 2), 1)


def _float(rng: Random, place: int) -> float:
    if rng.random() < 0.05:
        return rng.choice([math.nan, -0.0, math.inf, 0.0])
    return float(np.float32(place + rng.randrange(16) / 10))


def _float_text(rng: Random, value: float) -> str:
    if math.isnan(value):
        return rng.choice(["double('NaN')", "float('NaN')"])
    if math.isinf(value):
        return f"double('{'-' if value < 0 else ''}Infinity')"
    ways = [f"{value!r}D"] * 3 + [f"float('{value!r}')"]
    if abs(value) < 1e6:
        ways += [f"{value:.2f}", str(int(value))]
    return rng.choice(ways)


def _decimal(digits: int, width: int) -> Callable[[Random, int], Any]:
    def draw(rng: Random, place: int) -> Decimal:
        unscaled = place * width + rng.randrange(-width // 4, width)
        return Decimal(unscaled).scaleb(-digits)

    return draw


def _decimal_text(rng: Random, value: Decimal) -> str:
    return rng.choice([f"{value:f}", f"{value:f}BD", f"'{value:f}'", f"{value:f}01"])


SUFFIXES: Final = ("", "a", "é", "日", "A", " b", "%", "_", "\U0001d11e", "ß", "'", "x")


def _string(rng: Random, place: int) -> str:
    odds = rng.random()
    if odds < 0.02:
        return ""
    if odds < 0.04:
        return "v" * 70 + rng.choice(SUFFIXES)
    return f"v{place:02}{rng.choice(SUFFIXES)}{rng.choice(SUFFIXES)}"


def quoted(text: str) -> str:
    """Text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _date(rng: Random, place: int) -> dt.date:
    if rng.random() < 0.006:  # before 1582 calendars differ
        return rng.choice(
            [dt.date(1970, 1, 1), dt.date(2999, 12, 31), dt.date(1500, 3, 1)]
        )
    return DAY + dt.timedelta(place * 10 + rng.randrange(15))


def _date_text(rng: Random, value: dt.date) -> str:
    return rng.choice(
        (
            *(f"date'{value}'", f"date'{value}'", f"'{value}'"),
            *(f"timestamp'{value} 00:00:00'", f"date'{DAY}' + {(value - DAY).days}"),
        )
    )


def _moment(rng: Random, place: int) -> dt.datetime:
    if rng.random() < 0.004:
        return dt.datetime(1500, 3, 1, 12)
    hours, micros = place * 24 + rng.randrange(36), rng.choice([0, 0, 1, 999_999])
    return MOMENT + dt.timedelta(hours=hours, microseconds=micros)


def _aware(rng: Random, place: int) -> dt.datetime:
    return _moment(rng, place).replace(tzinfo=dt.UTC)


def _moment_text(rng: Random, value: dt.datetime) -> str:
    plain = value.replace(tzinfo=None)
    ways = [f"timestamp'{plain}'", f"'{plain}'", f"timestamp_ntz'{plain}'"]
    ways += [
        f"timestamp'{plain}Z'",
        f"timestamp'{plain}+05:30'",
        f"date'{plain.date()}'",
    ]
    ways += [f"timestamp_ltz'{plain}'", f"'{plain.date()}'"]
    return rng.choice(ways)


def _boolean(rng: Random, place: int) -> bool:
    return place % 4 == 1 if place % 4 < 2 else rng.random() < 0.5


def _binary(rng: Random, place: int) -> bytes:
    return bytes([max(0, place) % 256, rng.randrange(200), 0xFF][: rng.randint(1, 3)])


def _struct(rng: Random, place: int) -> dict[str, Any]:
    inner = rng.random()
    return {
        "a": None if inner < 0.1 else place * 10 + rng.randrange(15),
        "b": None if inner > 0.9 else _string(rng, place),
    }


def _array(rng: Random, place: int) -> list[Any]:
    return [place + rng.randrange(5) for _ in range(rng.randrange(4))]


KINDS: Final = {
    "i": Kind("int", pa.int32(), _integer(-(2**31), 2**31 - 1, 10, 15),
              _integer_text, "integer"),
    "l": Kind("bigint", pa.int64(), _integer(-(2**63), 2**63 - 1, 3, 9),
              _integer_text, "integer"),
    "sh": Kind("smallint", pa.int16(), _integer(-(2**15), 2**15 - 1, 1, 5),
               _integer_text, "integer"),
    "ti": Kind("tinyint", pa.int8(), _integer(-128, 127, 2, 3),
               _integer_text, "integer"),
    "d": Kind("double", pa.float64(), _double, _float_text, "float"),
    "f": Kind("float", pa.float32(), _float, _float_text, "float"),
    "dec": Kind("decimal(12,2)", pa.decimal128(12, 2), _decimal(2, 400),
                _decimal_text, "decimal"),
    "big": Kind("decimal(30,4)", pa.decimal128(30, 4), _decimal(4, 9 * 10**19),
                _decimal_text, "decimal"),
    "s": Kind("string", pa.string(), _string, lambda _, v: quoted(v), "string"),
    "bo": Kind("boolean", pa.bool_(), _boolean, lambda _, v: str(v).lower(), "boolean"),
    "bin": Kind("binary", pa.binary(), _binary, lambda _, v: f"x'{v.hex()}'", "binary"),
    "dt": Kind("date", pa.date32(), _date, _date_text, "date"),
    "ts": Kind("timestamp", pa.timestamp("us", tz="UTC"), _aware,
               _moment_text, "moment"),
    "ntz": Kind("timestamp_ntz", pa.timestamp("us"), _moment, _moment_text, "moment"),
    "st": Kind("struct<a:int,b:string>",
               pa.struct([("a", pa.int32()), ("b", pa.string())]),
               _struct, lambda *_: "null", "struct"),
    "arr": Kind("array<int>", pa.list_(pa.int32()), _array, lambda *_: "null", "array"),
}  # fmt: skip
"""By the name of the column that has the type."""

ROW: Final = Kind(
    "bigint", pa.int64(), lambda rng, _: rng.randrange(1000), _integer_text, "integer"
)
"""Of the column ``id``, which numbers the rows of a table."""
