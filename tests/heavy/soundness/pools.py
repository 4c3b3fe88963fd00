"""The edge values of every column type, and files made of them.

A ``Pool`` is a column type with few values, all of them at some edge.  A row is a
pair of one of them and a small integer, so that the truth of a predicate is found
once a pair and counted for any number of files by one matrix product.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, cached_property
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from tests.oracle import compare
from tests.strategies import DATES, DOUBLES, MOMENTS, TEXTS, decimal, neighbours

HOUR: Final = timedelta(hours=1)
SECOND: Final = (None, -1, 0, 1, 7)
"""The values of the second column, ``w``."""

_SUMMER: Final = tuple(
    datetime.fromisoformat(text)
    for text in (
        "2020-03-08 01:59:59.999999",
        "2020-03-08 02:30:00",
        "2020-03-08 03:00:00",
        "2020-03-08 06:59:59.999999",
        "2020-03-08 07:00:00",
        "2020-11-01 01:30:00",
        "2020-11-01 05:30:00",
        "2020-11-01 06:00:00",
        "2020-11-01 06:30:00",
    )
)
"""Around both changes of New York's clocks, as wall clocks and as UTC."""

OTHER_ZONES: Final = (
    *("Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo"),
    *("Africa/Casablanca", "Pacific/Apia", "Asia/Tehran", "America/Havana"),
)


@dataclass(frozen=True)
class Pool:
    """One column type at its edges.

    Args:
        name: of the row in the matrix.
        dtype: of the column.
        values: distinct, none NULL, in Spark's order but for ties.
        foreign: literals of other types that Spark compares without an error.
        zone: the time zone of the session.
    """

    name: str
    dtype: pa.DataType
    values: tuple[Any, ...]
    foreign: tuple[Any, ...] = ()
    zone: str = "UTC"

    @cached_property
    def pairs(self) -> list[tuple[Any, Any]]:
        """Every row there can be: NULL and the values, each with each ``w``."""
        return [(v, w) for v in (None, *self.values) for w in SECOND]

    @cached_property
    def literals(self) -> list[Any]:
        """The values, what is next to them, what is outside of the type, NULL."""
        near = [n for value in self.values for n in neighbours(value, self.dtype)]
        own: dict[str, Any] = {repr(n): n for n in near if _fits(n, self.dtype)}
        return [*own.values(), *self.foreign, None]

    @cached_property
    def own_literals(self) -> list[Any]:
        """Those of the column's own type, as a list of them must be."""
        return [*self.values, None]

    def files(self, random_files: int, seed: int) -> Iterator[list[int]]:
        """Rows of files, as places in ``pairs``: every shape, then random ones."""
        rng = random.Random(f"{seed} {self.name}")

        def rows(*values: int) -> list[int]:
            return [v * len(SECOND) + rng.randrange(len(SECOND)) for v in values]

        n = len(self.values)
        yield []
        yield rows(0)
        yield rows(0, 0, 0)
        for v in range(1, n + 1):
            yield rows(v)
            yield rows(v, v, v)
            yield rows(v, 0)
        for v in range(1, n):
            yield rows(v, v + 1)
        yield rows(1, n)
        yield rows(1, 0, n)
        yield rows(*range(1, n + 1))
        yield rows(*range(n, -1, -1))
        for _ in range(random_files):
            among = rng.sample(range(n + 1), rng.randint(1, min(n + 1, 6)))
            yield rows(*rng.choices(among, k=rng.choice([2, 5, 20])))
            yield rows(*[v for v in range(n + 1) if v != among[0]])

    def arrow(self, places: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """One file: the values under each name of ``columns``, and ``w``."""
        pairs = [self.pairs[i] for i in places]
        values = pa.array([v for v, _ in pairs], self.dtype)
        second = pa.array([w for _, w in pairs], pa.int32())
        return pa.table({**dict.fromkeys(columns, values), "w": second})

    def counts(self, files: Sequence[Sequence[int]]) -> np.ndarray:
        """How often every pair is in every file."""
        found = np.zeros((len(files), len(self.pairs)), np.int64)
        for i, places in enumerate(files):
            np.add.at(found[i], list(places), 1)
        return found


@cache
def pools(*zones: str) -> tuple[Pool, ...]:
    """Every column type that has an index; timestamps in two time zones and these."""
    halves = (Decimal("0.5"), Decimal("-2.5"), *DOUBLES)
    beyond = (2**63, -(2**63) - 1, 10**20, Decimal("1e30"))
    found = [Pool("boolean", pa.bool_(), (False, True))]
    for bits in (8, 16, 32, 64):
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        large = (2**53, 2**53 + 1) if bits == 64 else ()
        values = (low, low + 1, -2, -1, 0, 1, 2, 7, 100, *large, high - 1, high)
        foreign = (low - 1, high + 1, *beyond, *halves)
        found.append(Pool(f"int{bits}", _integer(bits), values, foreign))
    for bits in (8, 16, 32):
        high = (1 << bits) - 1
        values = (0, 1, 2, 7, high // 2, high // 2 + 1, high - 1, high)
        foreign = (-1, high + 1, *beyond, *halves)
        unsigned = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32()}[bits]
        found.append(Pool(f"uint{bits}", unsigned, values, foreign))
    exact = (0, 1, -1, 2**53 + 1, Decimal("0.1"), Decimal("-0.5"))
    singles = [float(np.float32(d)) for d in DOUBLES if abs(d) < 3e38 or d != d]
    singles += [math.inf, -math.inf, 2.0**24, float(np.float32(1e-45))]
    found.append(Pool("float", pa.float32(), _ordered(singles), (*exact, *DOUBLES)))
    found.append(Pool("double", pa.float64(), _ordered(DOUBLES), exact))
    for precision, scale in ((4, 2), (18, 0), (18, 18), (20, 3), (38, 0), (38, 10)):
        high, one = 10**precision - 1, 10**scale
        unscaled = {-high, 1 - high, -one, -2, -1, 0, 1, 2, one, high - 1, high}
        numbers = [decimal(n, scale) for n in sorted(unscaled) if abs(n) <= high]
        found.append(
            Pool(
                f"decimal({precision},{scale})",
                pa.decimal128(precision, scale),
                tuple(numbers),
                _beside_decimals(precision, scale),
            )
        )
    found.append(Pool("string", pa.string(), _ordered(TEXTS)))
    raw = [*(text.encode() for text in TEXTS), b"\xff", b"\xff" * 64, b"\xff" * 70]
    found.append(Pool("binary", pa.binary(), _ordered(raw)))
    days = [*DATES, *(DATES[4] + timedelta(days=n) for n in (-1, 1))]
    texts = ("1970-01-01", "2020-02-29")
    found.append(Pool("date", pa.date32(), _ordered(days), texts))
    for zone in ("UTC", "America/New_York", *zones):
        moments = _ordered([*MOMENTS, *(_changes(zone) if zone in zones else _SUMMER)])
        place = "" if zone == "UTC" else f" in {zone}"
        instants = tuple(moment.replace(tzinfo=UTC) for moment in moments)
        walls = tuple(m for m in moments if 1 < m.year < 9999)
        found += [
            Pool(f"timestamp{place}", _micros("UTC"), instants, (*walls, *DATES), zone),
            Pool(f"timestamp_ntz{place}", _micros(None), moments, DATES, zone),
        ]
    whole = tuple(m for m in (*MOMENTS, *_SUMMER) if m.microsecond % 1000 == 0)
    found.append(Pool("timestamp_ntz(ms)", pa.timestamp("ms"), whole, DATES))
    return tuple(found)


def _changes(zone: str) -> Iterator[datetime]:
    """Around the last two changes before 2021, as wall clocks and as UTC."""
    rules, tick, n_changes = ZoneInfo(zone), timedelta(microseconds=1), 0
    at = datetime(2020, 12, 31, tzinfo=UTC)
    while n_changes < 2:
        wall = at.astimezone(rules).replace(tzinfo=None, fold=0)
        at -= HOUR
        if wall - at.astimezone(rules).replace(tzinfo=None) == HOUR:
            continue
        n_changes += 1
        for moment in (at.replace(tzinfo=None) + HOUR, wall, wall - HOUR):
            yield from (moment - HOUR / 2, moment - tick, moment, moment + HOUR / 2)


def zone_of(pool: Pool) -> ZoneInfo:
    """The session's time zone as the oracle takes it."""
    return ZoneInfo(pool.zone)


def _integer(bits: int) -> pa.DataType:
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]


def _micros(zone: str | None) -> pa.DataType:
    return pa.timestamp("us", zone)


def _ordered(values: Sequence[Any]) -> tuple[Any, ...]:
    """In Spark's order, each once by its ``repr`` (0.0 and -0.0 are two)."""
    kept = {repr(value): value for value in values}
    ordered = list(kept.values())
    for i in range(1, len(ordered)):  # few values: insertion is quick enough
        j = i
        while j and compare(ordered[j - 1], ordered[j]) > 0:
            ordered[j - 1], ordered[j] = ordered[j], ordered[j - 1]
            j -= 1
    return tuple(ordered)


def _beside_decimals(precision: int, scale: int) -> tuple[Any, ...]:
    numbers: list[Any] = [0, 1, -1, Decimal("0.005")]
    if precision < 38:  # beyond it, Spark rounds the column
        whole = 10 ** (precision - scale)
        numbers += [whole, -whole, decimal(whole * 10 + 1, 1)]
    return tuple(numbers)


def _fits(value: Any, dtype: pa.DataType) -> bool:
    """Spark takes the literal for one of the column's kind, without rounding."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.year > 0
    if isinstance(value, Decimal) and pa.types.is_decimal(dtype):
        return len(value.as_tuple().digits) <= 38
    return True
