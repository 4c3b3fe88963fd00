"""Hypothesis strategies: columns at their edges, tables of them, predicates.

    @given(st.data())
    def test_something(data):
        columns = data.draw(tables())            # {"a": ColumnData(...), ...}
        arrow = to_arrow(columns)                # the same as a pa.Table
        tree = data.draw(predicates(columns))
        kept = oracle.matching(
            tree, values_of(columns), integers=integers_of(columns)
        )

Values are what ``pa.Table.to_pylist`` gives: int, float, Decimal, str, bytes, bool,
date, datetime (in UTC for a timestamp with a zone, naive for one without), None.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from skipindex.expressions import (
    And,
    Column,
    ColumnComparison,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    Reference,
    Unsupported,
)


@dataclass(frozen=True)
class ColumnData:
    """One column: its Arrow type and its values, NULL as None."""

    dtype: pa.DataType
    values: tuple[Any, ...]

    def to_arrow(self) -> pa.Array:
        """The same as an Arrow array."""
        return pa.array(self.values, self.dtype)


TYPES: Final[tuple[pa.DataType, ...]] = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(4, 2),
    pa.decimal128(18, 0),
    pa.decimal128(18, 18),
    pa.decimal128(20, 3),
    pa.decimal128(38, 10),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
)
"""Every type that has an index, decimals on both sides of 18 digits."""

TEXTS: Final = (
    "",
    " ",
    "a",
    "a ",
    "ab",
    "abc",
    "B",
    "a%",
    "a_b",
    "a\\b",
    "\x00",
    "'",
    '"',
    "\n",
    "é",
    "e\u0301",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0001f33c",
    "\U0010ffff",
    "a\U0010ffff",
    "a" * 70,
    "a" * 69 + "b",
    "\U0010ffff" * 20,
    "x" * 300,
)
"""Texts whose order, length or characters have broken an index somewhere."""

DATES: Final = (
    date(1, 1, 1),
    date(1582, 10, 4),
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2020, 2, 29),
    date(9999, 12, 31),
)
MOMENTS: Final = tuple(
    datetime.fromisoformat(text)
    for text in (
        "0001-01-01 00:00:00",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00",
        "2020-03-08 02:30:00",
        "2020-11-01 01:30:00.000001",
        "9999-12-31 23:59:59.999999",
    )
)
DOUBLES: Final = (
    -math.inf,
    -1.7976931348623157e308,
    -1.0,
    -5e-324,
    -0.0,
    0.0,
    5e-324,
    0.1,
    1.0,
    9007199254740992.0,
    1.7976931348623157e308,
    math.inf,
    math.nan,
)


@cache
def elements(dtype: pa.DataType) -> SearchStrategy[Any]:
    """One value of ``dtype``, never NULL; edges of the type are likely."""
    types = pa.types
    if types.is_boolean(dtype):
        return st.booleans()
    if types.is_integer(dtype):
        return _integers(dtype.bit_width)
    if types.is_float64(dtype):
        return st.one_of(st.sampled_from(DOUBLES), st.floats(), _small().map(float))
    if types.is_float32(dtype):
        edges = [_single(double) for double in DOUBLES]
        return st.one_of(
            st.sampled_from(edges), st.floats(width=32), _small().map(float)
        )
    if types.is_decimal(dtype):
        return _decimals(dtype.precision, dtype.scale)
    if types.is_string(dtype):
        return st.one_of(
            st.sampled_from(TEXTS), st.text("ab%_\\é\U0010ffff", max_size=6), st.text()
        )
    if types.is_binary(dtype):
        encoded = st.sampled_from([text.encode() for text in TEXTS])
        return st.one_of(encoded, st.binary(max_size=6))
    if types.is_date(dtype):
        return st.one_of(st.sampled_from(DATES), st.dates(), _near_dates())
    if types.is_timestamp(dtype):
        zone = UTC if dtype.tz else None
        moments = st.one_of(st.sampled_from(MOMENTS), st.datetimes(), _near_moments())
        return moments.map(lambda moment: moment.replace(tzinfo=zone))
    raise TypeError(f"no values of type {dtype}")


@st.composite
def columns(
    draw: st.DrawFn,
    dtypes: Sequence[pa.DataType] = TYPES,
    *,
    min_size: int = 0,
    max_size: int = 30,
) -> ColumnData:
    """A column: empty, of one value, all NULL, of few values or of many.

    Args:
        draw: given by hypothesis.
        dtypes: the types to draw from.
        min_size: rows at least.
        max_size: rows at most.
    """
    dtype = draw(st.sampled_from(dtypes))
    one = elements(dtype)

    def many(value: SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(value, min_size=min_size, max_size=max_size))

    match draw(_SHAPES):
        case "few":
            some = [*draw(st.lists(one, min_size=1, max_size=3)), None]
            values = many(st.sampled_from(some))
        case "many with nulls":
            values = many(st.one_of(one, one, one, st.none()))
        case "many":
            values = many(one)
        case "one":
            values = [draw(one)] * draw(st.integers(min_size, max_size))
        case _:
            values = [None] * draw(st.integers(min_size, max_size))
    return ColumnData(dtype, tuple(values))


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    dtypes: Sequence[pa.DataType] = TYPES,
    max_columns: int = 3,
    min_rows: int = 0,
    max_rows: int = 30,
) -> dict[str, ColumnData]:
    """Columns of one length by their names ``a``, ``b``, ``c`` and so on.

    Args:
        draw: given by hypothesis.
        dtypes: the types to draw from.
        max_columns: one column at least, so many at most.
        min_rows: rows at least.
        max_rows: rows at most.
    """
    n_rows = draw(st.integers(min_rows, max_rows))
    n_columns = draw(st.integers(1, max_columns))
    return {
        name: draw(
            columns(dtypes, min_size=n_rows, max_size=n_rows),
            label=f"column {name}",
        )
        for name in "abcdefghij"[:n_columns]
    }


def to_arrow(table: Mapping[str, ColumnData]) -> pa.Table:
    """The drawn columns as an Arrow table."""
    return pa.table({name: column.to_arrow() for name, column in table.items()})


def values_of(table: Mapping[str, ColumnData]) -> dict[str, tuple[Any, ...]]:
    """The drawn columns as ``oracle.matching`` takes them."""
    return {name: column.values for name, column in table.items()}


def integers_of(table: Mapping[str, ColumnData]) -> frozenset[str]:
    """The names of the integer columns, as ``oracle.matching`` takes them."""
    integral = pa.types.is_integer
    return frozenset(name for name, data in table.items() if integral(data.dtype))


@st.composite
def literals(draw: st.DrawFn, column: ColumnData) -> Literal:
    """A literal to compare ``column`` with: of its own type or one that meets it.

    One of its values, a neighbour of one, an edge of the type, a value outside of
    the type's range, or NULL.  Spark compares them all without an error.
    """
    known = [value for value in column.values if value is not None]
    literal: Literal
    match draw(_LITERALS):
        case "value" if known:
            literal = draw(st.sampled_from(known))
        case "neighbour" if known:
            value = draw(st.sampled_from(known))
            literal = draw(st.sampled_from(neighbours(value, column.dtype)))
        case "foreign":
            literal = draw(_foreign(column.dtype))
        case "null":
            literal = None
        case _:
            literal = draw(elements(column.dtype))
    return literal


@st.composite
def atoms(
    draw: st.DrawFn,
    table: Mapping[str, ColumnData],
    *,
    unsupported: Sequence[str] = (),
    two_columns: bool = False,
) -> Predicate:
    """One leaf of a tree, most often over one column of ``table``.

    Args:
        draw: given by hypothesis.
        table: the columns.
        unsupported: texts of conditions that only the caller can judge.
        two_columns: whether columns of one type are compared, too.
    """
    name = draw(st.sampled_from(sorted(table)))
    column, reference = table[name], Reference((name,))
    match draw(_ATOMS):
        case "in":
            values = draw(st.lists(_own(column), max_size=5))
            return In(reference, tuple(values), draw(_BOOLEANS))
        case "null":
            return IsNull(reference, draw(_BOOLEANS))
        case "between":
            low, high = draw(literals(column)), draw(literals(column))
            return Column(reference).between(low, high)
        case "like" if pa.types.is_string(column.dtype):
            return draw(_likes(reference, column))
        case "constant":
            return Constant(draw(_TRUTHS))
        case "two columns" if two_columns:
            alike = [one for one in table if table[one].dtype == column.dtype]
            other = Reference((draw(st.sampled_from(sorted(alike))),))
            return ColumnComparison(reference, draw(_OPERATORS), other)
        case "unsupported" if unsupported:
            return Unsupported(draw(st.sampled_from(unsupported)), "opaque")
        case _:
            return Comparison(reference, draw(_OPERATORS), draw(literals(column)))


@st.composite
def predicates(
    draw: st.DrawFn,
    table: Mapping[str, ColumnData],
    *,
    max_leaves: int = 8,
    unsupported: Sequence[str] = (),
    two_columns: bool = False,
) -> Predicate:
    """A tree over the columns of ``table``: leaves, NOT, AND and OR.

    Args:
        draw: given by hypothesis.
        table: the columns, whose values the literals stay close to.
        max_leaves: leaves at most.
        unsupported: texts of conditions that only the caller can judge.
        two_columns: as for ``atoms``.
    """
    leaf = atoms(table, unsupported=unsupported, two_columns=two_columns)

    def node(n_leaves: int) -> Predicate:
        if n_leaves == 1:
            return Not(draw(leaf)) if draw(_RARELY) else draw(leaf)
        left = draw(st.integers(1, n_leaves - 1))
        children = (node(left), node(n_leaves - left))
        kind = draw(_JUNCTIONS)
        tree: Predicate = And(children) if kind == "and" else Or(children)
        return Not(tree) if draw(_RARELY) else tree

    return node(draw(st.integers(1, max_leaves)))


_BOOLEANS: Final = st.booleans()
_RARELY: Final = st.sampled_from([False, False, True])
_TRUTHS: Final = st.sampled_from([True, False, None])
_OPERATORS: Final = st.sampled_from(Operator)
_JUNCTIONS: Final = st.sampled_from(["and", "or"])
_SHAPES: Final = st.sampled_from(
    ["few", "few", "many with nulls", "many", "one", "null"]
)
_LITERALS: Final = st.sampled_from(
    ["value", "value", "neighbour", "neighbour", "edge", "foreign", "null"]
)
_ATOMS: Final = st.sampled_from(
    [
        *("comparison", "comparison", "comparison", "in", "between", "null", "like"),
        *("like", "constant", "unsupported", "unsupported", "two columns"),
    ]
)


# -- values ---------------------------------------------------------------------


def _small() -> SearchStrategy[int]:
    return st.integers(-3, 3)


def _integers(bits: int) -> SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = st.sampled_from([low, low + 1, -1, 0, 1, high - 1, high])
    return st.one_of(edges, st.integers(low, high), _small())


def _single(double: float) -> float:
    """The double as a 32-bit float, infinite where it is too large for one."""
    try:
        value: float = struct.unpack("<f", struct.pack("<f", double))[0]
    except OverflowError:
        return math.copysign(math.inf, double)
    return value


def _decimals(precision: int, scale: int) -> SearchStrategy[Decimal]:
    high = 10**precision - 1
    edges = st.sampled_from([-high, 1 - high, -1, 0, 1, high - 1, high])
    unscaled = st.one_of(edges, st.integers(-high, high), _small())
    return unscaled.map(lambda n: decimal(n, scale))


def decimal(unscaled: int, scale: int) -> Decimal:
    """``unscaled / 10 ** scale``, exact whatever Python's decimal context is."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _near_dates() -> SearchStrategy[date]:
    return _small().map(lambda days: date(2020, 1, 1) + timedelta(days=days))


def _near_moments() -> SearchStrategy[datetime]:
    start = datetime.fromisoformat("2020-01-01")
    return _small().map(lambda n: start + timedelta(microseconds=n))


# -- literals -------------------------------------------------------------------


def neighbours(value: Any, dtype: pa.DataType) -> list[Any]:
    """``value``, the nearest other values, and some that differ by a little."""
    near: list[Any] = []
    match value:
        case bool():
            near = [not value]
        case int():
            near = [value - 1, value + 1, decimal(value * 10 + 5, 1)]
        case float():
            near = [math.nextafter(value, -math.inf), math.nextafter(value, math.inf)]
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            assert isinstance(exponent, int)
            unscaled = int("".join(map(str, digits))) * (-1) ** sign
            steps = [(unscaled - 1, -exponent), (unscaled + 1, -exponent)]
            if dtype.precision < 38:  # beyond it, Spark rounds the column
                steps += [(unscaled * 10 + 1, 1 - exponent)]
            near = [decimal(n, scale) for n, scale in steps if abs(n) < 10**38]
        case str():
            near = [value + "\x00", value + "a", value[:-1], value.swapcase()]
        case bytes():
            near = [value + b"\x00", value[:-1], value + b"\xff"]
        case datetime():
            near = _shifted(value, timedelta(microseconds=1))
        case date():
            near = _shifted(value, timedelta(days=1))
    return [value, *near]


def _shifted(value: Any, step: timedelta) -> list[Any]:
    shifted = []
    for signed in (-step, step):
        try:
            shifted.append(value + signed)
        except OverflowError:  # beyond the year 9999
            continue
    return shifted


@cache
def _foreign(dtype: pa.DataType) -> SearchStrategy[Any]:
    """Literals of another type that Spark compares with ``dtype`` exactly."""
    types = pa.types
    if types.is_integer(dtype):
        high = 1 << (dtype.bit_width - 1)
        outside = st.sampled_from([-high - 1, high, 1 << 63, -(1 << 63) - 1])
        halves = _small().map(lambda n: Decimal(n) + Decimal("0.5"))
        return st.one_of(outside, halves, st.sampled_from(DOUBLES))
    if types.is_floating(dtype):
        return st.one_of(_small(), st.just(Decimal("0.1")), st.sampled_from(DOUBLES))
    if types.is_decimal(dtype):
        numbers: list[Any] = [0, 1, -1, Decimal("0.005")]
        if dtype.precision < 38:  # beyond it, Spark rounds the column
            whole = 10 ** (dtype.precision - dtype.scale)
            numbers += [whole, -whole]
        return st.sampled_from(numbers)
    if types.is_date(dtype):
        return st.sampled_from(["1970-01-01", "2020-02-29"])
    if types.is_timestamp(dtype):
        return st.sampled_from(DATES)
    return elements(dtype)


# -- predicates -----------------------------------------------------------------


def _own(column: ColumnData) -> SearchStrategy[Any]:
    """Literals of the column's own type, as a list of them must be."""
    known = [value for value in column.values if value is not None]
    present = [st.sampled_from(known)] * bool(known)
    return st.one_of(*present, elements(column.dtype), st.none())


@st.composite
def _likes(draw: st.DrawFn, name: Reference, column: ColumnData) -> Predicate:
    """Patterns from pieces: wildcards, escaped characters, bits of the values."""
    known = [text for text in column.values if text is not None]
    bits = sorted({text[:n] for text in known for n in (1, 2, 70)}) or ["a"]
    escape = draw(st.sampled_from(["\\", "\\", "/", "é"]))
    wild = st.sampled_from(["%", "_", escape + "%", escape + "_", escape * 2])
    text = st.sampled_from([_escaped(bit, escape) for bit in bits])
    pattern = "".join(draw(st.lists(st.one_of(wild, text, text), max_size=4)))
    return Like(name, pattern, escape, draw(_BOOLEANS))


def _escaped(text: str, escape: str) -> str:
    return "".join(escape + c if c in {"%", "_", escape} else c for c in text)
