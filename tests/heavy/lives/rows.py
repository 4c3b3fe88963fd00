"""Columns, their values, and the rows that a table holds by its specification."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

Names = tuple[str, ...]
"""The path of a column: its name, or behind those of structs."""
_DAY: Final = date(2024, 1, 30)
_MOMENT: Final = datetime(2024, 1, 30, 22, 59, 58, 123_456)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of columns.

    Args:
        name: in Delta's schemas.
        arrow: the type in files.
        pool: values in ascending order; each file has some that are neighbours.
        sql: a value as a literal that Spark and DuckDB read alike.
        functions: conditions on a column that stands for ``{}``.
    """

    name: str
    arrow: pa.DataType
    pool: Sequence[Any]
    sql: Callable[[Any], str]
    functions: tuple[str, ...] = ()

    def draw(self, rng: random.Random, n: int) -> list[Any]:
        """Values of one file, among them NULL or nothing else."""
        at = rng.randrange(len(self.pool))
        few = self.pool[at : at + rng.choice([1, 3, 6])]
        nulls = rng.choice([0.0, 0.0, 0.3, 0.9, 1.0])
        return [None if rng.random() < nulls else rng.choice(few) for _ in range(n)]


def _quoted(value: object) -> str:
    return f"'{value}'"


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return f"CAST('{'NaN' if math.isnan(value) else 'Infinity'}' AS DOUBLE)"


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, Context(prec=40))


_TEXTS: Final = (
    *("", " ", "A", "a", "a%b", "aa", "ab", "b", "x" * 31, "x" * 32, "x" * 32 + "y"),
    *("x" * 70, "y", "z", "z" * 5000, "é", "é" * 40, "é" * 3000, "ü", "\ud7ff" * 20),
    *("\ufffd", "\uffff" * 33, "😀", "😀" * 20, "😀" * 2000),
)
_DAYS: Final = [_DAY + timedelta(days=n) for n in (-20_000, *range(-3, 9), 900)]
_MOMENTS: Final = [
    _MOMENT + timedelta(hours=13 * n, microseconds=n) for n in (-20_000, *range(-3, 9))
]
_FLOATS: Final = (
    *(-math.inf, -1e300, -2.25, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 1e300),
    *(math.inf, math.nan),
)

KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            "integer",
            pa.int32(),
            (-(2**31), -70, *range(-2, 12), 70, 2**31 - 1),
            str,
            ("abs(CAST({} AS BIGINT)) = 2", "{} + 0.5 > 3", "coalesce({}, 3) = 3"),
        ),
        Kind(
            "long",
            pa.int64(),
            (-(2**53), -70, *range(-2, 12), 70, 2**53 + 1),
            str,
            ("{} % 3 = 1", "abs({}) <= 1", "coalesce({}, 3) = 3"),
        ),
        Kind(
            "string",
            pa.string(),
            _TEXTS,
            _quoted,
            ("length({}) = 1", "upper({}) = 'A'", "{} LIKE 'a%'", "{} LIKE '%b'"),
        ),
        Kind(
            "double",
            pa.float64(),
            _FLOATS,
            _float,
            ("{} IS NOT NULL AND isnan({})", "{} + 1 > 2.5"),
        ),
        Kind("float", pa.float32(), (-2.25, 0.0, 0.5, 3.0, math.nan), _float),
        Kind(
            "date",
            pa.date32(),
            _DAYS,
            lambda value: f"DATE '{value}'",
            ("year({}) = 2024", "month({}) = 2", "day({}) > 28"),
        ),
        Kind(
            "timestamp",
            pa.timestamp("us", "UTC"),
            [one.replace(tzinfo=UTC) for one in _MOMENTS],
            lambda value: f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'",
            ("CAST({} AS DATE) = DATE '2024-01-31'", "year({}) = 2024"),
        ),
        Kind(
            "timestamp_ntz",
            pa.timestamp("us"),
            _MOMENTS,
            lambda value: f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'",
        ),
        Kind(
            "decimal(10,2)",
            pa.decimal128(10, 2),
            [_decimal(n, 2) for n in (-(10**10) + 1, *range(-90, 260, 25))],
            str,
            ("{} + 1 > 2", "abs({}) = 0.15"),
        ),
        Kind(
            "decimal(30,4)",
            pa.decimal128(30, 4),
            [_decimal(n, 4) for n in (-(10**29) + 1, -7, 0, 5, 10**29 - 1)],
            str,
        ),
        Kind("boolean", pa.bool_(), (False, True), lambda v: str(v).upper(), ("{}",)),
    )
}


def order(value: Any) -> Any:
    """A key by which Spark orders values of one kind."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (True, 0.0) if is_nan else (False, value)


def cut(rng: random.Random, text: str, *, up: bool) -> str:
    """A text that is no greater, or no less, as statistics have long ones."""
    n = rng.choice([1, 8, 16, 32, 32, 1000])
    if len(text) <= n:
        return text
    return text[:n] + ("\U0010ffff" if up else "")


@dataclass(slots=True)
class Column:
    """A column, or a field of a struct, as it is called now.

    Args:
        number: its identity: what is added later under its name has another.
        name: in the table's schema; a rename changes it.
        stored: its name in the log's statistics, and in files that have names.
        kind: None for a struct.
        fields: of a struct.
        is_partition: whether its values are in the log, not in files.
        default: its value in files that were written before it was added.
    """

    number: int
    name: str
    stored: str
    kind: Kind | None
    fields: list[Column] = field(default_factory=list)
    is_partition: bool = False
    default: Any = None

    def draw(self, rng: random.Random, n: int) -> list[Any]:
        """Values for one file; those of a struct by the numbers of its fields."""
        if self.kind is not None:
            return self.kind.draw(rng, n)
        inner = {one.number: one.draw(rng, n) for one in self.fields}
        nulls = rng.choice([0.0, 0.3, 1.0])
        return [
            None
            if rng.random() < nulls
            else {k: values[i] for k, values in inner.items()}
            for i in range(n)
        ]

    def as_field(
        self,
        spelled: Callable[[Column], str],
        numbered: Callable[[Column], int | None] = lambda _: None,
    ) -> pa.Field:
        """The column in Arrow, its name and that of its fields spelled in some way."""
        dtype = (
            pa.struct([one.as_field(spelled, numbered) for one in self.fields])
            if self.kind is None
            else self.kind.arrow
        )
        number = numbered(self)
        note = None if number is None else {"PARQUET:field_id": str(number)}
        return pa.field(spelled(self), dtype, metadata=note)

    def shown(self, value: Any, spelled: Callable[[Column], str]) -> Any:
        """A stored value, its fields under their names."""
        if self.kind is not None or value is None:
            return value
        return {
            spelled(one): one.shown(value.get(one.number, one.default), spelled)
            for one in self.fields
        }

    def numbered(self, value: Any) -> Any:
        """A value that was read from a file, its fields under their numbers."""
        if self.kind is not None or value is None:
            return value
        return {one.number: one.numbered(value.get(one.stored)) for one in self.fields}


def name_of(column: Column) -> str:
    """The name in the table's schema."""
    return column.name


def stored_of(column: Column) -> str:
    """The name in files."""
    return column.stored


def leaves(columns: Iterable[Column], above: str = "") -> Iterator[tuple[str, Column]]:
    """Columns and fields that are no structs, with their names in a condition."""
    for one in columns:
        if one.kind is not None:
            yield above + one.name, one
        yield from leaves(one.fields, f"{above}{one.name}.")


def every(columns: Iterable[Column]) -> Iterator[Column]:
    """All columns and all fields."""
    for one in columns:
        yield one
        yield from every(one.fields)


def flat(
    column: Column, values: list[Any], above: Names = ()
) -> Iterator[tuple[Names, Column, list[Any]]]:
    """The column, or the leaves of a struct, with their paths in files and values."""
    here = (*above, column.stored)
    if column.kind is not None:
        yield here, column, values
    for one in column.fields:
        yield from flat(one, [v and v.get(one.number) for v in values], here)


@dataclass(slots=True)
class Stored:
    """A data file, as its table's log names it.

    Args:
        path: of the file.
        n: how many rows it has.
        rows: the values in it by the number of a column.
        values: those of partition columns, which the log has.
        gone: the positions of deleted rows.
    """

    path: str
    n: int
    rows: dict[int, list[Any]]
    values: dict[int, Any]
    gone: frozenset[int] = frozenset()

    @property
    def valid(self) -> list[int]:
        """The positions of rows that are not deleted."""
        return [i for i in range(self.n) if i not in self.gone]

    def column(self, column: Column) -> list[Any]:
        """What a reader finds, of all rows."""
        if column.number in self.values:
            return [self.values[column.number]] * self.n
        values = self.rows.get(column.number, [column.default] * self.n)
        return [column.shown(one, name_of) for one in values]


def held(columns: Sequence[Column], files: Iterable[Stored]) -> pa.Table:
    """The rows that are not deleted, with their ``file`` and ``row`` in it."""
    fields = [one.as_field(name_of) for one in columns]
    schema = pa.schema([*fields, ("file", pa.string()), ("row", pa.int64())])
    parts = []
    for file in files:
        read = [file.column(one) for one in columns]
        read += [[file.path] * file.n, [*range(file.n)]]
        parts.append([[values[i] for i in file.valid] for values in read])
    whole = [[v for part in parts for v in part[i]] for i in range(len(schema))]
    arrays = [pa.array(v, f.type) for v, f in zip(whole, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def norm(value: Any, *, is_pandas: bool = False) -> Any:
    """A value that equals another only if they are the same one in Spark.

    pandas has NaN where another reader has NULL.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return None if is_pandas else "NaN"
        return value + 0.0
    if isinstance(value, dict):
        return tuple((k, norm(v, is_pandas=is_pandas)) for k, v in value.items())
    return value


def counted(
    rows: pa.Table, names: Sequence[str], *, is_pandas: bool = False
) -> Counter[Any]:
    """The rows as a multiset."""
    columns = [rows[name].to_pylist() for name in names]
    return Counter(
        tuple(norm(v, is_pandas=is_pandas) for v in row)
        for row in zip(*columns, strict=True)
    )


def write_parquet(
    rng: random.Random,
    path: Path,
    columns: Sequence[Column],
    rows: Mapping[int, list[Any]],
    spelled: Callable[[Column], str],
    numbered: Callable[[Column], int | None],
    *,
    int96: bool = False,
) -> None:
    """A file of some columns in any order, as one writer or another makes it."""
    own = [one for one in columns if one.number in rows]
    rng.shuffle(own)
    schema = pa.schema([one.as_field(spelled, numbered) for one in own])
    arrays = [
        pa.array([one.shown(value, spelled) for value in rows[one.number]], field.type)
        for one, field in zip(own, schema, strict=True)
    ]
    pq.write_table(
        pa.table(arrays, schema=schema),
        path,
        row_group_size=rng.choice([2, 5, 1000]),
        write_statistics=rng.random() < 0.8,
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(["1.0", "2.0"]),
        store_schema=rng.random() < 0.5,
        use_deprecated_int96_timestamps=int96,
        compression=rng.choice(["snappy", "none", "zstd"]),
    )
