"""The tables of the catalogue: few rows, whose values are at the edges of each type.

A row has a number in the column ``nr``, from 0 on.  Files have pages of one row; every
second file is without dictionaries, and stores decimals as integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import pyarrow as pa

import skipindex as sx
from tests.tables import build, put

N = None
Columns: TypeAlias = Mapping[str, Sequence[Any]]
KINDS: Final = ("bitmap", "bit_sliced", "exact", "bloom")
"""The kinds of index that every column has, if its type may have them."""
TEXT_KINDS: Final = (*KINDS, sx.NGramBloom(n=2), "token_bloom")


@dataclass(frozen=True, eq=False)
class Rows:
    """A table.

    Args:
        files: the rows of each file, without their numbers.
        calm: how many rows, from the first on, ANSI mode is asked about: those behind
            them overflow or cannot be cast, which is an error there.  By default all.
        texts: columns that have indexes of words and parts of words too.
    """

    files: Sequence[pa.Table]
    calm: int | None = None
    texts: Sequence[str] = ()
    bounds: Sequence[int] = field(init=False)
    """The number of the first row of each file, and at the end that of all rows."""

    def __post_init__(self) -> None:
        bounds = [0, *itertools.accumulate(map(len, self.files))]
        object.__setattr__(self, "bounds", bounds)

    def __len__(self) -> int:
        return self.bounds[-1]

    @property
    def n_calm(self) -> int:
        """How many rows ANSI mode is asked about."""
        return len(self) if self.calm is None else self.calm

    def write(self, folder: Path) -> Path:
        """Write the files, ``0.parquet`` and so on; the folder."""
        pairs = zip(self.files, self.bounds, strict=False)
        for i, (rows, first) in enumerate(pairs):
            numbers = pa.array(range(first, first + len(rows)), pa.int64())
            put(
                folder / f"{i}.parquet",
                rows.append_column("nr", numbers),
                use_dictionary=i % 2 == 0,
                store_decimal_as_integer=i % 2 == 1,
                write_batch_size=1,
                max_rows_per_page=1,
            )
        return folder

    def build(self, folder: Path) -> sx.Table:
        """Write the files, and build indexes of all kinds on all columns."""
        kinds = {"*": [*KINDS], **{name: [*TEXT_KINDS] for name in self.texts}}
        return build(self.write(folder), kinds)


def in_files(columns: Mapping[str, pa.Array], n: int) -> Iterator[pa.Table]:
    """Columns of one length, in files of ``n`` rows."""
    whole = pa.table(dict(columns))
    for first in range(0, len(whole), n):
        yield whole.slice(first, n)


def typed(values: Columns, types: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
    """Lists as columns."""
    return {name: pa.array(list(values[name]), types[name]) for name in types}


def cycled(values: Columns, n: int) -> Columns:
    """``n`` values of each column, which go round and round."""
    return {
        name: list(itertools.islice(itertools.cycle(column), n))
        for name, column in values.items()
    }


def decimals(*texts: str | None) -> list[Decimal | None]:
    return [None if text is None else Decimal(text) for text in texts]


def days(*texts: str | None) -> list[date | None]:
    return [None if text is None else date.fromisoformat(text) for text in texts]


def instants(*texts: str | None) -> list[datetime | None]:
    clocks = [None if text is None else datetime.fromisoformat(text) for text in texts]
    return [clock and clock.replace(tzinfo=UTC) for clock in clocks]


# --- columns of every type ------------------------------------------------------

STRUCT: Final = pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])
EVERY_TYPE: Final[Mapping[str, pa.DataType]] = {
    "i": pa.int32(),
    "l": pa.int64(),
    "y": pa.int8(),
    "f": pa.float32(),
    "d": pa.float64(),
    "dec": pa.decimal128(10, 2),
    "big": pa.decimal128(38, 10),
    "s": pa.string(),
    "b": pa.bool_(),
    "bin": pa.binary(),
    "dt": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "st": STRUCT,
    "arr": pa.list_(pa.int32()),
    "m": pa.map_(pa.string(), pa.int32()),
    "ntz": pa.timestamp("us"),
    "a b": pa.int32(),
    "x.y": pa.int8(),
    "tick`s": pa.int32(),
    "date": pa.date32(),
    "order": pa.int32(),
}
_EVERY: dict[str, list[Any]] = {
    "i": [N, 0, 1, -1, 2, 3, 2**31 - 1, -(2**31), 5, 6, 7, 8, 9],
    "l": [N, 0, 1, -1, 2, 3, 2**63 - 1, -(2**63), 2**53 + 1, 2**24 + 1, 5, 6, 7],
    "y": [N, 0, 1, -1, 2, 3, 127, -128, 5, 6, 7, 8, 9],
    "f": [
        *(N, 0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**24, 0.10000000149011612),
        *(1.5, 1.100000023841858, 100.0, -1.5, 1e-45),
    ],
    "d": [
        *(N, 0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**53, 0.1),
        *(1.5, 1.1, 100.0, -1.5, 5e-324),
    ],
    "dec": decimals(
        *(N, "0.00", "0.01", "-0.01", "1.50", "99999999.99", "-99999999.99", "1.00"),
        *("1.49", "1.10", "1.51", "-1.50", "10.00"),
    ),
    "big": decimals(
        *(N, "0", "1E-10", "-1", "1.5", "3", "9" * 28, "2", "1.25", "1.1", "100"),
        *("-1.5", "10"),
    ),
    "s": [
        *(N, "", "a", "a%", "it's", "its", "a\\b", "line\nbreak", "\U0001f33c"),
        *("\uffff", "A", "${x}", "\x001"),
    ],
    "b": [N, False, True, N, True, False, True, False, True, N, False, True, False],
    "bin": [
        *(N, b"", b"\0", b"\xff", b"\x1f", b"a", b"ab", b"it's", b"\xf0\x9f"),
        *(b"", b"A", b"$", b"1"),
    ],
    "dt": days(
        *(N, "1970-01-01", "2020-02-29", "1969-12-31", "2020-01-01", "9999-12-31"),
        *("0001-01-01", "2020-12-31", "2020-01-02", "2020-01-03", "2020-03-01"),
        *("2019-12-31", "2021-01-01"),
    ),
    "ts": instants(
        *(N, "1970-01-01", "2020-02-29 12:30:01.000005", "2020-03-08 10:30:00"),
        *("2020-01-01", "9999-12-31 23:59:59", "0001-01-01"),
        *("1969-12-31 23:59:59.999999", "2020-01-01 01:02:03", "2020-01-02"),
        *("2020-01-01 00:02:03", "2019-12-31", "2021-01-01"),
    ),
    "st": [
        *(N, {"x": N, "y": {"z": N}}, {"x": 1, "y": {"z": "q"}}, {"x": 2, "y": N}),
        *({"x": n, "y": {"z": "abc"[:n]}} for n in range(9)),
    ],
    "arr": [N, [], [1, 2], [N], N, [3], [4], [5], [6], [7], [8], [9], [10]],
    "m": [N, {}, {"k": 1}, {"k": N}, N, {}, {}, {"k": 2}, {}, {}, {}, {}, {}],
}


def every() -> Rows:
    """Columns of every type, with odd names among them; two rows a file."""
    columns = dict(_EVERY)
    columns["ntz"] = [ts and ts.replace(tzinfo=None) for ts in columns["ts"]]
    columns["m"] = [pairs and list(pairs.items()) for pairs in columns["m"]]
    for odd, name in (("a b", "i"), ("x.y", "y"), ("tick`s", "i"), ("order", "i")):
        columns[odd] = columns[name]
    columns["date"] = columns["dt"]
    files = in_files(typed(columns, EVERY_TYPE), 2)
    return Rows([*files], texts=["s"])


# --- values for functions -------------------------------------------------------

FUNCTION_TYPES: Final[Mapping[str, pa.DataType]] = {
    "i": pa.int32(),
    "l": pa.int64(),
    "y": pa.int8(),
    "d": pa.float64(),
    "f": pa.float32(),
    "dec": pa.decimal128(10, 2),
    "s": pa.string(),
    "n": pa.string(),
    "b": pa.bool_(),
    "dt": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
}
_MOMENTS: Final = (
    *("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "1992-02-29 23:30:00"),
    *("1993-01-01 00:00:00", "1993-12-31 23:59:59.5", "1994-01-01 00:00:00.000001"),
    *("2020-03-08 02:30:00", "2020-03-29 01:30:00", "2020-10-25 00:59:59.999999"),
    *("2020-10-25 01:00:00", "2020-12-31 22:59:59", "2020-12-31 23:00:00"),
    *("2021-01-01 00:00:00", "2021-01-03 12:34:56.78", "1582-10-15 01:02:03"),
    *("1900-02-28 12:00:00", "2000-02-29 00:00:01", "2019-01-31 00:00:00"),
)
_CLOCKS: Final = [datetime.fromisoformat(text) for text in _MOMENTS]
TAME: Columns = {
    "i": [0, 1, -1, 2, 3, -3, 7, 10, -7, 100, 1992, 1993, 12345, -9876, N, 46340],
    "l": [0, 1, -1, 2, 3, -3, 7, 10, -7, 1 << 40, -(1 << 40), 5, N, 999, 1000, 1001],
    "y": [0, 1, -1, 2, 3, -3, 7, 10, -7, 100, -100, 50, N, 6, 9, 11],
    "d": [
        *(0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 2.5, 0.1, 1e9, -1e9, 7.0, N, 3.0, 0.5),
        *(1e-300, 99.99),
    ],
    "f": [0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 2.5, 0.25, 1e9, 7.0, N, 3.0, 0.5, 8.0, 1.0],
    "dec": decimals(
        *("0.00", "0.01", "-0.01", "1.50", "-1.50", "99999999.99", "1.00", N),
        *("-99999999.99", "1.49", "1.51", "10.00", "-1.00", "2.00", "3.99", "7.77"),
    ),
    "s": [
        *("", " ", "a", "A", "ab", "Ab", "abc", " a ", "a%b", "aXb", "ab\n", N, "b"),
        *("2020-01-01", "zz", "abcabc", "O'K", "a_b"),
    ],
    "n": ["0", "1", "-1", " 7 ", "+3", "007", "1992", "12", N, "2147483647", "99"],
    "b": [True, False, N],
    "dt": [*(clock.date() for clock in _CLOCKS), N],
    "ts": [*(clock.replace(tzinfo=UTC) for clock in _CLOCKS), N],
    "ntz": [*_CLOCKS, N],
}
WILD: Columns = {
    "i": [2**31 - 1, -(2**31), 2**31 - 2, -(2**31) + 1, 2**30],
    "l": [2**63 - 1, -(2**63), 2**63 - 2, 2**53 + 1, 2**62],
    "y": [127, -128, 126],
    "d": [
        *(math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 2.0**63),
        *(-(2.0**63), 2.0**53, 2147483648.0, -2147483648.5, 127.9, 128.0),
    ],
    "f": [math.nan, math.inf, -math.inf, 1e-45, 3.4e38],
    "dec": decimals("0.00", "99999999.99", "-99999999.99"),
    "s": [
        *("é", "éa", "\U0001f33cx", "x\uffff", "ß", "İ", "ǅ", "ﬁ", "ΑΣ", "\x00"),
        "abc" * 40,
    ],
    "n": ["", "x", "1.5", "1e2", "2147483648", "999999999999999999999", N],
    "b": [True, False, N],
    "dt": [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4)],
    "ts": instants("0001-01-01", "9999-12-31 23:59:59.999999"),
    "ntz": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)],
}
"""Values that overflow, or that no cast takes."""


def functions() -> Rows:
    """Four rows a file; then files of one value, of none, and of wild values."""
    some = typed(cycled(TAME, 20), FUNCTION_TYPES)
    one = {name: [values[0]] * 2 for name, values in TAME.items()}
    wild = typed(cycled(WILD, 12), FUNCTION_TYPES)
    files = [
        *in_files(some, 4),
        pa.table(typed(one, FUNCTION_TYPES)),
        pa.table({name: pa.nulls(2, dtype) for name, dtype in FUNCTION_TYPES.items()}),
    ]
    n_calm = sum(map(len, files))
    return Rows([*files, *in_files(wild, 4)], n_calm, texts=["s"])


# --- others ---------------------------------------------------------------------


def patterns() -> Rows:
    """Texts for LIKE."""
    texts = [
        ["a%b", "a_b", "axb", "ab"],
        ["a\U0001f33cb", "a\U0001f33c", "aéb"],
        ["a\nb", "A B", " ab ", ""],
        ["disk full", "disks", None],
        ["x" * 70 + "needle", "back\\slash"],
    ]
    return Rows([pa.table({"c": pa.array(own)}) for own in texts], texts=["c"])


_NOON: Final = datetime(2020, 1, 1, 12)
CASTS: Final[Mapping[str, tuple[pa.DataType, Sequence[Any]]]] = {
    "d": (pa.date32(), [date(2020, 1, 1), date(1, 1, 1), date(2024, 2, 29)]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [_NOON.replace(tzinfo=UTC), _NOON.replace(2021, tzinfo=UTC)],
    ),
    "ntz": (pa.timestamp("us"), [_NOON, _NOON.replace(2021, 1, 2, 0)]),
    "i": (pa.int32(), [1, 0, -5, 2**31 - 1]),
    "l": (pa.int64(), [1, 0, -5, 2**63 - 1]),
    "y": (pa.int8(), [1, 0, 127]),
    "f": (pa.float32(), [1.5, 0.0, float("nan")]),
    "db": (pa.float64(), [1.5, 0.0, float("nan"), float("inf")]),
    "dec": (pa.decimal128(10, 2), decimals("1.50", "0", "-1")),
    "b": (pa.bool_(), [True, False]),
    "s": (pa.string(), ["x", "", "2020-01-01", "1", "1.5", "true"]),
    "bin": (pa.binary(), [b"x", b"", b"1"]),
}


def casts() -> Rows:
    """A file of NULLs, one of values, and one of both, for literals that are cast."""

    def column(dtype: pa.DataType, *values: Any) -> pa.Array:
        return pa.array(itertools.islice(itertools.cycle(values), 8), dtype)

    return Rows(
        [
            pa.table({c: pa.nulls(8, dtype) for c, (dtype, _) in CASTS.items()}),
            pa.table({c: column(t, *v, v[0]) for c, (t, v) in CASTS.items()}),
            pa.table({c: column(t, N, *v, N) for c, (t, v) in CASTS.items()}),
        ]
    )


_UTC_TIME: Final = instants("1970-01-01", "2020-05-01 03:00:00")
_WALL: Final = [time and time.replace(tzinfo=None) for time in _UTC_TIME]
STORED: Final[Mapping[str, tuple[pa.DataType, Sequence[Any]]]] = {
    "i8": (pa.int8(), [-128, 5, 127]),
    "i16": (pa.int16(), [-(2**15), 5, 2**15 - 1]),
    "i32": (pa.int32(), [-(2**31), 5, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), 5, 2**63 - 1]),
    "u8": (pa.uint8(), [0, 5, 255]),
    "u16": (pa.uint16(), [0, 5, 2**16 - 1]),
    "u32": (pa.uint32(), [0, 2**31, 2**32 - 1]),
    "u64": (pa.uint64(), [0, 2**63, 2**64 - 1]),
    "f32": (pa.float32(), [-0.0, 0.1, float("nan")]),
    "f64": (pa.float64(), [-0.0, 0.1, float("nan")]),
    "b": (pa.bool_(), [False, True]),
    "d": (pa.date32(), days("0001-01-01", "2020-05-01")),
    "d9": (pa.decimal128(9, 2), decimals("-1.50", "2.25")),
    "d18": (pa.decimal128(18, 3), decimals("-1.500", "9")),
    "d38": (pa.decimal128(38, 0), [Decimal(-(10**37)), Decimal(7), Decimal(10**37)]),
    "tms": (pa.timestamp("ms", "UTC"), _UTC_TIME),
    "tus": (pa.timestamp("us", "UTC"), _UTC_TIME),
    "nms": (pa.timestamp("ms"), _WALL),
    "nus": (pa.timestamp("us"), _WALL),
    "s": (pa.string(), ["", "é", "z" * 90]),
    "y": (pa.binary(), [b"", b"\xff\0", b"z"]),
    "y2": (pa.binary(2), [b"aa", b"\xff\0", b"zz"]),
}


def stored() -> Rows:
    """Every type of a Parquet column that has an order; all of them in a struct too."""
    arrays = {
        name: pa.array([*values, None, *values][:5], dtype)
        for name, (dtype, values) in STORED.items()
    }
    inside = pa.StructArray.from_arrays(
        list(arrays.values()),
        names=list(arrays),
        mask=pa.array([False, False, False, False, True]),
    )
    return Rows([*in_files({**arrays, "st": inside}, 3)])


def hours() -> Rows:
    """The hours around a change of the clocks in Berlin, two to a file."""
    start = datetime(2024, 10, 26, 20, tzinfo=UTC)
    moments = [start + timedelta(hours=n) for n in range(12)]
    column = pa.array(moments, pa.timestamp("us", "UTC"))
    return Rows([*in_files({"t": column}, 2)])


def groups() -> Rows:
    """Six files of six rows, whose values differ from file to file."""
    start = date(2020, 1, 1)
    files = [
        {
            "s": [f"{k}-{'abc'[n % 3]}" for n in range(6)],
            "x": [k * 7 + n % 4 for n in range(6)],
            "d": [start + timedelta(days=31 * k + n) for n in range(6)],
            "one": [N if n == 2 and k == 4 else f"only {k}" for n in range(6)],
            "wide": [k - 1000, *[k] * 4, k + 1000],
        }
        for k in range(6)
    ]
    return Rows([pa.table(file) for file in files], texts=["s"])


def numbers() -> Rows:
    """Numbers that functions round, and decimals of many digits."""
    columns: dict[str, Any] = {
        "r": [3.0, -3.0, 4.5, math.inf, math.nan, N],
        "n": [1 << 60, (1 << 60) + 1, 5, 0, N, 7],
    }
    for name, digits in (("five", 5), ("c", 9), ("ten", 10), ("big", 25)):
        values = [*decimals("1.50", "-2.00"), N, N, *decimals("2.00"), N]
        columns[name] = pa.array(values, pa.decimal128(digits, 2))
    return Rows([*in_files(columns, 3)])


def letters() -> Rows:
    """Letters beyond ASCII."""
    texts = ["Ann", "Ärger", "IÄ", "İ", "東京", "ﬁn", "Σ"]
    return Rows([pa.table({"s": texts})], texts=["s"])


def cases() -> Rows:
    """Letters of which some have a case by the version of Unicode or the language."""
    return Rows([pa.table({"s": [letter]}) for letter in "ÉẞĀЯßÍΔx"], texts=["s"])


SHAPE_TYPES: Final[Mapping[str, tuple[pa.DataType, str]]] = {
    "i": (pa.int32(), "int"),
    "l": (pa.int64(), "bigint"),
    "sh": (pa.int16(), "smallint"),
    "by": (pa.int8(), "tinyint"),
    "f": (pa.float32(), "float"),
    "d": (pa.float64(), "double"),
    "dec": (pa.decimal128(12, 2), "decimal(12,2)"),
    "s": (pa.string(), "string"),
    "dte": (pa.date32(), "date"),
    "ts": (pa.timestamp("us", "UTC"), "timestamp"),
    "ntz": (pa.timestamp("us"), "timestamp_ntz"),
    "b": (pa.bool_(), "boolean"),
    "bin": (pa.binary(), "binary"),
    "st": (
        pa.struct([("a", pa.int32()), ("n", pa.struct([("s", pa.string())]))]),
        "struct<a:int,n:struct<s:string>>",
    ),
    "arr": (pa.list_(pa.int64()), "array<bigint>"),
    "m": (pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
    "ymd": (pa.int32(), "int"),
    "ds": (pa.string(), "string"),
}
"""By column its type, and that as a catalog of Spark writes it."""


def shapes() -> Rows:
    """Columns of the types of a catalog, for the final conditions of Catalyst."""
    moments = instants(
        *("2020-02-01", "2020-02-01 03:04:05", "2020-01-31", "2020-01-01", None),
        *("2019-12-31 23:59:59.999999", "2020-02-02", "9999-12-31 23:59:59"),
        "1970-01-01",
    )
    numbers = [5, 3, 1, 6, N, 7, 51, 12, 2, -4]
    columns: Columns = {
        **dict.fromkeys(("i", "sh", "by", "ymd"), numbers),
        "l": [5, 3, 5_000_000_000, 2, N, -7, 51],
        "f": [1.5, 1.1, 0.5, math.nan, N, -0.0, 1.25],
        "d": [math.nan, 5.5, 1.0, N, 10.5, -1.5, math.inf, 1.5],
        "dec": decimals("5.00", "2.10", "5.26", N, "1.50", "2.14", "-1.00"),
        "s": [
            *(
                "v1",
                "a",
                "v10",
                "v3",
                N,
                "5",
                "b",
                "v1x9",
                "2020-02-15",
                "202002",
                "abc",
            ),
            *("2020/02/01", "20200201", "V1", "a_", "v59", "2020-02-01 00:00:01", "x"),
        ],
        "dte": [moment and moment.date() for moment in moments],
        "ts": moments,
        "ntz": [moment and moment.replace(tzinfo=None) for moment in moments],
        "b": [True, False, N],
        "bin": [b"x1", b"", N, b"\x01", b"\xff"],
        "st": [
            *({"a": 5, "n": {"s": "q3"}}, N, {"a": N, "n": N}),
            {"a": 1, "n": {"s": "q"}},
        ],
        "arr": [[3], [], N, [1, 3], [N]],
        "m": [[("k", 3)], [], N, [("k", N)], [("q", 3)]],
        "ds": ["2020-01-03", "x", N, "2020-01-31", "yyyy-MM-dd"],
    }
    types = {name: dtype for name, (dtype, _) in SHAPE_TYPES.items()}
    return Rows([*in_files(typed(cycled(columns, 20), types), 2)], texts=["s"])


MADE: Final[Mapping[str, Callable[[], Rows]]] = {
    "every": every,
    "functions": functions,
    "patterns": patterns,
    "casts": casts,
    "stored": stored,
    "hours": hours,
    "groups": groups,
    "numbers": numbers,
    "letters": letters,
    "cases": cases,
    "shapes": shapes,
}
"""By the name of the file of conditions."""


@cache
def rows_of(name: str) -> Rows:
    """The rows of a table."""
    return MADE[name]()


_FOLDERS: Final[list[TemporaryDirectory[str]]] = []


@cache
def table_of(name: str) -> sx.Table:
    """A table with its indexes, built once in this process."""
    _FOLDERS.append(TemporaryDirectory())
    return rows_of(name).build(Path(_FOLDERS[-1].name) / name)
