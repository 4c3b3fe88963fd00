"""A table of many types: files with and without indexes, changed ones, NULL and NaN."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx

ROWS: Final = 14
"""Of every file."""
TYPES: Final[Mapping[str, pa.DataType]] = {
    "id": pa.int64(),
    "i": pa.int32(),
    "small": pa.int8(),
    "s": pa.string(),
    "d": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "dec": pa.decimal128(9, 2),
    "big": pa.decimal128(27, 3),
    "f": pa.float64(),
    "b": pa.bool_(),
    "constant": pa.string(),
}
INDEXED: Final = ("i", "small", "s", "d", "ts", "dec", "big", "f", "b")
_DAY: Final = dt.date(2024, 2, 27)
_TEXTS: Final = ("", "a", "ab", "b\tc", "é", "\U0001f600", "z" * 80, "z" * 81, "NULL")
_FLOATS: Final = (float("nan"), -0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf"))


def values_of(rng: Random, file: int) -> dict[str, list[Any]]:
    """The columns of a file; later files have greater values, which overlap."""

    def some(value: Any, nulls: float = 0.15) -> list[Any]:
        return [None if rng.random() < nulls else value() for _ in range(ROWS)]

    number = lambda: 5 * file + rng.randrange(8)  # noqa: E731
    none = 1.0 if file == 2 else 0.15
    return {
        "id": list(range(100 * file, 100 * file + ROWS)),
        "i": some(number, none if file % 3 else 0.0),
        "small": some(lambda: rng.randrange(-3, 4)),
        "s": some(lambda: rng.choice(_TEXTS)),
        "d": some(lambda: _DAY + dt.timedelta(number())),
        "ts": some(
            lambda: dt.datetime(2024, 2, 28, 23, 59, 59, number(), tzinfo=dt.UTC)
        ),
        "dec": some(lambda: Decimal(number() - 20).scaleb(-2)),
        "big": some(lambda: Decimal(number() - 20) * Decimal(10) ** 20),
        "f": some(lambda: rng.choice(_FLOATS) if rng.random() < 0.3 else number()),
        "b": some(lambda: rng.random() < 0.5, 0.3),
        "constant": ["one"] * ROWS,
    }


def put(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({n: pa.array(v, TYPES[n]) for n, v in columns.items()})
    pq.write_table(table, path)


def make(root: Path, rng: Random, *, n_files: int = 9, kind: str = "bitmap") -> str:
    """Nine files in folders ``part=…``; the last is new, and one lacks a column."""
    for file in range(n_files):
        if file == n_files - 1:
            sx.build_indexes(
                root,
                dict.fromkeys(INDEXED, kind) | {"id": "minmax", "constant": "minmax"},
                workers=1,
            )
        columns = values_of(rng, file)
        if file == 4:
            del columns["small"]
        put(root / f"part={file % 3}" / f"{file}.parquet", columns)
    return str(root)
